"""Everything that can go wrong, by how much of the work it stops.

KebabEvalError
├── InputError            wrong use: pytest exits with 4, the command with 2
│   ├── DatabaseError     no database, not a database, locked, or without the eval tables
│   │   └── NoDatabase    there is no such file
│   ├── RunNameError      a name that fits no run, or more than one
│   │   └── NoSuchRun     a name that fits no run
│   ├── GoldenError       a golden or lock file that cannot be read as one
│   ├── GateError         a gate that does not parse, or makes no sense here
│   ├── MetricError       a metric of a user's own that fails
│   ├── SettingsError     an option, ini value or environment variable that makes no sense
│   └── ChunkerError      the chunker versions differ and that was not to be bridged
└── StoreError            a write that failed; what was stored before is unchanged
"""

from __future__ import annotations


class KebabEvalError(Exception):
    """The base of every error raised on purpose; its text is meant for the user."""


class InputError(KebabEvalError):
    """Something that was asked for, or given, cannot be used."""


class DatabaseError(InputError):
    """The database cannot be read."""


class RunNameError(InputError):
    """No run, or more than one, goes by the name."""


class NoDatabase(DatabaseError):
    """There is no such file."""


class NoSuchRun(RunNameError):
    """No run goes by the name."""


class GoldenError(InputError):
    """The golden file, or its lock file, is not valid."""


class SettingsError(InputError):
    """A setting makes no sense."""


class GateError(InputError):
    """A gate does not parse, or makes no sense here."""


class MetricError(InputError):
    """A metric that came through `pytest_kebab_metrics` failed."""


class ChunkerError(InputError):
    """The runs were chunked differently and the caller wanted none of that."""


class StoreError(KebabEvalError):
    """Something could not be written; nothing was changed."""
