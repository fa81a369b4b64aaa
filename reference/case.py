"""One comparison: a golden set, two stored runs, the tables beside them, and the options."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Entry = dict[str, Any]

DEFAULT_CHECKS = ("retrieval", "answer", "refusal", "citation", "error")

EVAL_TABLES = """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL);
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL, query_id TEXT NOT NULL, result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id));
"""
CHUNK_TABLES = """
CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL);
CREATE TABLE chunks (
    chunk_id TEXT NOT NULL, doc_id TEXT NOT NULL, text TEXT NOT NULL, heading_path_json TEXT NOT NULL,
    source_spans_json TEXT NOT NULL, token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL,
    PRIMARY KEY ({key}));
"""


@dataclass(frozen=True)
class Run:
    """A stored run: its configuration and the text of each row."""

    run_id: str
    config: Entry
    rows: dict[str, str]

    @property
    def chunker_version(self) -> str | None:
        """The version that decides how the run is matched."""
        version: str | None = self.config.get("chunker_version")
        return version


@dataclass(frozen=True)
class Chunk:
    """A row of the table `chunks`, with the path of its document."""

    chunk_id: str
    doc_id: str
    path: str
    heading: tuple[str, ...]
    spans: tuple[Entry, ...]
    text: str
    version: str


@dataclass(frozen=True)
class Options:
    """What is given to pytest; None leaves an option out."""

    fail_on: tuple[str, ...] | None = None
    compare_k: int | None = None
    k: int | None = None
    span_overlap: float | None = None
    strict: bool = False
    gates: tuple[str, ...] = ()
    alone: bool = False
    if_no_baseline: str | None = None
    in_ini: bool = False
    two_databases: bool = False
    by_age: bool = False
    snapshot: str | None = None
    wrong: str | None = None
    allow_documents: bool = False
    require: str | None = None
    same_run: str | None = None  # how both sides name the same run: by "id", by "latest", or among "several"

    @property
    def checks(self) -> frozenset[str]:
        """The checks that a query fails on."""
        chosen = DEFAULT_CHECKS if self.fail_on is None else self.fail_on
        if any(word.startswith("+") for word in chosen):  # 'the defaults and these'
            chosen = (*DEFAULT_CHECKS, *(word[1:] for word in chosen))
        names = frozenset(word.partition(">")[0] for word in chosen) - {"none"}
        return names | ({"retrieval"} if "loss" in names else set())  # what fell out fell by more than N

    @property
    def loss_over(self) -> int:
        """'`loss>3` (by more than three ranks)'; any loss where `loss` itself is among them."""
        words = [word.lstrip("+") for word in self.fail_on or () if word.lstrip("+").startswith("loss")]
        return min((int(word.partition(">")[2] or 0) for word in words), default=0)

    def settings(self) -> list[tuple[str, str]]:
        """The options that may also stand in the ini file, by their names without the prefix."""
        given = [
            ("fail-on", None if self.fail_on is None else ",".join(self.fail_on)),
            ("compare-k", self.compare_k),
            ("k", self.k),
            ("require", self.require),
            ("span-overlap", self.span_overlap),
            ("strict-chunker-version", "true" if self.strict and self.in_ini else None),
            ("if-no-baseline", self.if_no_baseline),
            ("snapshot", self.snapshot),
            ("allow-document-matching", "true" if self.allow_documents and self.in_ini else None),
        ]
        return [(name, str(value)) for name, value in given if value is not None]


@dataclass(frozen=True)
class Case:
    """A comparison as it is written to disk."""

    seed: int
    golden: list[Entry]
    run_a: Run | None
    run_b: Run
    chunks: tuple[Chunk, ...] | None = None
    options: Options = field(default_factory=Options)
    golden_name: str = "golden_queries.yaml"
    locked: tuple[Chunk, ...] = ()
    more_a: tuple[Run, ...] = ()
    more_b: tuple[Run, ...] = ()
    partial: Run | None = None

    @property
    def side_a(self) -> list[Run]:
        """The runs of A, of which `more_a` are further replicates."""
        return [] if self.run_a is None else [self.run_a, *self.more_a]

    @property
    def side_b(self) -> list[Run]:
        """The runs of B."""
        return [self.run_b, *self.more_b]

    @property
    def runs(self) -> list[Run]:
        """The runs that are named, A first."""
        return [*self.side_a, *self.side_b]

    @property
    def has_replicates(self) -> bool:
        """Whether a side has several runs."""
        return bool(self.more_a or self.more_b)

    @property
    def is_comparison(self) -> bool:
        """Whether B is held against A, and not judged alone."""
        return self.run_a is not None and not self.options.alone

    def arguments(self) -> list[str]:
        """The command line of pytest."""
        arguments = [f"--kebab-golden={self.golden_name}", *self._run_arguments()]
        if not self.options.in_ini:
            arguments += [f"--kebab-{name}={value}" for name, value in self.options.settings()]
            arguments += [f"--kebab-gate={gate}" for gate in self.options.gates]
            arguments += ["--strict-chunker-version"] if self.options.strict else []
            arguments += ["--kebab-allow-document-matching"] if self.options.allow_documents else []
        return [*arguments, self.options.wrong] if self.options.wrong else arguments

    def _run_arguments(self) -> list[str]:
        """How the runs are named: by their ids, or by their age."""
        by_age = self.options.by_age and self.is_comparison and not self.has_replicates
        name_a = ",".join(run.run_id for run in self.side_a) or "missing"
        name_b = ",".join(run.run_id for run in self.side_b)
        if by_age:
            name_a, name_b = ("latest" if self.options.two_databases else "latest~1"), "latest"
        if self.options.same_run == "latest":
            name_a, name_b = "latest", "latest"
        elif self.options.same_run:
            name_a = name_b if self.options.same_run == "id" else f"{name_a},{self.run_b.run_id}"
        arguments = [f"--kebab-run-b={name_b}"]
        if not self.options.alone:
            arguments.append(f"--kebab-run-a={name_a}")
        if self.options.two_databases:
            arguments += ["--kebab-db-a=a.sqlite", "--kebab-db-b=b.sqlite"]
        return arguments

    def write(self, directory: Path) -> None:
        """Write the golden file, the database or databases, and the ini file."""
        write_golden(directory / self.golden_name, self.golden)
        (directory / "pytest.ini").write_text(self._ini(), encoding="utf-8")
        newest = [] if self.partial is None else [self.partial]
        if self.options.two_databases:
            store(directory / "a.sqlite", self.side_a, self.chunks)
            store(directory / "b.sqlite", [*self.side_b, *newest], self.chunks)
        else:
            store(directory / "kebab.sqlite", [*self.runs, *newest], self.chunks)

    def write_for_lock(self, directory: Path) -> Path:
        """Write the index as it was when the golden file was locked."""
        path = directory / "indexed.sqlite"
        store(path, [], self.locked)
        return path

    def _ini(self) -> str:
        lines = ["[pytest]"]
        if self.options.in_ini:
            lines += [f"kebab_{name.replace('-', '_')} = {value}" for name, value in self.options.settings()]
            if self.options.gates:
                lines += ["kebab_gates =", *(f"    {gate}" for gate in self.options.gates)]
        return "\n".join(lines) + "\n"


def store(path: Path, runs: list[Run], chunks: tuple[Chunk, ...] | None) -> None:
    """Write a database with these runs and, unless None, these chunks."""
    with sqlite3.connect(path) as database:
        ids = [chunk.chunk_id for chunk in chunks or ()]
        key = "chunk_id" if len(set(ids)) == len(ids) else "chunk_id, chunker_version"
        database.executescript(EVAL_TABLES + ("" if chunks is None else CHUNK_TABLES.format(key=key)))
        for day, run in enumerate(runs, start=1):
            date = f"2026-01-{day:02}"
            row = (run.run_id, "suite", json.dumps(run.config), f"{date}T00:00:00Z")
            database.execute("INSERT INTO eval_runs VALUES (?, ?, ?, '{}', NULL, ?)", row)
            rows = [(run.run_id, query_id, text) for query_id, text in run.rows.items()]
            database.executemany("INSERT INTO eval_query_results VALUES (?, ?, ?)", rows)
        for chunk in chunks or ():
            database.execute("INSERT OR IGNORE INTO documents VALUES (?, ?)", (chunk.doc_id, chunk.path))
            database.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, 7, ?)", chunk_row(chunk))
    database.close()


def marked_partial(config: Entry) -> Entry | None:
    """The configuration of a run that was recorded from a selection (docs/getting-runs-in.md)."""
    return {**config, "pytest_kebab_eval": {"partial": "-k selected"}}


def chunk_row(chunk: Chunk) -> tuple[str, ...]:
    """The columns of a chunk, but for the token estimate."""
    heading, spans = json.dumps(chunk.heading), json.dumps(chunk.spans)
    return (chunk.chunk_id, chunk.doc_id, chunk.text, heading, spans, chunk.version)


def write_golden(path: Path, golden: list[Entry]) -> None:
    """Write a golden file in the format of its ending."""
    if path.suffix == ".json":
        text = json.dumps(golden)
    elif path.suffix == ".jsonl":
        text = "".join(json.dumps(entry) + "\n" for entry in golden)
    else:
        text = yaml.safe_dump(golden, sort_keys=False, allow_unicode=True)
    path.write_text(text, encoding="utf-8")
