"""Whether a difference can be told from chance: by hand, and against scipy."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from pytest_kebab_eval.comparing.significance import (
    MetricVerdict,
    PairedTest,
    format_p,
    holm,
    paired_test,
    student_test,
    t_quantile,
    t_tail,
    tail_p,
    verdicts,
)
from tests.unit.comparing.conftest import graded, ranks, yes_no


@pytest.fixture
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


def verdict(test: PairedTest, *, lower_is_better: bool = False) -> str:
    return verdicts({"m": test}, {"m"}, {"m"} if lower_is_better else ())["m"].verdict


# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_identical_runs_show_no_change(is_yes_no: bool) -> None:
    result = paired_test([], 100, yes_no=is_yes_no)
    assert (result.n, result.up, result.down, result.p) == (100, 0, 0, 1.0)
    assert verdict(result) == "may be chance"


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_without_paired_queries_there_is_nothing_to_tell(is_yes_no: bool) -> None:
    result = paired_test([], 0, yes_no=is_yes_no)
    assert (result.n, result.p, result.low, result.high) == (0, None, None, None)
    assert verdict(result) == "too few queries"


def test_four_yes_no_queries_are_too_few_and_five_can_tell() -> None:
    # all one way: mid-p is 2^-4 = 0.0625, then 2^-5 = 0.03125
    assert (yes_no(4, 0, 4).p, verdict(yes_no(4, 0, 4))) == (0.0625, "too few queries")
    assert (yes_no(5, 0, 5).p, verdict(yes_no(5, 0, 5))) == (0.0312, "better")


def test_five_graded_queries_are_too_few_and_six_can_tell() -> None:
    # all one way: only this and the mirrored signs are as extreme, 2/2^5 = 0.0625, then 2/2^6 = 0.03125
    five, six = graded(*[0.9] * 5), graded(*[0.9] * 6)
    assert (five.p, verdict(five)) == (0.0625, "too few queries")
    assert (six.p, verdict(six)) == (0.0312, "better")


def test_four_changes_among_many_queries_may_be_chance_rather_than_too_few_queries() -> None:
    assert verdict(yes_no(4, 0, 100)) == verdict(graded(0.5, 0.5, 0.5, 0.5, n=100)) == "may be chance"


@pytest.mark.parametrize(
    ("up", "down", "lower_is_better", "expected"),
    [(9, 1, False, "better"), (1, 9, False, "worse"), (9, 1, True, "worse"), (1, 9, True, "better")],
)
def test_the_better_direction_decides_between_better_and_worse(
    up: int, down: int, lower_is_better: bool, expected: str
) -> None:
    changes = [0.9] * up + [-0.9] * down
    for result in (yes_no(up, down, 50), graded(*changes, n=50)):
        assert verdict(result, lower_is_better=lower_is_better) == expected


def test_the_verdict_goes_by_p_whatever_the_interval_says() -> None:
    # thirty queries that all fall from rank 4 to 5: with two invented changes of 1, the interval has 0
    found = graded(*[1 / 5 - 1 / 4] * 30)
    assert (found.p, verdict(found)) == (0.0001, "worse")
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high


def test_the_verdict_follows_the_mean_and_not_the_number_of_queries() -> None:
    # seven small losses, seven large gains: the sum is 7 · 0.9 - 7 · 0.01 = 6.23
    result = graded(*[-0.01] * 7, *[0.9] * 7, n=20)
    assert (result.up, result.down) == (7, 7)
    assert verdict(result) == "better"


# -- many metrics ----------------------------------------------------------------------------------


def test_holm_corrects_the_smallest_p_for_all_and_none_is_less_than_the_one_before() -> None:
    # 0.01 · 4, 0.012 · 3 = 0.036 < 0.04, 0.03 · 2, 0.04 < 0.06
    assert holm({"a": 0.012, "b": 0.04, "c": 0.01, "d": 0.03}) == {"a": 0.04, "b": 0.06, "c": 0.04, "d": 0.06}
    assert holm({"a": 0.8, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_a_metric_is_judged_by_how_many_are_in_the_summary() -> None:
    fell = yes_no(0, 5, 30)  # p = 0.0312
    tests = {"fell": fell, "same": yes_no(3, 3, 30)}
    assert verdicts({"fell": fell}, tests, ())["fell"] == MetricVerdict("worse", 0.0312)
    assert verdicts(tests, tests, ())["fell"] == MetricVerdict("may be chance", 0.0624)


def test_a_metric_of_too_few_queries_does_not_count() -> None:
    tests = {"fell": yes_no(0, 5, 30), "few": yes_no(0, 4, 4)}
    assert verdicts(tests, tests, ()) == {
        "fell": MetricVerdict("worse", 0.0312),
        "few": MetricVerdict("too few queries", 0.0625),
    }


def test_a_metric_outside_the_summary_is_judged_as_one_more_and_costs_the_summary_nothing() -> None:
    tests = {"fell": yes_no(0, 5, 30), "other": yes_no(0, 6, 30)}  # 0.0312 and 0.0156
    found = verdicts(tests, {"fell"}, ())
    assert (found["fell"].p, found["other"].p) == (0.0312, 0.0312)


def test_the_least_p_stands_for_all_smaller_ones() -> None:
    assert (format_p(0.04), format_p(0.0001)) == ("p = 0.04", "p <= 0.0001")


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
        (30, 3, 0.000051),
        (64, 3, 0.0005),
        (65, 2, 0.0005),
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
    assert graded(*[0.5] * up, *[-0.5] * (m - up)).p == pytest.approx(reference, abs=0.0005)


def test_a_few_dominating_changes_among_many_are_judged_as_few() -> None:
    # 4 · 1000 − 100 · 0.01: the four must agree, 2/2^4 = 0.125; a normal sum of all would give p = 0.045
    assert graded(*[1000.0] * 4, *[-0.01] * 200, *[0.01] * 100).p == 0.125


def test_changes_too_small_to_matter_beside_the_largest_do_not_matter() -> None:
    changes = ranks(40, negative=3)
    assert graded(*changes, *[1e-30] * 60, *[-1e-30] * 40).p == graded(*changes).p


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [13, 16, 18])
def test_sign_flips_of_unlike_changes_are_nearly_exact(m: int, seed: int) -> None:
    generator = random.Random(seed)
    changes = [generator.gauss(0.3, 1) ** 3 for _ in range(m)]
    sums = [0.0]
    for change in changes:
        sums = [total + sign * change for total in sums for sign in (1, -1)]
    exact = sum(abs(total) >= abs(math.fsum(changes)) - 1e-9 for total in sums) / len(sums)
    assert graded(*changes).p == pytest.approx(exact, abs=0.002)


def test_a_sum_of_independent_parts_is_as_large_as_often_as_counting_says() -> None:
    # two dice of 1 to 3: 5 or 6 in three of nine ways
    die = ((1, 1 / 3), (2, 1 / 3), (3, 1 / 3))
    assert tail_p([(die, 2)], 5) == pytest.approx(3 / 9)
    assert tail_p([(die, 2)], 7) == 0.0
    assert tail_p([(die, 2)], 2) == pytest.approx(1.0)


# -- the interval ----------------------------------------------------------------------------------


def test_the_interval_of_a_yes_no_metric_is_bonett_and_prices() -> None:
    # (9 - 3)/52 = 0.115385 ± 1.959964 · √((9/52 + 3/52 - 0.115385²)/52) = 1.959964 · √0.0041818 = 0.126746
    result = yes_no(8, 2, 50)
    assert (result.low, result.high) == (-0.0114, 0.2421)


def test_the_interval_stays_within_what_is_possible() -> None:
    assert yes_no(5, 0, 5).high == graded(*[1.0] * 5).high == 1.0
    assert yes_no(0, 5, 5).low == -1.0


def test_identical_runs_leave_a_metric_uncertain() -> None:
    # ± 1.959964 · √(2/102/102) = ± 0.027175
    for result in (yes_no(0, 0, 100), graded(n=100)):
        assert (result.low, result.high) == (-0.0272, 0.0272)


def test_the_interval_of_a_graded_metric_is_the_same_with_its_own_changes() -> None:
    # 0.5, 0.25, 0, 0, and 1 and -1: mean 0.125; squares 2.3125/6 - 0.125² = 0.369792; √(·/6) = 0.248258
    result = graded(0.5, 0.25, n=4)
    assert (result.low, result.high) == (-0.3616, 0.6116)


def test_the_interval_of_a_metric_without_a_limit_goes_by_the_largest_change() -> None:
    result = paired_test([200.0], 30, yes_no=False, max_value=None)
    # 200, +200, -200 and 29 zeros: mean 6.25, variance 3 · 200²/32 - 6.25² = 3710.94
    assert (result.low, result.high) == (-14.8564, 27.3564)  # 6.25 ∓ 1.959964 · √(3710.94/32)


@pytest.mark.parametrize("is_yes_no", [True, False])
def test_one_query_has_no_interval(is_yes_no: bool) -> None:
    result = paired_test([1.0], 1, yes_no=is_yes_no)
    assert (result.low, result.high) == (None, None)


# -- several runs a side ---------------------------------------------------------------------------


def over_runs(a: list[float], b: list[float]) -> PairedTest:
    return paired_test([-1.0] * 20, 100, yes_no=False, runs=(a, b))


def test_what_differs_between_runs_of_one_side_is_no_change() -> None:
    assert verdict(over_runs([], [])) == "worse"
    assert verdict(over_runs([1.0, 0.8, 1.0, 0.8], [0.8, 1.0, 0.8, 0.6])) == "may be chance"
    assert verdict(over_runs([1.0, 0.99, 1.0, 0.99], [0.8, 0.79, 0.8, 0.79])) == "worse"


def test_a_side_of_whose_runs_nothing_is_known_leaves_the_test_over_queries_as_it_is() -> None:
    assert over_runs([], [0.8, 0.7]) == over_runs([0.8, 0.7], []) == over_runs([], [])


def test_runs_that_never_differ_leave_the_test_over_queries_as_it_is() -> None:
    assert over_runs([1.0, 1.0], [0.8, 0.8]) == over_runs([], [])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.5, 0.55, 0.6], [0.4, 0.45, 0.5]),
        ([0.5, 0.55, 0.6], [0.4]),  # the spread is of the three
        ([0.7, 0.75], [0.4, 0.45, 0.5, 0.3, 0.2]),
    ],
)
def test_p_over_runs_is_students(stats: Any, a: list[float], b: list[float]) -> None:
    expected = stats.ttest_ind(a, b, equal_var=True)
    found = student_test(a, b)
    assert found.p == pytest.approx(float(expected.pvalue))
    assert over_runs(a, b).p == round(float(expected.pvalue), 4)
    interval = expected.confidence_interval(0.95)
    assert (-found.high, -found.low) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 9.0])
def test_students_tail_and_quantile_are_scipys(stats: Any, t: float) -> None:
    for freedom in (*range(1, 12), 40):
        assert t_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), abs=1e-12)
        assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-9)
