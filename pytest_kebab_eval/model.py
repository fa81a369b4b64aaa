"""The values that flow through the program; frozen, and without a word of how they are read or compared."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from pytest_kebab_eval.limits import GOLDEN_NUMBER

Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Score = Annotated[float, msgspec.Meta(ge=0, le=5)]
# Of golden queries, as somebody writes them.
Text = Annotated[str, Meta(min_length=1, extra_json_schema={"pattern": r"\S"})]  # and not blank
Texts = tuple[Text, ...]
Cutoff = Annotated[int, Meta(ge=1, le=GOLDEN_NUMBER)]
Number = Annotated[float, Meta(ge=-GOLDEN_NUMBER, le=GOLDEN_NUMBER)]
Gain = Annotated[float, Meta(ge=0, le=GOLDEN_NUMBER)]
SliceName = Annotated[str, Meta(pattern=r"^[^={}]*[^={}\s][^={}]*$")]  # which a gate can name
TargetPlaces = Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)]
SupportGroup = Annotated[tuple[int, ...], Meta(min_length=1)]  # of places in gold_supports


class Value(msgspec.Struct, frozen=True, gc=False):
    """A frozen record; what it is made of comes before it, so no cycle of them is there to be collected."""


class Span(Value, frozen=True, omit_defaults=True):
    """Where in a document something is: a source span, or a citation with its path."""

    kind: str
    path: str | None = None
    section: str | None = None
    start: float | None = None
    end: float | None = None
    line_start: float | None = None
    line_end: float | None = None
    page: int | None = None
    char_start: float | None = None
    char_end: float | None = None
    x: float | None = None
    y: float | None = None
    w: float | None = None
    h: float | None = None
    start_ms: float | None = None
    end_ms: float | None = None


class Retrieval(Value, frozen=True):
    """How a hit was found, as far as it is shown."""

    fusion_score: Any = None


class Hit(Value, frozen=True):
    """One retrieved chunk."""

    rank: Positive
    chunk_id: str | None = None
    doc_id: str | None = None
    doc_path: str | None = None
    heading_path: tuple[str, ...] | None = None
    snippet: str | None = None
    text: str | None = None
    citation: Span | None = None
    score: Any = None  # shown, not judged, as all of `retrieval`
    retrieval: Retrieval | str | float | bool | tuple[Any, ...] | None = None

    @property
    def shown_score(self) -> float | None:
        """The score of fusion, or the hit's own, if one is stored and is a number."""
        fused = self.retrieval.fusion_score if isinstance(self.retrieval, Retrieval) else None
        for score in (fused, self.score):
            if isinstance(score, (int, float)) and not isinstance(score, bool):
                return score
        return None


class Cited(Value, frozen=True):
    """One citation of an answer."""

    citation: Span | None = None
    chunk_id: str | None = None
    marker: Any = None  # shown, not judged


class Usage(Value, frozen=True):
    """What an answer took."""

    prompt_tokens: Amount | None = None
    completion_tokens: Amount | None = None


class Answer(Value, frozen=True):
    """What a RAG pipeline answered; `grounded` false means that it refused."""

    grounded: bool
    text: str = msgspec.field(default="", name="answer")
    citations: tuple[Cited, ...] = ()
    refusal_reason: Any = None  # shown, not judged
    usage: Usage | None = None


class Scope(Value, frozen=True):
    """The folders that a query was narrowed to."""

    mode: str | None = None
    folders: tuple[str, ...] | None = None


class Timings(Value, frozen=True):
    """Milliseconds of each stage."""

    folder_selection: Amount | None = None
    retrieval: Amount | None = None
    generation: Amount | None = None
    judge: Amount | None = None


class Judgment(Value, frozen=True):
    """The scores of one judge, 0 to 5."""

    groundedness: Score | None = None
    correctness: Score | None = None


class Judge(Judgment, frozen=True):
    """A stored judgment, who made it, and perhaps a second one to check it by."""

    model: str | None = None
    prompt_version: str | None = None
    temperature: float | str | None = None
    second: Judgment | None = None
    tokens: Amount | None = None
    supported_claims: Any = None  # shown, not judged, as what the judge was given
    unsupported_claims: Any = None
    input: Any = None


