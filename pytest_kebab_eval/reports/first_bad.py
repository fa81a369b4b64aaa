"""The first bad runs of what B lost, as reports and the command show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.inputs import Inputs, is_of_two_runs
from pytest_kebab_eval.model import MatchMode, Value
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database, whole_runs
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.unlike_runs import ConfigChange
    from pytest_kebab_eval.history.blame import Blame, Seen
    from pytest_kebab_eval.history.sightings import Sighting

MAX_READ = 5_000  # results that are read for a report
COMMIT_SHOWN = 12


def state_words(seen: Seen | Sighting, check: str) -> str:
    """What a run says of a query, such as `rank 2`, `not found`, `error: timed out`."""
    from pytest_kebab_eval.history.sightings import State

    reason = f": {brief(seen.reason, 100)}" if seen.reason else ""
    if seen.state is State.FOUND:
        return f"rank {seen.rank}" if seen.rank else "passed"
    if seen.state is State.LOST and check == "retrieval":
        return f"rank {seen.rank}, below the cutoff" if seen.rank else "not found"
    return {
        State.LOST: "failed",
        State.ERROR: f"error{reason}",
        State.ABSENT: "no result",
        State.UNREADABLE: f"cannot be read{reason}",
    }.get(seen.state, "not known")


def doubt_words(sureness: float | None, candidates: int) -> str:
    """`70% sure, 3 other runs not ruled out`; nothing of a first bad run that is 95 % sure."""
    from pytest_kebab_eval.history.odds import SURE

    if sureness is None or sureness >= SURE:
        return ""
    others = f", {counted(candidates - 1, 'other run')} not ruled out" if candidates > 1 else ""
    return f"{sureness:.0%} sure{others}"


# Shown wherever `doubt_words` are.
DOUBT_MEANING = (
    "n % sure: how likely it is that a query began to fail in this run. It may have begun in another, if it"
    " passed or failed there by luck: more runs make it surer, and kebab-eval blame names those not ruled out"
)


class LostQuery(Value, frozen=True):
    """A query of a step: the check that it lost, and how it was before and after."""

    query_id: str
    check: str
    before: str
    after: str
    unknown: int  # runs between the two that do not tell
    doubt: str  # how sure it is this run


class FlakyQuery(NamedTuple):
    """A query whose failures luck may explain: in how many runs it passed."""

    query_id: str
    check: str
    passed: int
    runs: int


class BadStep(Value, frozen=True):
    """From a good run to a bad one, and what was lost on the way."""

    good: Seen
    bad: Seen
    changes: tuple[ConfigChange, ...]
    queries: list[LostQuery]

    @property
    def doubt(self) -> str:
        """How sure it is of all that was lost, where that is the same."""
        doubts = {query.doubt for query in self.queries}
        return doubts.pop() if len(doubts) == 1 else ""


class FirstBad(Value, frozen=True):
    """The first bad run of each regression; the newest step is first."""

    between: int  # runs between A and B
    steps: list[BadStep]
    left_out: int = 0  # regressions that were not looked into
    flaky: tuple[FlakyQuery, ...] = ()  # those that luck may explain

    @property
    def doubt(self) -> str:
        """What `n % sure` means, if a step says so."""
        return DOUBT_MEANING if any(query.doubt for step in self.steps for query in step.queries) else ""


def find_first_bad(settings: Settings, inputs: Inputs, report: CompareReport) -> FirstBad | None:
    """The first bad run of each regression; None unless more than two runs of the suite are stored, and one
    is compared with one.

    No more than `MAX_READ` results are read: the last queries are left out, and counted.
    """
    if not is_of_two_runs(inputs, report) or not any(query.checks for query in report.per_query):
        return None
    with open_database(settings.db_b) as database:
        if len(whole_runs(database, inputs.run_b.suite)) <= 2:
            return None  # as in most gates, for which what walks the runs is not loaded
        from pytest_kebab_eval.history.blame import lost_in, runs_between, walk_between

        lost = lost_in(report)
        between = len(runs_between(database, inputs))
    if not lost:
        return None
    if not between:
        return FirstBad(0, [])
    ends = 5 if inputs.mode is MatchMode.FALLBACK else 3  # A once and B twice, and both to know how to match
    watched = lost[: MAX_READ // (between + ends)]
    if not watched:
        return FirstBad(between, [], len(lost))
    with walk_between(settings, inputs) as walk:
        blames = walk.blame(watched, lost_in_last=True)
        order = {run.run_id: position for position, (_, run) in enumerate(walk.runs)}
    steps = sorted(_steps(blames), key=lambda step: order[step.bad.run_id], reverse=True)
    flaky = (
        FlakyQuery(found.query_id, found.check, found.passed, found.runs)
        for found in blames
        if found.is_flaky
    )
    return FirstBad(between, steps, len(lost) - len(watched), tuple(flaky))


def _steps(blames: Sequence[Blame]) -> Iterable[BadStep]:
    """The steps, each with all that was lost in it."""
    found: dict[tuple[str, str], BadStep] = {}
    for blame in blames:
        good, bad = blame.last_good, blame.first_bad
        if good and bad:
            step = found.setdefault((good.run_id, bad.run_id), BadStep(good, bad, blame.config_changes, []))
            before, after = state_words(good, blame.check), state_words(bad, blame.check)
            doubt = doubt_words(blame.sureness, len(blame.candidates))
            step.queries.append(
                LostQuery(blame.query_id, blame.check, before, after, len(blame.unknown), doubt)
            )
    return found.values()
