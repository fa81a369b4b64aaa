"""What is to be compared, found out before any work: the runs, the matching mode, the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from pytest_kebab_eval.comparing.config_changes import config_changes
from pytest_kebab_eval.comparing.gates import Gate, parse_gate
from pytest_kebab_eval.comparing.movement import movement_metric
from pytest_kebab_eval.errors import ChunkerError, GateError, NoDatabase, NoSuchRun, RunNameError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.matching.locations import golden_versions, match_mode
from pytest_kebab_eval.metrics import Metric, all_metrics, all_names, custom_metric, is_metric, metrics_at
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Database, find_runs, in_order, open_database
from pytest_kebab_eval.text import brief, printable


class Inputs(NamedTuple):
    """The runs of each side by their rightful names, how they are matched, and the gates."""

    golden: GoldenSet
    runs_a: tuple[Run, ...]  # none where B is judged alone
    runs_b: tuple[Run, ...]
    mode: MatchMode
    gates: tuple[Gate, ...] = ()
    metrics: tuple[Metric, ...] = ()  # beside those that are always measured
    warnings: tuple[str, ...] = ()
    overlaps: tuple[int, ...] = ()  # cutoffs of `overlap@k`, beside the usual ones

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


class Baseline(NamedTuple):
    """The runs of A, as they were found before run B was recorded; where none is yet, a warning."""

    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = ()


CustomMetrics = Mapping[str, Callable[[GoldenQuery, QueryResult], "float | None"]]


def find_inputs(
    settings: Settings, custom_metrics: CustomMetrics | None = None, golden: GoldenSet | None = None
) -> Inputs:
    """Everything that can be wrong with what the user gave is found here, before any work."""
    return inputs_of(settings, read_task(settings, custom_metrics, golden))


def read_task(
    settings: Settings, custom_metrics: CustomMetrics | None = None, golden: GoldenSet | None = None
) -> Task:
    """Read what does not depend on the runs."""
    golden = golden or load_golden_set(settings.golden)
    metrics = tuple(custom_metric(name, function) for name, function in (custom_metrics or {}).items())
    known = [*all_names(), *(metric.name for metric in metrics)]
    gates = tuple(parse_gate(text, known) for text in settings.gates)
    for gate in gates:
        if gate.needs_baseline and settings.run_a is None:
            what = "a delta" if gate.delta else "the comparison of two runs"
            raise GateError(f"the gate '{gate}' is on {what}, which takes --kebab-run-a; there is only run B")
    return Task(golden, gates, metrics)


def inputs_of(settings: Settings, task: Task) -> Inputs:
    """Find the runs, and how they are matched."""
    golden, gates, metrics = task
    with ExitStack() as stack:
        b = stack.enter_context(open_database(settings.db_b, settings.mask))
        runs_b = _in_order(find_runs(b, settings.run_b, settings.suite))
        a, runs_a, missing = _baseline(stack, settings, b, len(runs_b))
        _check_replicates(settings, runs_a, runs_b)
        run_a, run_b = runs_a[0] if runs_a else None, runs_b[0]
        runs = [(a, run_a), (b, run_b)] if run_a else [(b, run_b)]
        mode = match_mode(runs, golden)
        if mode is MatchMode.FALLBACK and settings.strict_chunker_version:
            versions = golden_versions(golden, [database for database, _ in runs])
            raise ChunkerError(_strict_refusal(run_a, run_b, versions))
        warnings = dict.fromkeys(
            [
                *missing,
                *a.warnings,
                *b.warnings,
                *_suspicious(settings, run_a, run_b, mode),
                *_outdated(golden, [*((a, run) for run in runs_a), *((b, run) for run in runs_b)]),
                *check_alike(runs_a, "the runs of A"),
                *check_alike(runs_b, "the runs of B"),
            ]
        )
    overlaps = (movement_metric(gate.metric).cutoff for gate in gates if gate.metric.startswith("overlap@"))
    return Inputs(
        golden,
        runs_a,
        runs_b,
        mode,
        gates,
        (*_measured_at(settings.cutoffs, gates), *metrics),
        tuple(warnings),
        (*settings.cutoffs, *(cutoff for cutoff in overlaps if cutoff is not None)),
    )


def _in_order(runs: Iterable[Run]) -> tuple[Run, ...]:
    """In one order, so that the order in which they are named changes nothing."""
    return tuple(sorted(runs, key=lambda run: run.run_id))


def _check_replicates(settings: Settings, a: tuple[Run, ...], b: tuple[Run, ...]) -> None:
    """Refuse sides that share a run."""
    if len(a) + len(b) <= 2:
        return
    shared = {run.run_id for run in a} & {run.run_id for run in b} if settings.db_a == settings.db_b else ()
    for run_id in sorted(shared):
        raise RunNameError(f"the run '{brief(run_id)}' is named for A and for B; name it for one of them")


def check_alike(runs: Sequence[Run], whose: str = "the runs") -> Iterator[str]:
    """Warnings of runs that are not of one commit and configuration: what differs there is taken for noise.

    Runs of different chunkers are refused: their chunk ids cannot be told right from wrong in one way.
    """
    versions = sorted({_version(run.chunker_version) for run in runs})
    if len(versions) > 1:
        raise RunNameError(
            f"{whose} have different chunker versions ({', '.join(versions)});"
            " replicates are runs of one configuration"
        )
    keys = {change.key for run in runs[1:] for change in config_changes(runs[0], run)}
    if keys:
        shown = ", ".join(brief(key, 40) for key in sorted(keys)[:5])
        yield f"{whose} differ in their configuration ({shown}), which counts as noise"
    commits = {run.commit_hash for run in runs if run.commit_hash}
    if len(commits) > 1:
        yield f"{whose} are of {len(commits)} commits; what differs there counts as noise"


def _measured_at(cutoffs: tuple[int, ...], gates: tuple[Gate, ...]) -> list[Metric]:
    """The metrics at further cutoffs: those of the setting, and those that gates name."""
    named = [gate.metric for gate in gates if is_metric(gate.metric)]
    known = {metric.name for metric in all_metrics()}
    wanted = [*metrics_at(cutoffs), *(Metric.parse(name) for name in named if name not in known)]
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


def _suspicious(settings: Settings, a: Run | None, b: Run, mode: MatchMode) -> Iterator[str]:
    if a is None:
        return
    if mode is MatchMode.FALLBACK and a.chunker_version == b.chunker_version:
        yield "the golden file's chunk ids are of another chunker than both runs, so places are compared"
    if (a.run_id, settings.db_a) == (b.run_id, settings.db_b):
        yield "A and B are the same run"
    elif in_order([a, b])[0] is a and a.created_at != b.created_at:
        yield "A is newer than B; are the two swapped?"


def _baseline(
    stack: ExitStack, settings: Settings, b: Database, most_runs: int
) -> tuple[Database, tuple[Run, ...], list[str]]:
    """The runs of A and their database; none, with a warning, where it is not there yet and need not be."""
    if settings.run_a is None:
        return b, (), []
    same = settings.db_a == settings.db_b
    try:
        a = b if same else stack.enter_context(open_database(settings.db_a, settings.mask))
        return a, _in_order(find_runs(a, settings.run_a, settings.suite)), []
    except (NoDatabase, NoSuchRun) as error:
        return b, (), [_no_baseline(settings, error, most_runs=most_runs if same else 0)]


def find_baseline(settings: Settings) -> Baseline:
    """Run A, while run B is not recorded yet, so that `latest` is none but the latest before B."""
    if settings.run_a is None:
        return Baseline(())
    try:
        with open_database(settings.db_a, settings.mask) as a:
            return Baseline(_in_order(find_runs(a, settings.run_a, settings.suite)))
    except (NoDatabase, NoSuchRun) as error:
        return Baseline((), (_no_baseline(settings, error, most_runs=0),))


def _no_baseline(settings: Settings, error: NoDatabase | NoSuchRun, most_runs: int) -> str:
    """The warning that there is no run A yet; or the error, where there are other runs than B."""
    if not isinstance(error, NoDatabase):  # or else there is nothing at all
        with open_database(settings.db_a) as a:
            others = [run for run in a.runs() if settings.suite in (None, run.suite)]
        if len(others) > most_runs:
            raise type(error)(f"run A: {error}") from None
    if settings.if_no_baseline != "pass":
        hint = "if there is no baseline yet, --kebab-if-no-baseline=pass judges run B alone"
        raise type(error)(f"run A: {error}\n{hint}") from None
    return f"there is no baseline '{printable(settings.run_a or '')}' yet, so run B is judged alone"


def _strict_refusal(a: Run | None, b: Run, golden_versions: set[str | None]) -> str:
    versions = f"B {_version(b.chunker_version)}"
    if a is not None:
        versions = f"A {_version(a.chunker_version)}, {versions}"
    if a is None or a.chunker_version == b.chunker_version:
        versions += f", the golden set {' and '.join(sorted(map(_version, golden_versions)))}"
    return (
        f"the chunker versions differ ({versions}) and --strict-chunker-version is set;"
        " re-run one of them, or drop the option to match by document and span"
    )


def _version(version: str | None) -> str:
    return "unknown" if version is None else printable(version)