class QueryResult(Value, frozen=True, kw_only=True):
    """What one run stored for one query; hits are in rank order."""

    query_id: str = ""
    query: str = ""
    hits: tuple[Hit, ...] = msgspec.field(name="hits_top_k")
    answer: Answer | None = None
    error: str | None = None
    elapsed_ms: Amount | None = None
    timed_out: bool | None = None
    cost_usd: Amount | None = None
    timings_ms: Timings | None = None
    scope: Scope | None = None
    judge: Judge | None = None


class Unreadable(Value, frozen=True):
    """A stored result that does not parse, and why."""

    query_id: str
    reason: str


class Recorded(Value, frozen=True, omit_defaults=True):
    """What is known of how a run was recorded; stored with its configuration, and no part of it."""

    branch: str | None = None
    dirty: bool | None = None  # whether files had uncommitted changes
    partial: str | None = None  # the selection that it was recorded from, such as `-k sunday`

    @property
    def is_partial(self) -> bool:
        """Whether the run does not stand for its time, being of a selection."""
        return self.partial is not None


class Run(Value, frozen=True):
    """A stored evaluation run, without its results; secrets in its configuration are masked."""

    run_id: str
    suite: str = ""
    config: dict[str, Any] = {}
    commit_hash: str | None = None
    created_at: str = ""
    digests: dict[str, str] = {}  # of the secrets, by dotted key, to tell whether they changed
    recorded: Recorded = Recorded()

    @property
    def chunker_version(self) -> str | None:
        """The chunker that made this run's chunk ids, if the run says."""
        version = self.config.get("chunker_version")
        return None if version is None else str(version)


class Support(Value, frozen=True, forbid_unknown_fields=True):
    """An anchor in a document that survives re-chunking."""

    path: Text
    heading: str = ""
    snippets: Texts = ()


class ExpectedSpan(Value, frozen=True):
    """The source span of an expected chunk, or a target of its own if it names none."""

    doc_id: str
    span: Span
    chunk_id: str | None = None


# What may be lost and accepted; an error, a missing result or a forbidden hit may not.
AcceptableCheck = Literal[
    "retrieval",
    "text",
    "answer",
    "refusal",
    "citation",
    "loss",
    "attribution",
    "coverage",
    "rank_limit",
    "must_cite",
    "miss",
]
ACCEPTABLE_CHECKS: tuple[AcceptableCheck, ...] = get_args(AcceptableCheck)


class Xfail(Value, frozen=True, forbid_unknown_fields=True):
    """A known regression, accepted until a date."""

    reason: Text
    until: datetime.date | None = None
    checks: Annotated[tuple[AcceptableCheck, ...], Meta(min_length=1)] = ACCEPTABLE_CHECKS


class BrokenRule(Value, frozen=True):
    """A text that an answer must contain and lacks, or one that it says though it is forbidden."""

    text: str
    is_forbidden: bool

    @property
    def words(self) -> str:
        """What stands before the text."""
        return "says the forbidden" if self.is_forbidden else "lacks"


class GoldenQuery(Value, frozen=True):
    """One entry of the golden file; `expected_doc_ids` and `claims` are None where the key is missing."""

    id: Text
    query: Text
    line: int = 0
    expected_chunk_ids: Texts = ()
    expected_doc_ids: Texts | None = None
    answerable: bool | None = None
    must_contain: Texts = ()
    forbidden: Texts = ()
    claims: Texts | None = None  # none of them, written out: no answer contains one
    relevance: dict[Text, Gain] = {}
    gold_supports: tuple[Support, ...] = ()
    required_support_groups: tuple[SupportGroup, ...] = ()
    expected_spans: tuple[ExpectedSpan, ...] = ()
    expected_answer: Text | None = None
    expected_texts: dict[Text, Text] = {}
    k: Cutoff | None = None
    lang: Text | None = None
    difficulty: Text | None = None
    category: Text | None = None
    tags: Texts = ()
    group: Text | None = None
    xfail: Xfail | None = None
    forbidden_chunk_ids: Texts = ()
    forbidden_doc_ids: Texts = ()
    must_rank_at_most: Cutoff | None = None
    must_cite: Literal["all"] | TargetPlaces | None = None  # places of targets, supports first
    require: Literal["all", "any"] | None = None
    alternatives: tuple[tuple[str, ...], ...] = ()  # of the expected chunks: those that are one target
    doc_alternatives: tuple[tuple[str, ...], ...] = ()  # of the expected documents
    metadata: dict[SliceName, Any] = {}  # each text, number and flag of it is a slice

    @property
    def can_be_answered(self) -> bool | None:
        """Whether an answer is wanted: true, false (it should refuse) or unknown."""
        if self.answerable is not None:
            return self.answerable
        if self.expected_doc_ids == ():
            return False
        return True if self.expects_anything else None

    @property
    def expects_anything(self) -> bool:
        """Whether the entry names something to find or to say."""
        return bool(
            self.expected_doc_ids
            or (gains_of(self) if self.relevance else self.expected_chunk_ids)
            or self.must_contain
            or self.claims
            or self.gold_supports
            or self.expected_spans
            or self.expected_answer
        )


