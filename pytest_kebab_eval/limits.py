"""How large, deep and long what comes from outside may be. docs/reliability.md lists these for users."""

from __future__ import annotations

YAML_DEPTH = 32  # levels of nesting in a golden file
YAML_FREE_REPEATS = 100_000  # values that aliases and merge keys may repeat in any file
YAML_REPEATS_PER_VALUE = 10  # and beyond that, for each value that is written out
SNAPSHOT_DEPTH = 32  # levels of nesting in a snapshot; a report has fewer than ten
YAML_NUMBER = 1_000  # characters of a number or a date
GOLDEN_NUMBER = 10**15  # of a chunk's position or a grade
IMPORTED_LINE = 1 << 28  # bytes of a line that is imported
IMPORTED_FILE = 1 << 30  # bytes of a file that is imported as a whole
UNPACKED_FREELY = 1 << 28  # bytes that a gzip file may unpack to, however small it is
UNPACKED_RATIO = 200  # and beyond that, for each byte of it
CITED_PAIRS = 250_000  # of a hit and a citation that names a path, of one result
NAMES_COMPARED = 1_000  # runs that a mistyped name is held against, the newest
NAME_COMPARED = 200  # characters of such a name
SPANS_COMPARED = 1_000  # spans of a chunk and of what it is held against, together
