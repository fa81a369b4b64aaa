"""What is to be compared, found out before any work: the runs, the matching mode, the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from pytest_kebab_eval.comparing.gate_grammar import Gate, overlap_metric, parse_gate, spelled_out
from pytest_kebab_eval.comparing.rules import SHORTEST_CLAIM, counted_claims
from pytest_kebab_eval.errors import ChunkerError, GateError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inputs.sides import (
    NamedSides,
    check_alike,
    find_sides,
    shown_version,
)
from pytest_kebab_eval.matching.locations import golden_versions, match_mode
from pytest_kebab_eval.metrics import Metric, all_metrics, all_names, custom_metric, is_metric
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database
from pytest_kebab_eval.text import first_of, printable


class Inputs(NamedTuple):
    """The runs of each side by their rightful names, how they are matched, and the gates."""

    golden: GoldenSet
    runs_a: tuple[Run, ...]  # none where B is judged alone
    runs_b: tuple[Run, ...]
    mode: MatchMode
    gates: tuple[Gate, ...]
    metrics: tuple[Metric, ...]  # beside those that are always measured
    warnings: tuple[str, ...]
    overlaps: tuple[int, ...]  # cutoffs of `overlap@k`, beside the usual ones

    @property
    def run_a(self) -> Run | None:
        return self.runs_a[0] if self.runs_a else None

    @property
    def run_b(self) -> Run:
        return self.runs_b[0]

    @property
    def name_a(self) -> str | None:
        return run_names(self.runs_a) or None

    @property
    def name_b(self) -> str:
        return run_names(self.runs_b)

    @property
    def has_several(self) -> bool:
        return len(self.runs_a) > 1 or len(self.runs_b) > 1


def run_names(runs: Iterable[Run]) -> str:
    """Several runs as one name."""
    return ",".join(run.run_id for run in runs)


class Task(NamedTuple):
    """What does not depend on the runs: golden queries, gates, and metrics of the user's own."""

    golden: GoldenSet
    gates: tuple[Gate, ...]
    metrics: tuple[Metric, ...]


CustomMetrics = Mapping[str, Callable[[GoldenQuery, QueryResult], "float | None"]]


def find_inputs(
    settings: Settings, custom_metrics: CustomMetrics | None = None, golden: GoldenSet | None = None
) -> Inputs:
    """Everything that can be wrong with what the user gave is found here, before any work."""
    return inputs_of(settings, read_task(settings, custom_metrics, golden))


def read_task(
    settings: Settings, custom_metrics: CustomMetrics | None, golden: GoldenSet | None = None
) -> Task:
    """Read what does not depend on the runs."""
    golden = golden or load_golden_set(settings.golden)
    metrics = tuple(custom_metric(name, function) for name, function in (custom_metrics or {}).items())
    known = [*all_names(), *(metric.name for metric in metrics)]
    gates = tuple(parse_gate(text, known) for text in spelled_out(settings.gates))
    for gate in gates:
        if gate.needs_baseline and settings.run_a is None:
            what = "a delta" if gate.delta else "the comparison of two runs"
            raise GateError(f"the gate '{gate}' is on {what}, which takes --kebab-run-a; there is only run B")
    return Task(golden, gates, metrics)


def inputs_of(settings: Settings, task: Task) -> Inputs:
    """Find the runs, and how they are matched."""
    golden, gates, metrics = task
    with ExitStack() as stack:
        sides = find_sides(stack, settings)
        a, runs_a, b, runs_b, unusual = sides
        mode = _mode(settings, golden, sides)
        warnings = [
            *unusual,
            *a.warnings,
            *b.warnings,
            *_unknown_ids(sides, mode),
            *_forbidden_ids(golden, mode),
            *_short_claims(golden),
            *_outdated(golden, [*((a, run) for run in runs_a), *((b, run) for run in runs_b)]),
            *check_alike(runs_a, "the runs of A"),
            *check_alike(runs_b, "the runs of B"),
        ]
    overlaps = (overlap_metric(gate.metric).cutoff for gate in gates if gate.metric.startswith("overlap@"))
    return Inputs(
        golden,
        runs_a,
        runs_b,
        mode,
        gates,
        (*_measured_at(gates), *metrics),
        tuple(dict.fromkeys(warnings)),
        tuple(cutoff for cutoff in overlaps if cutoff is not None),
    )


def _mode(settings: Settings, golden: GoldenSet, sides: NamedSides) -> MatchMode:
    runs = [(sides.a, run) for run in sides.runs_a[:1]] + [(sides.b, run) for run in sides.runs_b[:1]]
    mode = match_mode(runs, golden)
    if mode is MatchMode.FALLBACK and settings.strict_chunker_version:
        versions = golden_versions(golden, [database for database, _ in runs])
        raise ChunkerError(_strict_refusal(sides, versions))
    return mode


def _measured_at(gates: tuple[Gate, ...]) -> list[Metric]:
    """The metrics at further cutoffs, which gates name."""
    named = [gate.metric for gate in gates if is_metric(gate.metric)]
    known = {metric.name for metric in all_metrics()}
    wanted = (Metric.parse(name) for name in named if name not in known)
    return list({metric.name: metric for metric in wanted if metric.name not in known}.values())


def _outdated(golden: GoldenSet, runs: list[tuple[Database, Run]]) -> Iterator[str]:
    """Stored aggregates of another golden file are computed anew, but a trend over them would lie."""
    stored = {
        printable(run.run_id): database.stored_aggregate(run.run_id).get("golden_sha256")
        for database, run in runs
    }
    changed = [name for name, sha in stored.items() if sha is not None and sha != golden.fingerprint]
    if changed:
        yield f"the golden file has changed since the aggregate of {' and '.join(changed)} was stored"


def _unknown_ids(sides: NamedSides, mode: MatchMode) -> Iterator[str]:
    versions = {run.chunker_version for run in (*sides.runs_a, *sides.runs_b)}
    if sides.runs_a and mode is MatchMode.FALLBACK and len(versions) == 1:
        yield "the golden file's chunk ids are of another chunker than both runs, so places are compared"


def _short_claims(golden: GoldenSet) -> Iterator[str]:
    short = [query.id for query in golden.queries if query.claims and not counted_claims(query)]
    if short:
        yield (
            f"the claims of {first_of(short, 3, 40)} are ignored, all of them shorter than {SHORTEST_CLAIM}"
            " characters, so that no answer can lose one; make them longer, or use must_contain"
        )


def _forbidden_ids(golden: GoldenSet, mode: MatchMode) -> Iterator[str]:
    queries = golden.queries if mode is MatchMode.FALLBACK else ()
    count = sum(bool(query.forbidden_chunk_ids) for query in queries)
    if count:
        of = f"{count} {'query' if count == 1 else 'queries'}"
        yield (
            f"forbidden_chunk_ids (of {of}) are looked for by id alone, which another chunker's hits do not"
            " have; forbid documents (forbidden_doc_ids) instead"
        )


def _strict_refusal(sides: NamedSides, golden_versions: set[str | None]) -> str:
    a, b = sides.runs_a[0] if sides.runs_a else None, sides.runs_b[0]
    versions = f"B {shown_version(b.chunker_version)}"
    if a is not None:
        versions = f"A {shown_version(a.chunker_version)}, {versions}"
    if a is None or a.chunker_version == b.chunker_version:
        versions += f", the golden set {' and '.join(sorted(map(shown_version, golden_versions)))}"
    return (
        f"the chunker versions differ ({versions}) and --strict-chunker-version is set;"
        " re-run one of them, or drop the option to match by document and span"
    )
