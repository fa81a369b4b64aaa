"""Whether a difference can be told from chance: by hand, and against scipy."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pytest_kebab_eval.comparing.significance import (
    Significance,
    paired_significance,
    student_p,
    sure_of_many,
)
from tests.unit.comparing.conftest import graded, ranks, yes_no


@pytest.fixture
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_identical_runs_show_no_change(is_yes_no: bool) -> None:
    result = paired_significance([], 100, yes_no=is_yes_no)
    assert (result.n, result.up, result.down, result.p) == (100, 0, 0, 1.0)
    assert result.verdict == "no evidence of change"


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_without_paired_queries_there_is_nothing_to_tell(is_yes_no: bool) -> None:
    expected = Significance(0, 0, 0, None, None, None, "too few queries to tell")
    assert paired_significance([], 0, yes_no=is_yes_no) == expected


def test_four_yes_no_queries_are_too_few_and_five_can_tell() -> None:
    # all one way: mid-p is 2^-4 = 0.0625, then 2^-5 = 0.03125
    assert (yes_no(4, 0, 4).p, yes_no(4, 0, 4).verdict) == (0.0625, "too few queries to tell")
    assert (yes_no(5, 0, 5).p, yes_no(5, 0, 5).verdict) == (0.0312, "improved")


def test_five_graded_queries_are_too_few_and_six_can_tell() -> None:
    # all one way: only this and the mirrored signs are as extreme, 2/2^5 = 0.0625, then 2/2^6 = 0.03125
    five, six = graded(*[0.9] * 5), graded(*[0.9] * 6)
    assert (five.p, five.verdict) == (0.0625, "too few queries to tell")
    assert (six.p, six.verdict) == (0.0312, "improved")


def test_four_changes_among_many_queries_are_no_evidence_rather_than_too_few_queries() -> None:
    assert yes_no(4, 0, 100).verdict == "no evidence of change"
    assert graded(0.5, 0.5, 0.5, 0.5, n=100).verdict == "no evidence of change"


@pytest.mark.parametrize(
    ("up", "down", "lower_is_better", "verdict"),
    [(9, 1, False, "improved"), (1, 9, False, "worse"), (9, 1, True, "worse"), (1, 9, True, "improved")],
)
def test_the_better_direction_decides_between_improved_and_worse(
    up: int, down: int, lower_is_better: bool, verdict: str
) -> None:
    assert yes_no(up, down, 50, lower_is_better=lower_is_better).verdict == verdict
    changes = [0.9] * up + [-0.9] * down
    assert graded(*changes, n=50, lower_is_better=lower_is_better).verdict == verdict


def test_many_small_changes_one_way_tell_little_of_the_mean() -> None:
    found = graded(*[0.05] * 9, n=30)  # from rank 5 to 4; one loss of 1 in a hundred would outweigh them
    assert (found.p, found.verdict) == (0.0039, "no evidence of change")
    assert found.low is not None
    assert found.low < -0.01


def test_the_verdict_follows_the_mean_and_not_the_number_of_queries() -> None:
    # seven small losses, seven large gains: the sum is 7 · 0.9 − 7 · 0.01 = 6.23
    result = graded(*[-0.01] * 7, *[0.9] * 7, n=20)
    assert (result.up, result.down) == (7, 7)
    assert result.verdict == "improved"


# -- the tests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("up", "down", "p"),
    [
        (1, 1, 1.0),
        (3, 3, 1.0),
        (2, 1, 0.625),  # 2 · 1/8 + 3/8
        (4, 1, 0.2188),  # (2 · 1 + 5) / 32
        (6, 1, 0.0703),  # (2 · 1 + 7) / 128
        (8, 1, 0.0215),  # (2 · 1 + 9) / 512
        (8, 2, 0.0654),  # (2 · (1 + 10) + 45) / 1024
    ],
)
def test_mid_p_by_hand(up: int, down: int, p: float) -> None:
    assert yes_no(up, down, 20).p == yes_no(down, up, 20).p == p


@pytest.mark.parametrize(
    ("changes", "p"),
    [
        ((0.2,), 1.0),
        ((0.5, -0.5), 1.0),
        ((3.0, 2.0), 0.5),  # ±5 of 5, 1, −1, −5
        ((3.0, 2.0, -1.0), 0.5),  # |sum| >= 4: ±6 and ±4, of 8
        ((3.0, -2.0, -1.0), 1.0),  # the sum is 0
    ],
)
def test_sign_flips_by_hand(changes: tuple[float, ...], p: float) -> None:
    assert graded(*changes).p == p


def test_sums_that_differ_only_by_float_error_are_equal() -> None:
    # 1 + 2 − 3 + 5 = 5, and so is −1 − 2 + 3 + 5. Beside 5 the others give ±6, ±4, ±2 and twice 0: five of
    # eight leave the sum at 5 or above, and as many of the mirrored ones: 10/16. In tenths, floats miss it
    assert 0.1 + 0.2 - 0.3 + 0.5 > -0.1 - 0.2 + 0.3 + 0.5
    for unit in (1, 10, 6, *range(17, 100)):
        assert graded(1 / unit, 2 / unit, -3 / unit, 5 / unit).p == 0.625


@pytest.mark.parametrize("unit", [1 / 3, 1 / 7, 1 / 10, 0.0001, 20.0])
def test_p_does_not_depend_on_the_unit(unit: float) -> None:
    changes = [1, 2, -3, 4, 5, -6, 7, -8, 9, 1] * 4
    assert graded(*[change * unit for change in changes]).p == graded(*changes).p


def test_a_tiny_p_is_never_shown_as_zero() -> None:
    assert yes_no(500, 0, 500).p == 0.0001
    assert yes_no(5000, 0, 5000).p == 0.0001
    assert graded(*ranks(300, negative=1000)).p == 0.0001


@pytest.mark.parametrize("discordant", [1, 2, 9, 50, 999, 1000, 1001, 1002, 30_000, 1_000_000])
def test_mid_p_is_that_of_the_binomial_distribution(stats: Any, discordant: int) -> None:
    binomial = stats.binom(discordant, 0.5)
    for deviations in (0.0, 0.1, 0.7, 1.9, 2.0, 3.0):
        fewer = max(0, int(discordant / 2 - deviations * math.sqrt(discordant) / 2))
        expected = min(1.0, 2 * binomial.cdf(fewer) - binomial.pmf(fewer))
        p = yes_no(discordant - fewer, fewer, discordant).p
        assert p == pytest.approx(max(expected, 0.0001), abs=0.000051), deviations


@pytest.mark.parametrize(
    "changes",
    [
        [0.5, -0.25, 1.0, 0.125],
        [0.31, 0.27, -0.11, 0.92, -0.43, 0.08, 0.66],
        [1 / 2, 1 / 3, -1 / 6, 1 / 4, 1 / 7, -2 / 3, 1 / 9, 1 / 10],
        [0.63093, -0.5, 0.43068, 0.38685, -0.36907, 0.63093, 0.5, 0.1309, 1.0, 0.2],
        [120.0, -3.0, 4.0, 17.0, -60.0, 2.0, 5.0, 5.0],
    ],
)
def test_sign_flips_of_few_changes_are_those_of_a_permutation_test(stats: Any, changes: list[float]) -> None:
    def total(x: Any, axis: int) -> Any:
        return x.sum(axis=axis)

    reference = stats.permutation_test(
        (changes,), total, vectorized=True, permutation_type="samples", n_resamples=math.inf
    )
    assert graded(*changes).p == pytest.approx(reference.pvalue, abs=0.000051)


@pytest.mark.parametrize(
    ("m", "negative", "tolerance"),
    [
        (22, 3, 0.000051),  # exact
        (30, 3, 0.009),  # simulated: 4 · √(0.05 · 0.95 / 10,000)
        (64, 3, 0.009),
        (65, 3, 0.001),  # approximated
        (65, 2, 0.001),
        (200, 2, 0.0005),
    ],
)
def test_sign_flips_of_ranks_are_wilcoxons_test(stats: Any, m: int, negative: int, tolerance: float) -> None:
    changes = ranks(m, negative=negative)
    reference = stats.wilcoxon(changes, method="exact").pvalue
    assert graded(*changes).p == pytest.approx(max(reference, 0.0001), abs=tolerance)


@pytest.mark.parametrize("m", [23, 64, 65, 126, 127, 500, 5000])
@pytest.mark.parametrize("deviations", [0.5, 1.9, 2.1])
def test_sign_flips_of_equal_changes_are_a_binomial_test(stats: Any, m: int, deviations: float) -> None:
    up = math.ceil(m / 2 + deviations * math.sqrt(m) / 2)
    reference = stats.binomtest(up, m).pvalue
    tolerance = 0.000051 if m <= 126 else 0.0005
    assert graded(*[0.5] * up, *[-0.5] * (m - up)).p == pytest.approx(reference, abs=tolerance)


def test_a_few_dominating_changes_among_many_are_judged_as_few() -> None:
    # 4 · 1000 − 100 · 0.01: the four must agree, 2/2^4 = 0.125; a normal sum of all would give p = 0.045
    result = graded(*[1000.0] * 4, *[-0.01] * 200, *[0.01] * 100)
    assert (result.p, result.verdict) == (0.125, "no evidence of change")


def test_changes_too_small_to_matter_beside_the_largest_do_not_matter() -> None:
    changes = ranks(40, negative=3)
    assert graded(*changes, *[1e-30] * 60, *[-1e-30] * 40).p == graded(*changes).p


# -- the interval ----------------------------------------------------------------------------------


def test_the_interval_of_a_yes_no_metric_is_bonett_and_prices() -> None:
    # (9 − 3)/52 = 0.115385 ± 1.959964 · √((9/52 + 3/52 − 0.115385²)/52) = 1.959964 · √0.0041818 = 0.126746
    result = yes_no(8, 2, 50)
    assert (result.low, result.high) == (-0.0114, 0.2421)


def test_the_interval_of_a_yes_no_metric_stays_within_what_is_possible() -> None:
    assert yes_no(5, 0, 5).high == 1.0
    assert yes_no(0, 5, 5).low == -1.0


def test_identical_runs_leave_a_yes_no_metric_uncertain() -> None:
    # ± 1.959964 · √(2/102/102) = ± 0.027175
    result = yes_no(0, 0, 100)
    assert (result.low, result.high) == (-0.0272, 0.0272)


def test_the_interval_of_a_graded_metric_is_students_with_the_unchanged_queries() -> None:
    # 0.5, 0.25, 0, 0, and 1 and −1: mean 0.125; squares 0.375² + 3 · 0.125² + 0.875² + 1.125² = 2.21875;
    # s/√n = √(2.21875/5/6) = 0.271953; t(5) = 2.570582: ± 0.699079
    result = graded(0.5, 0.25, n=4)
    assert (result.low, result.high) == (-0.5741, 0.8241)


def test_the_interval_has_a_width_where_nothing_changed() -> None:
    # +1 and −1 beside 30 zeros: a variance of 2/31, and t of 31 degrees of freedom is 2.0395
    result = graded(n=30)
    assert (result.low, result.high) == (-0.0916, 0.0916)  # 2.0395 · √(2/31/32)


def test_the_interval_of_a_metric_without_a_limit_goes_by_the_largest_change() -> None:
    result = paired_significance([200.0], 30, yes_no=False, max_value=None)
    # 200, +200, −200 and 29 zeros: mean 6.25, variance (3 · 200² − 32 · 6.25²) / 31 = 3830.6
    assert (result.low, result.high) == (-16.0645, 28.5645)  # 6.25 ∓ 2.039513 · √(3830.6/32)


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_the_interval_agrees_with_the_verdict_on_zero(lower_is_better: bool) -> None:
    # mid-p of 5 up: 2^-5; Bonett and Price's interval would begin at −0.0009
    shown = paired_significance([1.0] * 5, 100, yes_no=True, lower_is_better=lower_is_better)
    assert shown.verdict == ("worse" if lower_is_better else "improved")
    assert shown.low == 0.0001
    # 6 up, 1 down: mid-p = (2 + 7) / 2^7 = 0.0703, where the interval would begin above 0
    not_shown = yes_no(6, 1, 7)
    assert not_shown.verdict == "no evidence of change"
    assert not_shown.low is not None
    assert not_shown.low <= 0


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_one_query_has_no_interval(is_yes_no: bool) -> None:
    result = paired_significance([1.0], 1, yes_no=is_yes_no)
    assert (result.low, result.high) == (None, None)


def test_the_interval_uses_students_quantile(stats: Any) -> None:
    # x, −x and zeros, and what is added, x and −x again: s/√n = x · √(4/(n (n − 1))); that is a million
    for freedom in (*range(3, 60), 100, 999, 100_000):
        n = freedom + 1
        x = 1e6 / math.sqrt(4 / (n * freedom))
        high = paired_significance([x, -x], n - 2, yes_no=False, max_value=None).high
        assert high is not None
        assert high / 1e6 == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-6), freedom


# -- several runs a side ---------------------------------------------------------------------------


def over_runs(a: list[float], b: list[float], changes: int = 20) -> Significance:
    return paired_significance([-1.0] * changes, 100, yes_no=False, runs=(a, b))


def test_what_differs_between_runs_of_one_side_is_no_change() -> None:
    assert over_runs([], []).verdict == "worse"
    assert over_runs([1.0, 0.8, 1.0, 0.8], [0.8, 1.0, 0.8, 0.6]).verdict == "no evidence of change"
    assert over_runs([1.0, 0.99, 1.0, 0.99], [0.8, 0.79, 0.8, 0.79]).verdict == "worse"


def test_a_side_of_whose_runs_nothing_is_known_leaves_the_test_over_queries_as_it_is() -> None:
    assert over_runs([], [0.8, 0.7]) == over_runs([0.8, 0.7], []) == over_runs([], [])


def test_runs_that_never_differ_leave_the_test_over_queries_as_it_is() -> None:
    assert over_runs([1.0, 1.0], [0.8, 0.8]) == over_runs([], [])


def test_p_over_runs_is_welchs(stats: Any) -> None:
    # both variances are 0.0025: Welch's degrees of freedom are 4, a whole number
    a, b = [0.5, 0.55, 0.6], [0.4, 0.45, 0.5]
    expected = stats.ttest_ind(a, b, equal_var=False)
    found = over_runs(a, b)
    assert expected.df == pytest.approx(4)
    assert found.p == round(float(expected.pvalue), 4)
    interval = expected.confidence_interval(0.95)
    assert found.low is not None
    assert found.low <= round(-interval.high, 4)


def test_one_run_of_b_is_held_against_the_spread_of_as(stats: Any) -> None:
    # the pooled test of three values and one: the spread is of the three, 2 degrees of freedom
    expected = stats.ttest_ind([0.5, 0.55, 0.6], [0.4], equal_var=True)
    assert over_runs([0.5, 0.55, 0.6], [0.4]).p == round(float(expected.pvalue), 4)


@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 9.0, -2.0])
def test_students_p_is_scipys(stats: Any, t: float) -> None:
    freedoms = (*range(1, 12), 40)
    expected = {freedom: 2 * stats.t.sf(abs(t), freedom) for freedom in freedoms}
    assert {freedom: student_p(t, freedom) for freedom in freedoms} == pytest.approx(expected, abs=1e-12)


def test_holm_corrects_the_smallest_p_for_all_and_stops_at_the_first_that_fails() -> None:
    # 0.01 · 4, 0.012 · 3, 0.03 · 2 >= 0.05: the last is not asked
    assert sure_of_many({"a": 0.012, "b": 0.04, "c": 0.01, "d": 0.03}) == {"a", "c"}
    assert sure_of_many({}) == set()
