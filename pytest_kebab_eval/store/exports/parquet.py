"""An exported run in Parquet, for those who also read it with other tools; needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.store.database import Rows
from pytest_kebab_eval.store.exports.lines import Header, damaged, read_header, write_header
from pytest_kebab_eval.text import brief, shown_path

_KEY = b"kebab_eval_export"
_ROWS_A_GROUP = 1_000  # which are read at a time


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


def write_parquet(out: IO[bytes], header: Header, rows: Rows) -> int:
    """Write a run: its results in two columns, and the header beside the schema; how many there are."""
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


class ParquetFile:
    """The results of an export in Parquet; it is read anew each time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = shown_path(path)

    @cached_property
    def header(self) -> Header:
        """What is said beside the schema."""
        with self._open() as file:
            return read_header((file.schema_arrow.metadata or {}).get(_KEY, b""), self._name)

    def __len__(self) -> int:
        return self.header.results

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """The results, in the order of their ids."""
        with self._open() as file:
            if file.metadata.num_rows != len(self):
                found = f"it has {file.metadata.num_rows} of {len(self)} results"
                raise damaged(self._name, 1, found)
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["query_id", "result_json"])
                for query_id, result_json in zip(*(part.to_pylist() for part in table.columns), strict=True):
                    yield query_id, result_json.encode()

    @contextmanager
    def _open(self) -> Iterator[Any]:
        arrow = pyarrow()
        try:
            with arrow.parquet.ParquetFile(self._path) as file:
                yield file
        except (arrow.ArrowException, OSError, KeyError) as error:
            raise DatabaseError(f"cannot read {self._name}: {brief(str(error), 100)}") from None
