"""Source spans as boxes, and how much two of them overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from pytest_kebab_eval.limits import SPANS_COMPARED
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
            return _interval("line", span.start, span.end, inclusive=True)
        case "code":
            return _interval("line", span.line_start, span.line_end, inclusive=True)
        case "byte":
            return _interval("byte", span.start, span.end)
        case "time":
            return _interval("time", span.start_ms, span.end_ms)
        case "page":
            return _on_page(span)
        case "region":
            return _region(span)
        case _:
            return None


def extents(spans: Iterable[Span]) -> tuple[Box, ...]:
    """The spans as boxes, without the spans that have no extent."""
    return tuple(found for span in spans if (found := extent(span)) is not None)


def overlap(ours: Sequence[Box], theirs: Sequence[Box]) -> float | None:
    """How much of the shorter side both sides cover, 0 to 1; None if they have no axis in common.

    A chunk may have several spans; each side is the union of its spans on the common axis. Sides of very many
    spans are not compared.
    """
    if len(ours) == len(theirs) == 1:
        return _box_overlap(ours[0], theirs[0]) if ours[0].axis == theirs[0].axis else None
    common = {box.axis for box in ours} & {box.axis for box in theirs}
    if not common or len(ours) + len(theirs) > SPANS_COMPARED:
        return None
    axis = min(common)
    ours = [box for box in ours if box.axis == axis]
    theirs = [box for box in theirs if box.axis == axis]
    if len(ours) == len(theirs) == 1:
        return _box_overlap(ours[0], theirs[0])
    return _union_overlap(ours, theirs)


def relative_length(ours: Sequence[Box], theirs: Sequence[Box]) -> float | None:
    """The length of our side, where theirs is 1; None if it is not known, or they have no axis in common."""
    common = {box.axis for box in ours} & {box.axis for box in theirs}
    if not common:
        return None
    axis = min(common)
    one, other = (length([box for box in boxes if box.axis == axis]) for boxes in (ours, theirs))
    return one / other if one is not None and other is not None else None


def length(boxes: Sequence[Box]) -> float | None:
    """Of boxes on one axis; None for parts of pictures, and for pages whose characters are not known."""
    is_known = all(box.axis != "region" and box.right != _PAGE_LENGTH for box in boxes)
    return sum(map(_area, boxes)) if is_known else None


def _box_overlap(ours: Box, theirs: Box) -> float:
    width = min(ours.right, theirs.right) - max(ours.left, theirs.left)
    height = min(ours.bottom, theirs.bottom) - max(ours.top, theirs.top)
    return width * height / min(_area(ours), _area(theirs)) if width > 0 and height > 0 else 0.0


def _union_overlap(ours: Sequence[Box], theirs: Sequence[Box]) -> float:
    """The same of two unions, strip by strip between the edges of all boxes."""
    shared = our_area = their_area = 0.0
    edges = sorted({edge for box in (*ours, *theirs) for edge in (box.left, box.right)})
    for left, right in pairwise(edges):
        in_ours, in_theirs = _covered(ours, left, right), _covered(theirs, left, right)
        our_area += (right - left) * _length(in_ours)
        their_area += (right - left) * _length(in_theirs)
        shared += (right - left) * _shared_length(in_ours, in_theirs)
    return shared / min(our_area, their_area)


def touches_any(box: Box | None, places: Iterable[Sequence[Box]]) -> bool:
    """Whether a box overlaps any of these places at all; what cannot be compared counts as overlapping."""
    if box is None:
        return any(True for _ in places)
    axis, left, right, top, bottom = box
    for boxes in places:
        if len(boxes) == 1:  # as nearly all chunks are: how much they share need not be known
            other = boxes[0]
            if other[0] != axis or (
                left < other[2] and other[1] < right and top < other[4] and other[3] < bottom
            ):
                return True
        elif (share := overlap([box], boxes)) is None or share > 0:
            return True
    return False


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
    right = end + 1 if inclusive else max(end, start + 1)  # a point is 1 long
    return Box(axis, start, right) if -_LARGEST <= start < right <= _LARGEST else None


def _on_page(span: Span) -> Box | None:
    if span.page is None:
        return None
    start, end = span.char_start, span.char_end
    if start is None or end is None:
        start, end = 0.0, _PAGE_LENGTH
    if not (0 <= start <= end <= _PAGE_LENGTH and -_LARGEST <= span.page < _LARGEST):
        return None
    return Box("page", start, max(end, start + 1), float(span.page), span.page + 1.0)


def _region(span: Span) -> Box | None:
    if span.x is None or span.y is None or span.w is None or span.h is None:
        return None
    box = Box("region", span.x, span.x + span.w, span.y, span.y + span.h)
    is_small = -_LARGEST <= box.left < box.right <= _LARGEST and -_LARGEST <= box.top < box.bottom <= _LARGEST
    return box if is_small and _area(box) > 0 else None


def _area(box: Box) -> float:
    return max(0.0, box.right - box.left) * max(0.0, box.bottom - box.top)


_Interval = tuple[float, float]


def _covered(boxes: Sequence[Box], left: float, right: float) -> list[_Interval]:
    """What the boxes cover of a strip, from top to bottom, in pieces that do not touch."""
    found: list[_Interval] = []
    for top, bottom in sorted(
        (box.top, box.bottom) for box in boxes if box.left <= left and right <= box.right
    ):
        if found and top <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], bottom))
        else:
            found.append((top, bottom))
    return found


def _length(pieces: Sequence[_Interval]) -> float:
    return sum(bottom - top for top, bottom in pieces)


def _shared_length(ours: Sequence[_Interval], theirs: Sequence[_Interval]) -> float:
    """How much of two lists of pieces is the same; both are in order."""
    length = 0.0
    at, other = 0, 0
    while at < len(ours) and other < len(theirs):
        top, bottom = max(ours[at][0], theirs[other][0]), min(ours[at][1], theirs[other][1])
        length += max(0.0, bottom - top)
        if ours[at][1] < theirs[other][1]:
            at += 1
        else:
            other += 1
    return length
