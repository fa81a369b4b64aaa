"""An exported run in Parquet, for those who also read it with other tools; needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.store.database import Rows
from pytest_kebab_eval.store.exports.lines import Header, damaged, read_header, write_header
from pytest_kebab_eval.text import brief, shown_path

_KEY = b"kebab_eval_export"
_ROWS_A_GROUP = 1_000  # which are read, or looked through for one, at a time


def is_parquet(path: Path) -> bool:
    """Whether a file of that name is in Parquet."""
    return path.name.lower().endswith(".parquet")


def pyarrow() -> Any:
    """The library; an `InputError` says what to install."""
    try:
        import pyarrow as found
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "a file that ends in .parquet takes pyarrow, which is not installed:"
            " pip install 'pytest-kebab-eval[parquet]'"
        ) from None
    return found


def write_part(out: IO[bytes], header: Header, rows: Rows) -> int:
    """Write a part: its results in two columns, and the header beside the schema; how many there are."""
    arrow = pyarrow()
    columns = [arrow.field("query_id", arrow.string()), arrow.field("result_json", arrow.string())]
    schema = arrow.schema(columns, metadata={_KEY: write_header(header)})
    waiting, written = iter(rows), 0
    with arrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while group := list(islice(waiting, _ROWS_A_GROUP)):
            texts = [query_id for query_id, _ in group], [result.decode() for _, result in group]
            writer.write_table(arrow.table([arrow.array(text, arrow.string()) for text in texts], schema))
            written += len(group)
    return written


class ParquetPart:
    """One file of an exported run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = shown_path(path)

    @cached_property
    def _file(self) -> Any:
        arrow = pyarrow()
        try:
            return arrow.parquet.ParquetFile(self.path)
        except (arrow.ArrowException, OSError) as error:
            raise DatabaseError(f"cannot read {self.name}: {brief(str(error), 100)}") from None

    @cached_property
    def header(self) -> Header:
        """What is said beside the schema."""
        return read_header((self._file.schema_arrow.metadata or {}).get(_KEY, b""), self.name)

    def rows(self) -> Iterator[tuple[str, bytes]]:
        """The results, in the order of their ids."""
        if self._file.metadata.num_rows != self.header.results:
            raise damaged(
                self.name, 1, f"it has {self._file.metadata.num_rows} of {self.header.results} results"
            )
        for group in range(self._file.num_row_groups):
            yield from self._group(group)

    def _group(self, number: int) -> Iterator[tuple[str, bytes]]:
        arrow = pyarrow()
        try:
            table = self._file.read_row_group(number, columns=["query_id", "result_json"])
        except (arrow.ArrowException, OSError, KeyError) as error:
            raise DatabaseError(f"cannot read {self.name}: {brief(str(error), 100)}") from None
        for query_id, result_json in zip(*(column.to_pylist() for column in table.columns), strict=True):
            yield query_id, result_json.encode()

    def find(self, query_id: str) -> tuple[str, bytes] | None:
        """One result: of the last group that begins at its id or before."""
        found = [number for number, first in enumerate(self._firsts) if first <= query_id]
        if not found:
            return None
        return next((row for row in self._group(found[-1]) if row[0] == query_id), None)

    @cached_property
    def _firsts(self) -> list[str]:
        """The first id of each group."""
        groups = range(self._file.num_row_groups)
        return [self._file.read_row_group(group, columns=["query_id"])[0][0].as_py() for group in groups]

    def close(self) -> None:
        if "_file" in vars(self):
            self._file.close()
