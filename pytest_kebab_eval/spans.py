"""Source spans as boxes, and how much two of them overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from pytest_kebab_eval.model import Span

# kind -> the fields that say where it starts and ends
SPAN_FIELDS: dict[str, tuple[str, ...]] = {
    "line": ("start", "end"),
    "code": ("line_start", "line_end"),
    "byte": ("start", "end"),
    "page": ("page", "char_start", "char_end"),
    "region": ("x", "y", "w", "h"),
    "time": ("start_ms", "end_ms"),
}

# Beyond this, adding 1 to a float does not change it; no document, image or recording is so large.
_LARGEST = 2.0**50
# Characters of a page; a page span without characters is the whole page.
_PAGE_LENGTH = 1e9


class Box(NamedTuple):
    """A half-open rectangle; for lines, bytes and milliseconds it is 1 high, for characters 1 page."""

    axis: str  # line | byte | time | page | region
    left: float
    right: float
    top: float = 0.0
    bottom: float = 1.0


def extent(span: Span) -> Box | None:
    """The span as a box; None if its kind has no extent, or its numbers are missing or not valid."""
    match span.kind:
        case "line":
            box = _interval("line", span.start, span.end, inclusive=True)
        case "code":
            box = _interval("line", span.line_start, span.line_end, inclusive=True)
        case "byte":
            box = _interval("byte", span.start, span.end)
        case "time":
            box = _interval("time", span.start_ms, span.end_ms)
        case "page":
            box = _on_page(span)
        case "region":
            box = _region(span)
        case _:
            box = None
    return box if box and _is_valid(box) else None


def extents(spans: Iterable[Span]) -> tuple[Box, ...]:
    """The spans as boxes, without the spans that have no extent."""
    return tuple(found for span in spans if (found := extent(span)) is not None)


def overlap(ours: Sequence[Box], theirs: Sequence[Box]) -> float | None:
    """How much of the shorter side both sides cover, 0 to 1; None if they have no axis in common.

    A chunk may have several spans; each side is the union of its spans on the common axis.
    """
    common = {box.axis for box in ours} & {box.axis for box in theirs}
    if not common:
        return None
    axis = min(common)
    ours = [box for box in ours if box.axis == axis]
    theirs = [box for box in theirs if box.axis == axis]
    if len(ours) == len(theirs) == 1:
        return _area(_intersection(ours[0], theirs[0])) / min(_area(ours[0]), _area(theirs[0]))
    return _union_overlap(ours, theirs)


def _union_overlap(ours: Sequence[Box], theirs: Sequence[Box]) -> float:
    shared = our_area = their_area = 0.0
    for cell in _cells([*ours, *theirs]):
        in_ours = any(_covers(box, cell) for box in ours)
        in_theirs = any(_covers(box, cell) for box in theirs)
        shared += _area(cell) if in_ours and in_theirs else 0.0
        our_area += _area(cell) if in_ours else 0.0
        their_area += _area(cell) if in_theirs else 0.0
    return shared / min(our_area, their_area)


def touches(box: Box | None, others: Sequence[Box]) -> bool:
    """Whether they overlap at all; spans that cannot be compared count as overlapping."""
    share = overlap([box], others) if box else None
    return share is None or share > 0


def describe(span: Span) -> str:
    """A span in a few characters, such as `line 3-9`; it must have an extent."""
    match span.kind:
        case "code":
            return f"line {span.line_start:g}-{span.line_end:g}"
        case "page":
            return f"page {span.page}"
        case "time":
            return f"time {span.start_ms:g}-{span.end_ms:g} ms"
        case "region":
            return f"region {span.x:g},{span.y:g} {span.w:g}x{span.h:g}"
        case kind:
            return f"{kind} {span.start:g}-{span.end:g}"


def _interval(axis: str, start: float | None, end: float | None, *, inclusive: bool = False) -> Box | None:
    if start is None or end is None or end < start:
        return None
    return Box(axis, start, end + 1 if inclusive else max(end, start + 1))  # a point is 1 long


def _on_page(span: Span) -> Box | None:
    if span.page is None:
        return None
    start, end = span.char_start, span.char_end
    if start is None or end is None:
        start, end = 0.0, _PAGE_LENGTH
    if not 0 <= start <= end <= _PAGE_LENGTH or abs(span.page) > _LARGEST:
        return None
    return Box("page", start, max(end, start + 1), float(span.page), span.page + 1.0)


def _region(span: Span) -> Box | None:
    if span.x is None or span.y is None or span.w is None or span.h is None:
        return None
    return Box("region", span.x, span.x + span.w, span.y, span.y + span.h)


def _is_valid(box: Box) -> bool:
    numbers = box[1:]
    return all(-_LARGEST <= number <= _LARGEST for number in numbers) and _area(box) > 0


def _area(box: Box) -> float:
    return max(0.0, box.right - box.left) * max(0.0, box.bottom - box.top)


def _intersection(box: Box, other: Box) -> Box:
    return Box(
        box.axis,
        max(box.left, other.left),
        min(box.right, other.right),
        max(box.top, other.top),
        min(box.bottom, other.bottom),
    )


def _covers(box: Box, cell: Box) -> bool:
    return (
        box.left <= cell.left
        and cell.right <= box.right
        and box.top <= cell.top
        and cell.bottom <= box.bottom
    )


def _cells(boxes: Sequence[Box]) -> Iterator[Box]:
    """The cells of the grid that the edges of all boxes make; each is wholly inside or outside a box."""
    across = sorted({edge for box in boxes for edge in (box.left, box.right)})
    down = sorted({edge for box in boxes for edge in (box.top, box.bottom)})
    for left, right in pairwise(across):
        for top, bottom in pairwise(down):
            yield Box("", left, right, top, bottom)
