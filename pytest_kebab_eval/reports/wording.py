"""The sentences and number formats that every report shares."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterator

from pytest_kebab_eval.comparing.checks import ALL_CHECKS, COVERAGE, LOSS
from pytest_kebab_eval.comparing.decide import QueryRates
from pytest_kebab_eval.comparing.replicates import CheckRates, ReplicateReport, unseen_flip
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import ALPHA, mid_p
from pytest_kebab_eval.inputs.sides import NO_BASELINE
from pytest_kebab_eval.model import ComparisonKind, MatchMode, QueryComparison
from pytest_kebab_eval.reports.rows import summary_rows
from pytest_kebab_eval.text import first_of

CAUSES = {
    "absent": "run B has no result for this query",
    "errored": "run B errored on this query",
    "other_question": "run B was asked another question than the golden file has",
    "empty": "run B found nothing at all",
    "below_cutoff": "the expected passage is there, but too far down",
    "text_gone": "what has the id or place of the expected passage no longer says what it said",
    "same_text": "run B has the expected text, under an id that nobody labelled",
    "not_in_index": "the index no longer has the expected chunk",
    "wrong_chunk": "the right document, but another part of it",
    "gone": "the expected passage is not among the hits that run B stored",
    "not_cited": "the answer does not cite what it should",
    "no_answer": "run B has no answer to this query",
    "refused": "run B refused to answer",
    "not_refused": "run B answered what it should have refused",
    "answer_rule": "the answer breaks a rule of the golden file",
    "claim_missing": "the answer contains no claim of the golden file",
    "forbidden": "run B found what the golden file forbids",
}

_XFAIL = "xfail"  # stands for a check where a query fails because it no longer does
_RANK_KINDS = (ComparisonKind.WIN, ComparisonKind.DRAW, ComparisonKind.LOSS, ComparisonKind.REGRESSION)
NAMES_SHOWN = 3


# -- sentences -----------------------------------------------------------------------------------


def headline(report: CompareReport) -> str:
    """The comparison in one sentence, and what else went wrong."""
    sentences = [_main_sentence(report)]
    if report.run_a is None:
        sentences += [
            f"{text[0].upper()}{text[1:]}." for text in report.warnings if text.startswith(NO_BASELINE)
        ]
    if report.tolerated:
        checks, count = _by_check(report, report.tolerated), len(report.tolerated)
        lost = f"lost what does not fail {'it' if count == 1 else 'them'} here ({checks})"
        sentences.append(
            f"{counted(count, 'query')} {lost}: {first_of([*report.tolerated], NAMES_SHOWN, 40)}."
        )
    failed = sum(not gate.passed for gate in report.gates)
    if failed:
        sentences.append(f"{counted(failed, 'gate')} failed.")
    new = [query for query in report.per_query if query.kind is ComparisonKind.NEW]
    reworded = [query for query in new if query.is_reworded]
    if reworded:
        was = "was" if len(reworded) == 1 else "were"
        end = _failed_new(report, reworded)
        sentences.append(f"{counted(len(reworded), 'query')} {was} reworded since A, and not compared{end}.")
    if count := len(new) - len(reworded):
        end = _failed_new(report, [query for query in new if not query.is_reworded])
        sentences.append(f"{counted(count, 'query')} {'has' if count == 1 else 'have'} no baseline{end}.")
    if report.errored_in_both:
        sentences.append(f"{counted(len(report.errored_in_both), 'query')} errored in both runs.")
    if report.removed:
        sentences.append(f"{counted(len(report.removed), 'query')} of A left the golden file.")
    if report.unreadable:
        sentences.append(f"{counted(len(report.unreadable), 'result')} cannot be read.")
    return " ".join(sentences)


def _failed_new(report: CompareReport, new: Collection[QueryComparison]) -> str:
    """How many of the queries that are not compared failed."""
    failed = [query.query_id for query in failed_queries(report) if query in new]
    which = "" if len(new) == 1 else f"{len(failed)} of them "
    return f", and {which}failed ({_by_check(report, failed)})" if failed else ""


def review_command(report: CompareReport, query_id: str | None = None) -> str | None:
    """What shows the hits of a query, or of all that fail, that nobody labelled; None without a run A."""
    if report.run_a is None:
        return None
    only = ["--query", query_id] if query_id else []
    return shlex.join(["kebab-eval", "review", report.run_a, report.run_b, *only])


def partial_losses(report: CompareReport) -> list[QueryComparison]:
    """The queries of which B lost a target and found another, which do not fail for that."""
    told = {*report.failed, *report.tolerated, *report.accepted}
    return [query for query in report.per_query if query.is_partial_loss and query.query_id not in told]


def _main_sentence(report: CompareReport) -> str:
    """How many queries failed, by which checks, and what else became of the others."""
    compared = len(report.per_query) - report.count(ComparisonKind.NEW)
    queries = counted(compared, "query")
    failed = [query.query_id for query in failed_queries(report) if query.kind is not ComparisonKind.NEW]
    said = f"{len(failed)} of {queries} failed{f' ({_by_check(report, failed)})' if failed else ''}"
    notes = [f"{len(report.accepted)} accepted (xfail)"] if report.accepted else []
    in_part = [query.query_id for query in report.per_query if query.is_partial_loss]
    told = [query.query_id for query in partial_losses(report)]
    if told:
        others = "further " if not {*in_part}.isdisjoint(failed) else ""
        losses = f"{others}{'partial loss' if len(told) == 1 else 'partial losses'}"
        names = first_of(told, NAMES_SHOWN, 40)
        notes.append(f"{len(told)} {losses} (a target lost, another still found: {names})")
    all_worse = {query.query_id for query in report.per_query if query.kind is ComparisonKind.LOSS}
    worse = len(all_worse.difference(failed))
    others = "" if not failed else "other " if worse == 1 else "others "
    notes += [f"{worse} {others}ranked worse"] if worse else []
    if report.problems:
        return f"This comparison cannot be relied on{f'; {said}' if failed and report.run_a else ''}."
    if not failed and worse_by_noise(report):
        notes.insert(0, _noisy(report, queries))
    return f"{'; '.join(filter(None, [said, ', '.join(notes)]))}."


def failed_queries(report: CompareReport) -> list[QueryComparison]:
    """The queries that failed; not those with an unreadable result, of which nothing else is known."""
    unreadable = {result.query_id for result in report.unreadable}
    return [
        query
        for query in report.per_query
        if query.query_id in report.failed and query.query_id not in unreadable
    ]


def counted_checks(report: CompareReport, query: QueryComparison) -> tuple[str, ...]:
    """Of the checks that a query lost, those that count as a failure."""
    known = {*(report.comparison.checks if report.comparison else query.checks), *(query.required or ())}
    alone = query.kind in (None, ComparisonKind.NEW)
    return tuple(check for check in query.checks if check in known or alone)


def checks_failed(report: CompareReport, query: QueryComparison) -> tuple[str, ...]:
    """What a failed query failed on: checks, or what else fails it."""
    failed = counted_checks(report, query)
    if failed:
        return failed
    return (LOSS.name,) if query.kind is ComparisonKind.LOSS else (_XFAIL,)


def _by_check(report: CompareReport, names: Collection[str]) -> str:
    """`retrieval 4, answer 2; 1 query failed both`: how many queries failed on each check, the most first."""
    wanted = {*names}
    failed = [checks_failed(report, query) for query in report.per_query if query.query_id in wanted]
    counts = Counter(check for checks in failed for check in checks)
    names = [*dict.fromkeys(check.name for check in ALL_CHECKS), *counts]
    in_order = sorted(counts, key=lambda check: (-counts[check], names.index(check)))
    listed = ", ".join(
        f"{counts[check]} passed despite xfail" if check == _XFAIL else f"{check} {counts[check]}"
        for check in in_order
    )
    several = [len(checks) for checks in failed if len(checks) > 1]
    if not several:
        return listed
    which = "both" if len(counts) == 2 else "two checks" if {*several} == {2} else "several checks"
    return f"{listed}; {counted(len(several), 'query')} failed {which}"


def worse_by_noise(report: CompareReport) -> list[str]:
    """The queries that did worse in B, but not more than noise explains, the largest drops first."""
    worse = [rates for rates in _counted_rates(report) if rates.noise is not None and not rates.lost]
    worse.sort(key=lambda rates: rates.b / rates.runs_b - rates.a / rates.runs_a)
    return [*dict.fromkeys(rates.query_id for rates in worse)]


def _counted_rates(report: CompareReport) -> list[QueryRates]:
    """The rates of checks that count as a failure, and of targets that are lost in part."""
    checks = {COVERAGE.name, *(report.comparison.checks if report.comparison else ())}
    return [rates for rates in report.rates or () if rates.check in checks]


def _better(report: CompareReport) -> int:
    """How many queries did better in B."""
    rates = _counted_rates(report)
    return len({rate.query_id for rate in rates if rate.b * rate.runs_a > rate.a * rate.runs_b})


def _noisy(report: CompareReport, queries: str) -> str:
    """What is to be made of queries that did worse, none of which can be said to be lost."""
    unsure, better = worse_by_noise(report), _better(report)
    said = f"B did worse on {len(unsure)} of {queries}"
    worse = [f"{row.name} is {row.conclusion}" for row in summary_rows(report) if row.direction < 0]
    if worse:
        return f"{said} and better on {better}; no query stands out from noise, but {worse[0]}"
    if len(unsure) > better and mid_p(better, len(unsure)) <= ALPHA:
        shared = "which is noise only if queries of one run flip together, and so few runs cannot tell"
        return f"{said} and better on {better}, {shared} ({first_of(unsure, NAMES_SHOWN, 40)})"
    return f"{said}, as noise alone might ({first_of(unsure, NAMES_SHOWN, 40)}), and better on {better}"


def has_failed(report: CompareReport) -> bool:
    """Whether a query or a gate failed, or the comparison is not to be relied on."""
    return not report.passed


def verdict_effect(report: CompareReport) -> str:
    """What the comparison comes to, in one word: lost, worse or better."""
    if has_failed(report):
        return "lost"
    lost = bool(report.count(ComparisonKind.LOSS) or partial_losses(report) or report.tolerated)
    is_worse = report.run_a is not None and lost
    return "worse" if is_worse or len(worse_by_noise(report)) > _better(report) else "better"


def rank_changes(report: CompareReport) -> str:
    """`ranks of the first correct hit: 2 better, 4 the same, …`, and what is rare."""
    new, kinds = report.count(ComparisonKind.NEW), {q.query_id: q.kind for q in report.per_query}
    both = sum(kinds.get(query_id) is ComparisonKind.DRAW for query_id in report.missed)
    same = f"the same ({both} of them found in neither run)" if both else "the same"
    words = zip(_RANK_KINDS, ("better", same, "worse", "no longer found"), strict=True)
    counts = [f"{report.count(kind)} {said}" for kind, said in words]
    partial = sum(query.is_partial_loss for query in report.per_query)
    rare = f", {new} new" * bool(new) + f", {counted(partial, 'partial loss')}" * bool(partial)
    return f"ranks of the first correct hit: {', '.join(counts)}{rare}"


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
    """How hits were matched: `by chunk id: 7 queries, by document: 1 query`, and a mode that is not exact."""
    if report.deltas is None:
        return report.aggregate_b.match
    counts = [
        f"by {'chunk id' if by == 'chunk' else by}: {counted(n, 'query')}"
        for by, n in report.deltas.matched_by.items()
        if n
    ]
    mode = report.deltas.chunker_version_match
    return f"{', '.join(counts) or 'nothing'}{'' if mode == MatchMode.EXACT.value else f' ({mode})'}"


def movement(report: CompareReport) -> str | None:
    """How far the rankings moved; None if no query is in both runs, or ids are of two chunkers."""
    value = report.comparison.value("overlap@10") if report.comparison and has_same_ids(report) else None
    if value is None:
        return None
    return f"rankings, A against B: overlap@10 {format_value(value)} (1 if they are the same)"


def has_same_ids(report: CompareReport) -> bool:
    """Whether an id is the same passage in both runs: not where these are of two chunkers."""
    return report.run_a is not None and all(
        change.key != "chunker_version" for change in report.config_changes
    )


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
    if check.worse or check.better:
        targets = " targets" if check.what == COVERAGE.words else ""
        said.append(f"B did worse on {check.worse}{targets} and better on {check.better}")
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


def duration_words(milliseconds: float) -> str:
    """`840 ms`, `18.4 s`, `12 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 99_950:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes:,} min {seconds} s"