def gains_of(query: GoldenQuery) -> dict[str, float]:
    """The expected chunks with their gains: 1, unless `relevance` says otherwise; 0 is not a target."""
    gains = dict.fromkeys(query.expected_chunk_ids, 1.0)
    if not query.relevance:
        return gains
    gains.update(query.relevance)
    return {chunk_id: gain for chunk_id, gain in gains.items() if gain > 0}


def is_labelled(query: GoldenQuery, hit: Hit) -> bool:
    """Whether the golden file names a hit's chunk, as right or as wrong."""
    return (
        hit.chunk_id in query.expected_chunk_ids
        or hit.chunk_id in query.relevance
        or hit.chunk_id in query.forbidden_chunk_ids
        or hit.doc_id in query.forbidden_doc_ids
    )


def members_of(ids: Sequence[str], alternatives: Iterable[tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    """For each target, the places of its ids: one, or those of all alternatives."""
    target_of = {name: group for group in alternatives for name in group}
    members: dict[object, list[int]] = {}
    for place, name in enumerate(ids):
        members.setdefault(target_of.get(name, name), []).append(place)
    return tuple(map(tuple, members.values()))


class MatchMode(enum.Enum):
    """How the hits of a comparison are told right from wrong."""

    EXACT = "exact"
    FALLBACK = "fallback_doc_span"


class ComparisonKind(str, enum.Enum):
    """What became of a query between run A and run B."""

    __str__ = str.__str__  # `win`, as in the reports

    WIN = "win"
    LOSS = "loss"
    DRAW = "draw"
    REGRESSION = "regression"
    NEW = "new"  # run A has no result for it


class ForbiddenHit(Value, frozen=True):
    """A hit that the golden file forbids, by the chunk or document id that it names."""

    rank: int
    id: str


class QueryComparison(Value, frozen=True):
    """One query, A against B; the ranks are those of the first correct hit."""

    query_id: str
    kind: ComparisonKind | None  # None: run B was judged alone
    a_hit_rank: int | None
    b_hit_rank: int | None
    note: str | None = None
    cause: str | None = None
    checks: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    overlap: float | None = None  # of the two rankings, within the comparison's cutoff
    required: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET  # of the checks, by the golden file
    forbidden: tuple[ForbiddenHit, ...] | msgspec.UnsetType = msgspec.UNSET  # in the top hits of B
    wrong: tuple[str, ...] = ()  # what B gets wrong, whatever A had

    @property
    def is_reworded(self) -> bool:
        """Whether run A was asked another question, and the golden file was edited since."""
        return self.kind is ComparisonKind.NEW and (self.note or "").startswith("reworded")

    @property
    def is_partial_loss(self) -> bool:
        """Whether B lost a target while another is still found."""
        return "coverage" in self.checks and self.b_hit_rank is not None

    def fails_on(self, checks: frozenset[str], loss_over: int) -> bool:
        """Whether the query fails where these checks do, or by what the golden file requires.

        Where they have `loss`, a rank may be worse by as much as `loss_over`.
        """
        if self.required:
            return True
        if self.checks and not checks.isdisjoint(self.checks):
            return True
        return "loss" in checks and self.fell_by > loss_over

    @property
    def fell_by(self) -> int:
        """By how many ranks a loss fell, in the runs that are shown; 0 for any other kind."""
        is_loss = self.kind is ComparisonKind.LOSS
        return (self.b_hit_rank or 0) - (self.a_hit_rank or 0) if is_loss else 0
