"""The sentences and number formats that every report shares."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from pytest_kebab_eval.comparing.checks import CHECKS_OF_B, LOSS
from pytest_kebab_eval.comparing.decide import QueryRates
from pytest_kebab_eval.comparing.replicates import CheckRates, ReplicateReport, unseen_flip
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import LEAST_P, WORSE, paired_significance
from pytest_kebab_eval.history.drift import Drift
from pytest_kebab_eval.model import ComparisonKind, QueryComparison
from pytest_kebab_eval.reports.rows import summary_rows
from pytest_kebab_eval.text import brief, first_of

CAUSES = {
    "absent": "run B has no result for this query",
    "errored": "run B errored on this query",
    "empty": "run B found nothing at all",
    "below_cutoff": "it is there, but too far down",
    "same_text": "run B has the expected text, under an id that nobody labelled",
    "not_in_index": "the index no longer has the expected chunk",
    "wrong_chunk": "the right document, but another part of it",
    "gone": "it is not in what run B stored",
    "not_cited": "the answer's citations no longer lead to a chunk, or to no expected one",
    "no_answer": "run B has no answer to this query",
    "refused": "run B refused to answer",
    "not_refused": "run B answered what it should have refused",
    "answer_rule": "the answer breaks a rule of the golden file",
    "claim_missing": "the answer contains no claim of the golden file",
    "forbidden": "run B found what the golden file forbids",
}

MOVEMENT = ("overlap@10", "rbo")
NAMES_SHOWN = 3
_PARTLY = "B lost a target"


# -- sentences -----------------------------------------------------------------------------------


def headline(report: CompareReport) -> str:
    """The comparison in one sentence, and what else went wrong."""
    sentences = [_main_sentence(report)]
    partial = len(partial_losses(report))
    if partial and not sentences[0].startswith(_PARTLY):
        sentences.append(f"{_PARTLY} on {counted(partial, 'further query')}, while another is still found.")
    failed = sum(not gate.passed for gate in report.gates)
    if failed:
        sentences.append(f"{counted(failed, 'gate')} failed.")
    if report.accepted:
        sentences.append(f"The loss of {counted(len(report.accepted), 'query')} is accepted (xfail).")
    new = report.count(ComparisonKind.NEW)
    if new:
        failed_new = [query for query in lost_queries(report) if query.kind is ComparisonKind.NEW]
        have, which = ("has", "") if new == 1 else ("have", f"{len(failed_new)} of them ")
        end = f", and {which}{_failed_or_errored(failed_new)}" if failed_new else ""
        sentences.append(f"{counted(new, 'query')} {have} no baseline{end}.")
    if report.removed:
        sentences.append(f"{counted(len(report.removed), 'query')} of A left the golden file.")
    if report.unreadable:
        sentences.append(f"{counted(len(report.unreadable), 'result')} cannot be read.")
    return " ".join(sentences)


def review_command(report: CompareReport, query_id: str) -> str | None:
    """What shows the hits of a query that nobody has labelled; None where there is no run A."""
    if report.run_a is None:
        return None
    return shlex.join(["kebab-eval", "review", report.run_a, report.run_b, "--query", query_id])


def partial_losses(report: CompareReport) -> list[QueryComparison]:
    """The queries of which B lost a target and found another, which do not fail for that."""
    failing = {query.query_id for query in failed_checks(report)}
    return [query for query in report.per_query if query.is_partial_loss and query.query_id not in failing]


def _main_sentence(report: CompareReport) -> str:
    compared = len(report.per_query) - report.count(ComparisonKind.NEW)
    queries = counted(compared, "query")
    failed = [query for query in lost_queries(report) if query.kind is not ComparisonKind.NEW]
    worse = report.count(ComparisonKind.LOSS)
    if report.problems:
        losses = f"; {_failures(report, failed, queries)}" if failed and report.run_a else ""
        return f"This comparison cannot be relied on{losses}."
    if report.run_a is None:
        said = f"{len(failed)} of {queries} {_failed_or_errored(failed)}"
        return f"{said}." if failed else f"{queries}, no errors."
    if failed:
        return f"{_failures(report, failed, queries)}."
    if worse_by_noise(report):
        return f"{_noisy(report, queries)}{f'; it ranks {worse} worse' if worse else ''}."
    lost_nothing = "B lost nothing but what is accepted" if report.accepted else "B lost nothing"
    partial = len(partial_losses(report))
    if partial:
        ranks = f"; it ranks {worse} worse" if worse else ""
        return f"{_PARTLY} on {partial} of {queries}, while another is still found{ranks}."
    if worse:
        return f"{lost_nothing}, but ranks {worse} of {queries} worse."
    return f"{lost_nothing}{'' if report.accepted else ' that A had'}, over {queries}."


def _failures(report: CompareReport, failed: list[QueryComparison], queries: str) -> str:
    """On how many queries B lost something, on how many others it breaks a rule of B alone, or fell."""
    rules = {check.name for check in CHECKS_OF_B}
    fell = [query for query in failed if query.fell_by and not _failing(report, query)]
    broken = [query for query in failed if query.checks and rules.issuperset(_failing(report, query))]
    broken = [query for query in broken if query not in fell]
    names = ", ".join(sorted({check for query in broken for check in _failing(report, query)}))
    over = report.comparison.loss_over if report.comparison else None
    ranks = f"by more than {counted(over, 'rank')}" if over else "in rank"
    parts = {
        "lost something on": len(failed) - len(broken) - len(fell),
        f"breaks a rule ({names}) on": len(broken),
        f"fell {ranks} on": len(fell),
    }
    said = [f"{words} {count}" for words, count in parts.items() if count]
    first, *others = said
    return f"B {first} of {queries}{''.join(f', and {other} more' for other in others)}"


def _failing(report: CompareReport, query: QueryComparison) -> list[str]:
    """The checks that a query fails on."""
    counted = {*(report.comparison.checks if report.comparison else query.checks), *(query.required or ())}
    return [check for check in query.checks if check in counted]


def _failed_or_errored(queries: list[QueryComparison]) -> str:
    """What became of queries without a baseline: `errored`, or `failed (error, forbidden)`."""
    checks = sorted({check for query in queries for check in query.checks})
    return "errored" if checks in ([], ["error"]) else f"failed ({', '.join(checks)})"


def worse_by_noise(report: CompareReport) -> list[str]:
    """The queries that did worse in B, but not more than noise explains, the largest drops first."""
    worse = [rates for rates in _counted_rates(report) if rates.noise is not None and not rates.lost]
    worse.sort(key=lambda rates: rates.b / rates.runs_b - rates.a / rates.runs_a)
    return [*dict.fromkeys(rates.query_id for rates in worse)]


def _counted_rates(report: CompareReport) -> list[QueryRates]:
    """The rates of checks that count as a failure."""
    checks = report.comparison.checks if report.comparison else ()
    return [rates for rates in report.rates or () if rates.check in checks]


def _better(report: CompareReport) -> int:
    """How many queries did better in B."""
    rates = _counted_rates(report)
    return len({rate.query_id for rate in rates if rate.b * rate.runs_a > rate.a * rate.runs_b})


def _noisy(report: CompareReport, queries: str) -> str:
    """What is to be made of queries that did worse, none of which can be said to be lost."""
    unsure, better = worse_by_noise(report), _better(report)
    said = f"B did worse on {len(unsure)} of {queries}"
    worse = [
        f"{row.name} is worse ({format_p(row.significance.p)})"
        for row, direction, _ in summary_rows(report)
        if direction < 0 and row.significance and row.significance.p is not None
    ]
    if worse:
        return f"{said} and better on {better}; no query stands out from noise, but {worse[0]}"
    changed = len(unsure) + better
    tested = paired_significance([-1.0] * len(unsure) + [1.0] * better, changed, yes_no=True)
    if tested.verdict == WORSE:
        shared = "which is noise only if queries of one run flip together, and so few runs cannot tell"
        return f"{said} and better on {better}, {shared} ({first_of(unsure, NAMES_SHOWN, 40)})"
    return f"{said}, as noise alone might ({first_of(unsure, NAMES_SHOWN, 40)}), and better on {better}"


def has_failed(report: CompareReport) -> bool:
    """Whether B lost something, a gate failed, or the comparison is not to be relied on."""
    gate_failed = any(not gate.passed for gate in report.gates)
    return bool(lost_queries(report) or report.unreadable or report.problems or gate_failed)


def verdict_effect(report: CompareReport) -> str:
    """What the comparison comes to, in one word: lost, worse or better."""
    if has_failed(report):
        return "lost"
    is_worse = report.run_a is not None and bool(report.count(ComparisonKind.LOSS) or partial_losses(report))
    return "worse" if is_worse or len(worse_by_noise(report)) > _better(report) else "better"


def lost_queries(report: CompareReport) -> list[QueryComparison]:
    """The queries on which B lost something, without those whose loss is accepted (xfail)."""
    accepted = set(report.accepted)
    return [query for query in failed_checks(report) if query.query_id not in accepted]


def failed_checks(report: CompareReport) -> list[QueryComparison]:
    """The queries that lost a check which counts as a failure, or that B has no result for."""
    if report.comparison is None:
        return [query for query in report.per_query if query.checks]
    counted_checks, loss_over = frozenset(report.comparison.checks), report.comparison.loss_over or 0
    return [query for query in report.per_query if query.fails_on(counted_checks, loss_over)]


def kind_counts(report: CompareReport) -> str:
    """`2 wins, 1 loss, 4 draws, 1 regression`, and `3 new` if there are any."""
    *kinds, _ = ComparisonKind
    new = report.count(ComparisonKind.NEW)
    counts = [counted(report.count(kind), kind.value) for kind in kinds]
    partial = sum(query.is_partial_loss for query in report.per_query)
    counts += [f"{new} new"] if new else []
    counts += [counted(partial, "partial loss")] if partial else []
    return ", ".join(counts)


def coverage(report: CompareReport) -> str | None:
    """How many queries are in both runs; None if both runs have all queries, without errors."""
    if report.deltas is None:
        return None
    paired = report.deltas.paired
    parts = [
        f"{name} lacks {absent} of the golden queries"
        for name, absent in (("A", paired.absent_a), ("B", paired.absent_b))
        if absent
    ]
    parts += [
        f"{errored} errored in {name}"
        for name, errored in (("A", paired.errored_a), ("B", paired.errored_b))
        if errored
    ]
    if not parts and paired.unpaired is None:
        return None
    both = f"{counted(paired.queries, 'query')} in both runs"
    both = f"paired: B - A over the {both}" if paired.unpaired else both
    return "; ".join(filter(None, [both, ", ".join(parts)]))


def match_counts(report: CompareReport) -> str:
    """How the hits were matched, such as `exact: chunk 7, document 1`."""
    if report.deltas is None:
        return report.aggregate_b.match
    counts = ", ".join(f"{by} {n}" for by, n in report.deltas.matched_by.items() if n)
    return f"{report.deltas.chunker_version_match}: {counts or 'nothing to match'}"


def movement(report: CompareReport) -> str | None:
    """How far the rankings moved; None if no query is in both runs, or B is judged alone."""
    counts = report.comparison
    values = {name: counts.value(name) if counts else None for name in MOVEMENT}
    if None in values.values():
        return None
    means = ", ".join(f"{name} {format_value(value)}" for name, value in values.items())
    return f"rankings, A against B: {means} (1 if they are the same)"


def counted(number: int, noun: str) -> str:
    """`1 query`, `2 queries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


# -- several runs a side -------------------------------------------------------------------------


def replicate_sentence(report: CompareReport) -> str:
    """How many runs there are, and what that means; nothing where each side is one run."""
    replicates = report.replicates
    if not replicates:
        return ""
    b = counted(len(replicates.runs_b), "run")
    if not replicates.runs_a:
        return f"Means over {b}."
    a = counted(len(replicates.runs_a), "run")
    said = [f"Means over {a} of A and {b} of B.", _promise(report, replicates)]
    return " ".join([*said, *_only_together(report, replicates)])


def _only_together(report: CompareReport, replicates: ReplicateReport) -> Iterator[str]:
    """What a green session does not say, where that is so."""
    judged = report.comparison.checks if report.comparison else ()
    unseen = [check for check in replicates.none_alone if check in judged]
    a, b = len(replicates.runs_a), len(replicates.runs_b)
    runs = counted(a, "run") if a == b else f"{a} and {counted(b, 'run')}"
    names = " or ".join(check for check in unseen if check != LOSS.name)
    if names:
        yield (
            f"With {runs} a side and this noise, no single query can fail by {names}, only several together."
        )
    if LOSS.name in unseen:
        yield f"With {runs} a side and ranks that differ so much, no query can fail by {LOSS.name}."


def _promise(report: CompareReport, replicates: ReplicateReport) -> str:
    """How often noise fails a session; with few runs a query may flip without any of them showing it."""
    lost = [rates for rates in report.rates or () if rates.lost]
    runs = [(len(replicates.runs_a), len(replicates.runs_b)), *((rate.runs_a, rate.runs_b) for rate in lost)]
    unseen, alpha = max(unseen_flip(*counts) for counts in runs), replicates.alpha
    if unseen <= alpha:
        return (
            f"Where nothing changed, at most {100 * alpha:g} % of sessions fail by what differs between runs"
            " of one side."
        )
    enough = math.ceil(-math.log(alpha, 4))  # a coin is found in n runs and lost in n once in 4^n
    return (
        "These are few: where nothing changed and one query flips, or several as one, up to"
        f" {math.ceil(1000 * unseen) / 10:g} % of sessions fail by that, more than the {100 * alpha:g} %"
        f" that alpha allows; record {enough} runs a side."
    )


def flaky_rates(report: CompareReport) -> list[QueryRates]:
    """What flips among the runs of A, a row for each query and check."""
    return [rates for rates in report.rates or () if rates.flaky]


def check_noise(check: CheckRates, runs_a: int) -> str:
    """`4 of 40 queries flaky in A, two runs of one side disagree on 3.2 %`."""
    if check.disagreement is None:
        return "one run a side, so that nothing is known of its noise"
    disagree = f"two runs of one side disagree on {100 * check.disagreement:.1f} % of the queries"
    flaky = f"{check.flaky} of {counted(check.queries, 'query')} flaky in A, " if runs_a > 1 else ""
    said = [f"{flaky}{disagree}"]
    if check.together and (check.together.worse or check.together.better):
        said.append(f"B did worse on {check.together.worse} and better on {check.together.better}")
    return "; ".join(said)


def format_noise(rates: QueryRates) -> str:
    """In how many sessions noise alone would do as badly, at most."""
    return "–" if rates.noise is None else f"{100 * rates.noise:.1f} %"


# -- numbers -------------------------------------------------------------------------------------


def format_value(value: float | None) -> str:
    """A metric's value."""
    if value is None:
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"


def drift_words(drift: Drift) -> str:
    """How a metric drifts, or that it got worse in one step."""
    way = "down" if drift.change < 0 else "up"
    since = f"{way} {abs(drift.change):.2g} since {brief(drift.since)} ({counted(drift.runs, 'run')})"
    if drift.worst_change is None:
        return f"drifts: {since}, no single step explains it"
    step = f"{abs(drift.worst_change):.2g} of it in {brief(drift.worst_run)}, significant by itself"
    if not drift.is_step:
        return f"drifts: {since}, {step}"
    ends = f"{brief(drift.worst_run_before)} {brief(drift.worst_run)}"
    verb = "fell" if drift.change < 0 else "rose"
    return f"{verb} in one step: {since}, {step}; see kebab-eval blame --regressions {ends}"


def format_spread(deviation: float | None) -> str:
    """How far several runs of one side are apart."""
    if deviation is None:
        return "–"
    return f"{deviation:.3f}" if deviation < 10 else f"{deviation:.1f}"


def format_delta(delta: float | None) -> str:
    """A difference, with its sign."""
    if delta is None:
        return "–"
    if delta == 0:
        return "0"
    return f"{delta:+.4f}" if abs(delta) < 100 else f"{delta:+.1f}"


def format_p(p: float) -> str:
    """`p = 0.04`; the smallest p that the test can give stands for all smaller ones."""
    return f"p = {p:g}" if p > LEAST_P else f"p <= {p:g}"
