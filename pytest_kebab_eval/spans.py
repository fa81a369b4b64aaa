"""Source spans as extents that can be laid over each other: what is shared, of the shorter one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.model import Span

# kind -> the fields that give its extent
SPAN_FIELDS: dict[str, tuple[str, ...]] = {
    "line": ("start", "end"),
    "code": ("line_start", "line_end"),
    "byte": ("start", "end"),
    "page": ("page", "char_start", "char_end"),
    "region": ("x", "y", "w", "h"),
    "time": ("start_ms", "end_ms"),
}

# A page that does not say where on it is the whole of it; pages lie end to end on one long axis.
_PAGE_LENGTH = 1e9


class Interval(NamedTuple):
    """A half-open stretch of lines, bytes, milliseconds, or characters of pages."""

    axis: str
    start: float
    end: float


class Box(NamedTuple):
    """A rectangle on an image."""

    left: float
    top: float
    right: float
    bottom: float


Extent = Interval | Box


def extent(span: Span) -> Extent | None:
    """The span as an extent; None if its kind has none, or its numbers make none."""
    match span.kind:
        case "line":
            return _inclusive("line", span.start, span.end)
        case "code":
            return _inclusive("line", span.line_start, span.line_end)
        case "byte":
            return _half_open("byte", span.start, span.end)
        case "time":
            return _half_open("time", span.start_ms, span.end_ms)
        case "page":
            return _on_page(span)
        case "region":
            return _box(span)
        case _:
            return None


def extents(spans: Iterable[Span]) -> tuple[Extent, ...]:
    """The extents of those spans that have one."""
    return tuple(found for span in spans if (found := extent(span)) is not None)


def overlap(ours: Sequence[Extent], theirs: Sequence[Extent]) -> float | None:
    """The part of the shorter side that both sides share, 0 to 1; None if they do not compare.

    A chunk may be several spans; each side counts as the whole of its spans on the axis in common.
    """
    boxes = _boxes(ours), _boxes(theirs)
    if all(boxes):
        return _share(
            sum(_shared_area(one, other) for one in boxes[0] for other in boxes[1]),
            sum(map(_area, boxes[0])),
            sum(map(_area, boxes[1])),
        )
    axes = {one.axis for one in ours if isinstance(one, Interval)}
    common = sorted(axes & {one.axis for one in theirs if isinstance(one, Interval)})
    if not common:
        return None
    mine, others = _stretches(ours, common[0]), _stretches(theirs, common[0])
    shared = sum(
        max(0.0, min(a_end, b_end) - max(a_start, b_start))
        for a_start, a_end in mine
        for b_start, b_end in others
    )
    return _share(shared, _length(mine), _length(others))


def touches(one: Extent | None, others: Sequence[Extent]) -> bool:
    """Whether they overlap at all; where they do not compare, nothing speaks against it."""
    share = overlap([one], others) if one else None
    return share is None or share > 0


def _share(shared: float, one: float, other: float) -> float:
    return shared / min(one, other)


def _inclusive(axis: str, start: float | None, end: float | None) -> Interval | None:
    if start is None or end is None or end < start:
        return None
    return Interval(axis, start, end + 1)


def _half_open(axis: str, start: float | None, end: float | None) -> Interval | None:
    if start is None or end is None or end < start:
        return None
    return Interval(axis, start, max(end, start + 1))  # a point still has a place


def _on_page(span: Span) -> Interval | None:
    if span.page is None:
        return None
    origin = span.page * _PAGE_LENGTH
    if span.char_start is None or span.char_end is None:
        return Interval("page", origin, origin + _PAGE_LENGTH)
    return _half_open("page", origin + span.char_start, origin + span.char_end)


def _box(span: Span) -> Box | None:
    if span.x is None or span.y is None or span.w is None or span.h is None:
        return None
    if span.w <= 0 or span.h <= 0:
        return None
    return Box(span.x, span.y, span.x + span.w, span.y + span.h)


def _boxes(found: Sequence[Extent]) -> list[Box]:
    return [one for one in found if isinstance(one, Box)]


def _area(box: Box) -> float:
    return (box.right - box.left) * (box.bottom - box.top)


def _shared_area(one: Box, other: Box) -> float:
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(0.0, width) * max(0.0, height)


def _stretches(found: Sequence[Extent], axis: str) -> list[tuple[float, float]]:
    """The intervals on one axis, those that touch or overlap made one, so that nothing counts twice."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(
        (one.start, one.end) for one in found if isinstance(one, Interval) and one.axis == axis
    ):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _length(stretches: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in stretches)
