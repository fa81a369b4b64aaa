"""How large, deep and long what comes from outside may be. docs/reliability.md lists these for users."""

from __future__ import annotations

YAML_DEPTH = 32  # levels of nesting in a golden file
YAML_FREE_REPEATS = 100_000  # values that aliases and merge keys may repeat in any file
YAML_REPEATS_PER_VALUE = 10  # and beyond that, for each value that is written out
CONFIG_DEPTH = 64  # levels of nesting in a run's config snapshot; a deeper one counts as empty
STORED_NUMBER = 1e18  # of a stored aggregate, or a chunk's tokens; a larger one counts as missing
SNAPSHOT_DEPTH = 32  # levels of nesting in a snapshot; a report has fewer than ten
YAML_NUMBER = 1_000  # characters of a number or a date
YAML_QUERIES = 100_000  # from which on `kebab-eval` says that a golden file in JSONL loads faster
GOLDEN_NUMBER = 10**15  # of a chunk's position or a grade

STORED_VALUE_BYTES = 64_000_000  # of one value in a database, such as a result_json (Python 3.11 and later)
MASKED_DEPTH = 50  # levels of a configuration that are searched for secrets; what is deeper is masked whole
PIPE_READER_S = 10.0  # to wait for somebody to read from a named pipe that is written to
ABANDONED_AFTER_S = 3600.0  # since its last change: then a half-written file of a killed process may go
IMPORTED_LINE = 1 << 26  # bytes of a line that is imported
IMPORTED_FILE = 1 << 30  # bytes of a file that is imported as a whole
PYTHON_CELL = 1 << 22  # characters of a cell of CSV that is a list of objects, as Python prints it
UNPACKED_FREELY = 1 << 24  # bytes that a gzip file may unpack to, however small it is
UNPACKED_RATIO = 200  # and beyond that, for each byte of it
CITED_PAIRS = 250_000  # of a hit and a citation that names a path, of one result
NAMES_COMPARED = 1_000  # names that a mistyped one is compared with; of runs, those of the newest
NAME_COMPARED = 200  # characters of such a name
CHECKED_BYTES = 4_000_000  # of a database, up to which its pages are checked before it is read
SPANS_COMPARED = 1_000  # spans of two chunks that are compared, together
TEXT_COMPARED = 100_000  # characters of a text that is compared with another
RUNS_DRAWN = 100  # runs on a chart of kebab-eval site, the newest; its table has all of them
FETCHED_ROWS = 250  # that are asked of a server at a time, where they are many
FETCHED_BYTES = 1 << 24  # and how many bytes of results, where they are compared
