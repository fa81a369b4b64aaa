"""The errors, as a tree.

KebabEvalError
├── InputError            wrong use: pytest exits with 4, `kebab-eval` with 2
│   ├── DatabaseError     no database, not a database, locked, or without the eval tables
│   │   └── NoDatabase    there is no such file
│   ├── RunNameError      a name that matches no run, or more than one
│   │   └── NoSuchRun     a name that matches no run
│   ├── GoldenError       a golden or lock file that is not valid
│   ├── GateError         a gate that does not parse, or does not apply here
│   ├── MetricError       a custom metric that fails
│   ├── SettingsError     an option, ini value or environment variable that is not valid
│   └── ChunkerError      the chunker versions differ and strict_chunker_version is set
└── StoreError            a write that failed; what was stored before is unchanged
"""

from __future__ import annotations


class KebabEvalError(Exception):
    """The base of all errors of this package; the text is meant for the user."""


class InputError(KebabEvalError):
    """An input or option cannot be used."""


class DatabaseError(InputError):
    """The database cannot be read."""


class RunNameError(InputError):
    """The name matches no run, or more than one."""


class NoDatabase(DatabaseError):
    """There is no such file."""


class NoSuchRun(RunNameError):
    """The name matches no run."""


class GoldenError(InputError):
    """The golden file, or its lock file, is not valid."""


class SettingsError(InputError):
    """An option, ini value or environment variable is not valid."""


class GateError(InputError):
    """A gate does not parse, or does not apply here."""


class MetricError(InputError):
    """A custom metric (`pytest_kebab_metrics`) failed."""


class ChunkerError(InputError):
    """The runs were chunked differently, and strict_chunker_version is set."""


class StoreError(KebabEvalError):
    """A write failed; what was stored before is unchanged."""
