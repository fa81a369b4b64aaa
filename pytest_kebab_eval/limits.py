"""How large, deep and long what comes from outside may be. docs/reliability.md lists these for users."""

from __future__ import annotations

YAML_DEPTH = 32  # levels of nesting in a golden file
YAML_FREE_REPEATS = 100_000  # values that aliases and merge keys may repeat in any file
YAML_REPEATS_PER_VALUE = 10  # and beyond that, for each value that is written out
SNAPSHOT_DEPTH = 32  # levels of nesting in a snapshot; a report has fewer than ten
GOLDEN_NUMBER = 10**15  # of a chunk's position or a grade
