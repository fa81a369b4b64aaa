"""Imports a few files as run `r`, and says what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_kebab_eval import GoldenQuery, InputError, compute_aggregate, load_golden_set
from pytest_kebab_eval.comparing.aggregates import AggregateMetrics
from pytest_kebab_eval.importers import Source, Summary, import_run, installed_importers, load_importer
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.store import find_run, open_database
from tests.builders import Json

FORMATS = {name: load_importer(entry) for name, entry in installed_importers().items()}
Files = Mapping[str, Any]  # text, bytes, or what is written as JSON


class Brought(NamedTuple):
    """An imported run."""

    db: Path
    golden: Path
    summary: Summary

    def metric(self, name: str) -> float | None:
        return self.metrics().value(name)

    def metrics(self) -> AggregateMetrics:
        return compute_aggregate("r", db=self.db, golden=self.golden)

    def queries(self) -> Mapping[str, GoldenQuery]:
        return load_golden_set(self.golden).by_id()

    def result(self, query_id: str | None = None) -> QueryResult:
        """The result of a query, or the only one."""
        with open_database(self.db) as database:
            results = list(database.results("r")) if query_id is None else [database.result("r", query_id)]
        (found,) = results
        assert isinstance(found, QueryResult)
        return found

    def config(self) -> Json:
        with open_database(self.db) as database:
            return find_run(database, "r").config


def jsonl(*lines: Any) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write_sources(directory: Path, files: Files) -> dict[str, Any]:
    """`{"run.txt": …}` becomes a file, and the source of the option `run`; another name a text."""
    given: dict[str, Any] = {}
    for name, content in files.items():
        option, dot, _ = name.partition(".")
        if dot:
            text = content if isinstance(content, (str, bytes)) else json.dumps(content)
            (directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        given[option] = Source(str(directory / name)) if dot else content
    return given


def bring(directory: Path, importer: str, files: Files, golden: str | None = "g.yaml") -> Brought:
    db, out = directory / "db.sqlite", directory / (golden or "g.yaml")
    given = write_sources(directory, files)
    golden_out = out if golden and importer != "kebab" else None
    summary = import_run(FORMATS[importer], given, db=db, run_id="r", suite="s", golden_out=golden_out)
    return Brought(db, out, summary)


def refusal(directory: Path, importer: str, files: Files) -> str:
    """The message of an import that fails and leaves nothing behind; paths in it are bare file names."""
    with pytest.raises(InputError) as caught:
        bring(directory, importer, files)
    names = [name for name in files if "." in name]
    assert sorted(path.name for path in directory.iterdir()) == sorted(names)
    message = with_bare_names(str(caught.value), directory, names)
    assert "\n" not in message
    return message


def with_bare_names(message: str, directory: Path, names: Iterable[str]) -> str:
    for name in names:
        message = message.replace(str(Source(str(directory / name)).name), name)
    return message


RUN = "t1 Q0 d1 1 2.0 bm25\nt2 Q0 d9 1 1.0 bm25\n"
QRELS = "t1 0 d1 1\nt2 0 d1 1\n"
TREC = {"run.txt": RUN, "qrels.txt": QRELS}
