"""What each command prints with `--json`, as a JSON schema: made of the types that are printed."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from pytest_kebab_eval.comparing.movement import Moved
from pytest_kebab_eval.comparing.noise.power import Power
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import Significance
from pytest_kebab_eval.history.blame import Blame
from pytest_kebab_eval.model import Recorded
from pytest_kebab_eval.reports.leaderboard import BoardRow
from pytest_kebab_eval.scoring.aggregates import SINGLES, TABLES
from pytest_kebab_eval.upkeep.reanchoring import Undecided
from pytest_kebab_eval.upkeep.validation import Finding, FindingKind

Schema = dict[str, Any]


class BisectedQuery(TypedDict):
    """A query that was lost in a commit."""

    query_id: str
    check: str
    good_rank: int | None
    bad_state: str
    bad_rank: int | None


class _Bisected(TypedDict):
    first_bad_commit: str | None
    candidates: list[str]
    uncommitted_changes: bool
    last_good_commit: str
    subject: str
    queries: list[BisectedQuery]


class Bisected(_Bisected, total=False):
    """A commit, or several of which one it is, and what was lost there; the last two with `--repeat`."""

    sureness: float
    flaky: bool


class ChurnRow(Moved, frozen=True, kw_only=True):
    """A query whose results moved."""

    query: str
    in_golden: bool
    kind: str | None


class CorrectedTest(Significance, frozen=True, kw_only=True):
    """A metric of a run against A, corrected over the runs."""

    p_corrected: float | None


class ShownRow(BoardRow, frozen=True, kw_only=True):
    """A run of a leaderboard."""

    significance: dict[str, CorrectedTest]  # type: ignore[assignment]  # a type for a schema, never a value
    verdict: str


class ShownBoard(TypedDict):
    """A leaderboard."""

    run_a: str
    values_a: dict[str, float | None]
    sorted_by: str
    runs: list[ShownRow]


class CopiedRuns(TypedDict):
    """The ids of runs that were copied, and of those that were there."""

    copied: list[str]
    there_already: list[str]


class Sizes(TypedDict):
    """How many bytes a store takes."""

    before: int
    after: int


class Pruned(TypedDict):
    """The ids of runs that went, and of those that a tag kept; no `bytes` where no room was given back."""

    removed: list[str]
    tagged: list[str]
    dry_run: bool
    bytes: Sizes | None


class ListedRun(TypedDict):
    """A stored run."""

    run_id: str
    suite: str
    commit_hash: str | None
    created_at: str
    queries: int
    tags: list[str]
    recorded: Recorded


class SignificantStep(TypedDict):
    """The largest of the significant steps of a drift."""

    run_id: str
    run_before: str
    change: float


class ShownDrift(TypedDict):
    """A metric that got worse in small steps."""

    metric: str
    change: float
    since: str
    runs: int
    significant_step: SignificantStep | None


class _PastRun(TypedDict):
    run_id: str
    created_at: str
    values: dict[str, float | None]


class PastRun(_PastRun, total=False):
    """A run of the history; the newest of a suite has its drifts, if there are any."""

    of_other_golden: bool
    drifts: list[ShownDrift]


class LeftOut(TypedDict):
    """A question of the log that was not proposed."""

    line: int
    question: str
    asked: int
    reason: str


class Proposed(TypedDict):
    """Golden queries, as entries of a golden file, and the questions that were left out."""

    proposed: list[dict[str, Any]]
    near_duplicates: list[LeftOut]
    without_result: list[LeftOut]


class ReanchoredQuery(TypedDict):
    """A query whose ids were replaced; `ids` are the new ones by the old."""

    query_id: str
    line: int
    ids: dict[str, list[str]]
    by: str
    old_texts: dict[str, str]
    new_texts: dict[str, str]


class Reanchored(TypedDict):
    """What became of the golden file's ids."""

    written: bool
    changed: list[ReanchoredQuery]
    undecided: list[Undecided]


def _nested(schema: Schema) -> None:
    """The metrics of a run or a comparison as `aggregate_json` has them."""
    number = {"type": ["number", "null"]}
    by_name = {"type": "object", "additionalProperties": number}
    for name in ("AggregateMetrics", "Deltas"):
        properties = schema["$defs"][name]["properties"]
        del properties["values"]
        added = {**dict.fromkeys(TABLES, by_name), **dict.fromkeys(SINGLES, number), "extra": by_name}
        properties |= added
        required = [key for key in schema["$defs"][name]["required"] if key != "values"]
        schema["$defs"][name]["required"] = [*required, *added]


def _as_blamed(schema: Schema) -> None:
    """A blame has its status in a word, instead of what that is made of."""
    blame = schema["$defs"]["Blame"]
    for name in ("is_judged", "is_flaky", "flips"):
        del blame["properties"][name]
    blame["properties"]["status"] = {"type": "string"}
    blame["required"].append("status")


def _as_found(schema: Schema) -> None:
    """A finding has its kind by name."""
    schema["$defs"]["FindingKind"]["enum"] = sorted(kind.name.lower() for kind in FindingKind)


OUTPUTS: dict[str, Any] = {
    "aggregate": dict[str, dict[str, tuple[float | None, float | None]]],
    "bisect": list[Bisected],
    "blame": list[Blame],
    "churn": list[ChurnRow],
    "compare": CompareReport,
    "copy": CopiedRuns,
    "history": list[PastRun],
    "leaderboard": ShownBoard,
    "noise": Power,
    "propose": Proposed,
    "prune": Pruned,
    "reanchor": Reanchored,
    "runs": list[ListedRun],
    "tag": dict[str, str | None],
    "validate": list[Finding],
}
_CHANGES = {"blame": _as_blamed, "compare": _nested, "validate": _as_found}  # where more than a type is told


def output_schema(command: str) -> Schema:
    """That of what the command prints with `--json`; `compare` prints what `report.json` has."""
    schema = msgspec.json.schema(OUTPUTS[command])
    if command in _CHANGES:
        _CHANGES[command](schema)
    title = f"kebab-eval {command} --json"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
