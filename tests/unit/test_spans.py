"""Spans laid over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval.model import Span
from pytest_kebab_eval.spans import Box, extent, extents, overlap, touches_any


def lines(start: float, end: float) -> Span:
    return Span("line", start=start, end=end)


def code(start: float, end: float) -> Span:
    return Span("code", line_start=start, line_end=end)


def octets(start: float, end: float) -> Span:
    return Span("byte", start=start, end=end)


def time(start: float, end: float) -> Span:
    return Span("time", start_ms=start, end_ms=end)


def page(number: int, start: float | None = None, end: float | None = None) -> Span:
    return Span("page", page=number, char_start=start, char_end=end)


def region(x: float, y: float, w: float, h: float) -> Span:
    return Span("region", x=x, y=y, w=w, h=h)


def share(ours: Span | Sequence[Span], theirs: Span | Sequence[Span]) -> float | None:
    return overlap(
        extents([ours] if isinstance(ours, Span) else ours),
        extents([theirs] if isinstance(theirs, Span) else theirs),
    )


# -- one kind after the other --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (lines(1, 10), lines(1, 10), 1.0),
        (lines(1, 10), lines(11, 20), 0.0),  # neighbours share no line
        (lines(1, 10), lines(10, 19), 0.1),  # line 10, of 10 lines each
        (lines(1, 10), lines(6, 15), 0.5),  # lines 6 to 10
        (lines(1, 100), lines(50, 53), 1.0),  # all 4 lines of the shorter
        (lines(1, 100), lines(99, 102), 0.5),  # 2 of the 4 lines of the shorter
        (lines(7, 7), lines(7, 7), 1.0),  # lines are inclusive: this is one line
        (lines(7, 7), lines(8, 8), 0.0),
        (code(1, 10), code(6, 15), 0.5),
        (lines(1, 10), code(6, 15), 0.5),  # both are counted in lines
        (code(1, 10), lines(6, 15), 0.5),
        (octets(0, 100), octets(50, 150), 0.5),  # bytes 50 to 99: the end is not part of it
        (octets(0, 100), octets(100, 200), 0.0),
        (octets(0, 100), octets(90, 110), 0.5),  # 10 of 20
        (time(0, 1000), time(750, 1250), 0.5),  # 250 of 500 ms
        (time(0, 1000), time(1000, 2000), 0.0),
        (page(3), page(3), 1.0),
        (page(3), page(4), 0.0),
        (page(3, 0, 100), page(3, 50, 150), 0.5),
        (page(3, 0, 100), page(4, 0, 100), 0.0),  # the same place, on another page
        (page(3), page(3, 50, 150), 1.0),  # a page holds all that is on it
        (page(3), page(4, 0, 100), 0.0),
        (region(0, 0, 10, 10), region(5, 0, 10, 10), 0.5),  # 5 x 10 of 100
        (region(0, 0, 10, 10), region(5, 5, 10, 10), 0.25),  # 5 x 5 of 100
        (region(0, 0, 100, 100), region(5, 5, 2, 2), 1.0),  # the smaller lies within
        (region(0, 0, 10, 10), region(10, 0, 10, 10), 0.0),  # they touch
        (region(0, 0, 10, 10), region(5, 50, 10, 10), 0.0),  # side by side in one direction only
    ],
)
def test_the_share_of_the_shorter_that_both_have(ours: Span, theirs: Span, expected: float) -> None:
    assert share(ours, theirs) == pytest.approx(expected)
    assert share(theirs, ours) == pytest.approx(expected)


@pytest.mark.parametrize("point", [octets(5, 5), time(5, 5), page(1, 5, 5)])
def test_a_point_still_has_a_place(point: Span) -> None:
    assert share(point, point) == 1.0


def test_a_point_lies_within_what_is_around_it_and_not_after_its_end() -> None:
    assert share(octets(5, 5), octets(0, 10)) == 1.0
    assert share(octets(10, 10), octets(0, 10)) == 0.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lines(1, 10), octets(1, 10)),
        (lines(1, 10), time(1, 10)),
        (lines(1, 10), page(1)),
        (lines(1, 10), region(1, 1, 10, 10)),
        (octets(1, 10), time(1, 10)),
        (octets(1, 10), page(1)),
        (page(1), time(1, 10)),
        (page(1), region(1, 1, 10, 10)),
    ],
)
def test_kinds_that_do_not_compare_have_no_share(ours: Span, theirs: Span) -> None:
    assert share(ours, theirs) is None
    assert share(theirs, ours) is None


def test_nothing_compares_with_nothing() -> None:
    assert share([], []) is None
    assert share([], lines(1, 2)) is None
    assert share(lines(1, 2), []) is None


@pytest.mark.parametrize(
    "span",
    [
        Span("caption"),
        Span("hologram"),
        Span("line"),
        Span("line", start=1),
        Span("line", end=1),
        Span("line", line_start=1, line_end=2),  # the fields of another kind
        lines(2, 1),
        code(2, 1),
        octets(2, 1),
        time(2, 1),
        Span("page"),
        page(1, 9, 3),
        Span("region", x=0, y=0, w=1),
        region(0, 0, 0, 5),
        region(0, 0, 5, -1),
    ],
)
def test_a_span_without_an_extent_is_left_out(span: Span) -> None:
    assert extent(span) is None
    assert extents([span, lines(1, 1)]) == extents([lines(1, 1)])


# -- chunks of several spans ---------------------------------------------------------------------


def test_a_chunk_counts_as_the_whole_of_its_spans() -> None:
    # 4 lines on one side, lines 1, 2, 11, 12; the other has 11 to 20. They share 2 of 4.
    assert share([lines(1, 2), lines(11, 12)], lines(11, 20)) == 0.5


def test_spans_that_overlap_within_a_chunk_count_once() -> None:
    # Lines 1 to 15 together; the other has 11 to 30. They share 11 to 15, 5 of the shorter's 15.
    assert share([lines(1, 10), lines(6, 15)], lines(11, 30)) == pytest.approx(5 / 15)
    assert share([lines(1, 10), lines(1, 10)], lines(1, 10)) == 1.0


def test_two_chunks_of_several_spans() -> None:
    # 1-2 and 5-6 against 2-5: lines 2 and 5, of 4 each.
    assert share([lines(1, 2), lines(5, 6)], [lines(2, 3), lines(4, 5)]) == 0.5


def test_of_mixed_kinds_those_in_common_are_compared() -> None:
    assert share([octets(0, 9), lines(1, 10)], [page(1), code(6, 15)]) == 0.5


def test_a_region_compares_with_the_regions_of_a_chunk_that_also_has_lines() -> None:
    assert share([lines(1, 10), region(0, 0, 10, 10)], [region(5, 0, 10, 10)]) == 0.5


def test_regions_of_one_chunk_add_up() -> None:
    # 2 x 100 on one side; the other, of 100, lies half on each.
    assert share([region(0, 0, 10, 10), region(10, 0, 10, 10)], region(5, 0, 10, 10)) == 1.0


def test_regions_that_overlap_within_a_chunk_count_once() -> None:
    # Both of ours cover the same 4 columns of 10: a share of 0.4, not of 0.8.
    twice = [region(-6, 0, 10, 10), region(-6, 0, 10, 10)]
    assert share(twice, region(0, 0, 10, 10)) == pytest.approx(0.4)


# -- touching ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "others", "expected"),
    [
        (lines(1, 5), [lines(5, 9)], True),
        (lines(1, 5), [lines(6, 9)], False),
        (lines(1, 5), [lines(20, 30), lines(4, 4)], True),
        (lines(1, 5), [page(1)], True),  # spans that cannot be compared count as overlapping
        (Span("caption"), [lines(1, 5)], True),
        (lines(1, 5), [], True),
    ],
)
def test_spans_touch_where_they_overlap_or_cannot_be_compared(
    span: Span, others: list[Span], expected: bool
) -> None:
    assert touches_any(extent(span), [extents(others)]) is expected


# -- any spans -----------------------------------------------------------------------------------

numbers = st.integers(0, 40)
line_spans = st.builds(
    lambda start, more, make: make(start, start + more), numbers, numbers, st.sampled_from([lines, code])
)
byte_spans = st.builds(lambda start, more: octets(start, start + more), numbers, numbers)
time_spans = st.builds(lambda start, more: time(start, start + more), numbers, numbers)
page_spans = st.builds(page, st.integers(1, 3)) | st.builds(
    lambda number, start, more: page(number, start, start + more), st.integers(1, 3), numbers, numbers
)
regions = st.builds(region, numbers, numbers, st.integers(1, 20), st.integers(1, 20))
chunks = st.one_of(
    st.lists(st.one_of(line_spans, byte_spans, time_spans, page_spans), max_size=4),
    st.lists(regions, max_size=1),
)


@given(chunks, chunks)
def test_a_share_is_symmetric_and_lies_between_0_and_1(ours: list[Span], theirs: list[Span]) -> None:
    found = share(ours, theirs)
    assert found == share(theirs, ours)
    assert found is None or 0.0 <= found <= 1.0


@given(chunks)
def test_whatever_has_an_extent_shares_all_of_itself(ours: list[Span]) -> None:
    assert share(ours, ours) == (1.0 if ours else None)


@given(chunks, chunks, st.randoms(use_true_random=False))
def test_the_order_of_spans_does_not_matter(ours: list[Span], theirs: list[Span], random: Random) -> None:
    shuffled = random.sample(ours, len(ours))
    assert share(shuffled, theirs) == share(ours, theirs)


def spelled_out(spans: list[Span]) -> set[int]:
    """Every line of the spans."""
    found: set[int] = set()
    for span in spans:
        start, end = (span.start, span.end) if span.kind == "line" else (span.line_start, span.line_end)
        assert start is not None
        assert end is not None
        found |= set(range(int(start), int(end) + 1))
    return found


@given(st.lists(line_spans, min_size=1, max_size=4), st.lists(line_spans, min_size=1, max_size=4))
def test_lines_agree_with_sets_of_lines(ours: list[Span], theirs: list[Span]) -> None:
    a, b = spelled_out(ours), spelled_out(theirs)
    assert share(ours, theirs) == pytest.approx(len(a & b) / min(len(a), len(b)))


def cells(boxes: list[Span]) -> set[tuple[int, int]]:
    """Every unit square of the regions."""
    return {
        (int(x), int(y))
        for box in boxes
        for found in [extent(box)]
        if found is not None
        for x in range(int(found.left), int(found.right))
        for y in range(int(found.top), int(found.bottom))
    }


@given(regions, regions)
def test_two_regions_agree_with_sets_of_unit_squares(ours: Span, theirs: Span) -> None:
    a, b = cells([ours]), cells([theirs])
    assert share(ours, theirs) == pytest.approx(len(a & b) / min(len(a), len(b)))


@given(st.lists(regions, min_size=1, max_size=3), st.lists(regions, min_size=1, max_size=3))
@example([region(0, 0, 2, 2), region(0, 0, 2, 2)], [region(0, 0, 2, 2)])
def test_several_regions_agree_with_sets_of_unit_squares(ours: list[Span], theirs: list[Span]) -> None:
    a, b = cells(ours), cells(theirs)
    assert share(ours, theirs) == pytest.approx(len(a & b) / min(len(a), len(b)))


@pytest.mark.parametrize(
    "span",
    [
        lines(1e16, 1e16),
        code(1e300, 1e300),
        octets(1e16, 1e16),
        time(1e300, 1e300),
        page(10**8, 0, 1),
        page(10**400),
        page(10**305),
        region(1e300, 1e300, 1, 1),
        region(0, 0, 1e-200, 1e-200),
        region(0, 0, 1e300, 1e300),
    ],
    ids=["lines", "code", "bytes", "time", "page-chars", "page-400", "page-305", "far", "tiny", "huge"],
)
def test_a_span_of_absurd_numbers_has_a_share_or_none(span: Span) -> None:
    found: float | None = share(span, span)
    assert found is None or (math.isfinite(found) and 0.0 <= found <= 1.0)


def test_an_extent_compares_by_value() -> None:
    same: tuple[Box, ...] = extents([lines(1, 2)])
    assert same == extents([code(1, 2)])


def test_chunks_of_many_regions_are_compared_in_a_moment() -> None:
    regions = [Box("region", n, n + 1.5, n % 7, n % 7 + 2) for n in range(500)]
    began = process_time()
    assert overlap(regions, regions) == 1.0
    assert process_time() - began < 2


def test_very_many_spans_cannot_be_compared() -> None:
    spans = [Box("line", 2.0 * n, 2.0 * n + 1) for n in range(100_000)]
    assert overlap(spans, spans) is None
    assert touches_any(spans[0], [spans])
