"""Source spans as extents that can be laid over each other: what is shared, of the shorter one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
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

# Beyond this, adding 1 to a float does not change it; no document, image or recording is so large.
_LARGEST = 2.0**50
# A page that does not say where on it is the whole of it.
_PAGE_LENGTH = 1e9


class Box(NamedTuple):
    """A half-open rectangle; of lines, bytes, milliseconds or characters of a page it is one unit high."""

    axis: str  # line | byte | time | page | region
    left: float
    right: float
    top: float = 0.0
    bottom: float = 1.0


def extent(span: Span) -> Box | None:
    """The span as an extent; None if its kind has none, or its numbers make none."""
    match span.kind:
        case "line":
            box = _stretch("line", span.start, span.end, inclusive=True)
        case "code":
            box = _stretch("line", span.line_start, span.line_end, inclusive=True)
        case "byte":
            box = _stretch("byte", span.start, span.end)
        case "time":
            box = _stretch("time", span.start_ms, span.end_ms)
        case "page":
            box = _on_page(span)
        case "region":
            box = _region(span)
        case _:
            box = None
    return box if box and _is_sound(box) else None


def extents(spans: Iterable[Span]) -> tuple[Box, ...]:
    """The extents of those spans that have one."""
    return tuple(found for span in spans if (found := extent(span)) is not None)


def overlap(ours: Sequence[Box], theirs: Sequence[Box]) -> float | None:
    """The part of the shorter side that both sides share, 0 to 1; None if they do not compare.

    A chunk may be several spans; each side counts as the whole of its spans on the axis in common.
    """
    common = {box.axis for box in ours} & {box.axis for box in theirs}
    if not common:
        return None
    axis = min(common)
    mine = [box for box in ours if box.axis == axis]
    others = [box for box in theirs if box.axis == axis]
    if len(mine) == len(others) == 1:
        return _area(_shared(mine[0], others[0])) / min(_area(mine[0]), _area(others[0]))
    shared = one = other = 0.0
    for cell in _cells([*mine, *others]):
        in_mine, in_others = (any(_covers(box, cell) for box in side) for side in (mine, others))
        shared += _area(cell) if in_mine and in_others else 0.0
        one += _area(cell) if in_mine else 0.0
        other += _area(cell) if in_others else 0.0
    return shared / min(one, other)


def touches(one: Box | None, others: Sequence[Box]) -> bool:
    """Whether they overlap at all; where they do not compare, nothing speaks against it."""
    share = overlap([one], others) if one else None
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


def _stretch(axis: str, start: float | None, end: float | None, *, inclusive: bool = False) -> Box | None:
    if start is None or end is None or end < start:
        return None
    return Box(axis, start, end + 1 if inclusive else max(end, start + 1))  # a point still has a place


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


def _is_sound(box: Box) -> bool:
    numbers = box[1:]
    return all(-_LARGEST <= number <= _LARGEST for number in numbers) and _area(box) > 0


def _area(box: Box) -> float:
    return max(0.0, box.right - box.left) * max(0.0, box.bottom - box.top)


def _shared(one: Box, other: Box) -> Box:
    return Box(
        one.axis,
        max(one.left, other.left),
        min(one.right, other.right),
        max(one.top, other.top),
        min(one.bottom, other.bottom),
    )


def _covers(box: Box, cell: Box) -> bool:
    return (
        box.left <= cell.left
        and cell.right <= box.right
        and box.top <= cell.top
        and cell.bottom <= box.bottom
    )


def _cells(boxes: Sequence[Box]) -> Iterator[Box]:
    """The grid that the edges of all boxes make; no cell is cut by an edge, so none counts twice."""
    across = sorted({edge for box in boxes for edge in (box.left, box.right)})
    down = sorted({edge for box in boxes for edge in (box.top, box.bottom)})
    for left, right in pairwise(across):
        for top, bottom in pairwise(down):
            yield Box("", left, right, top, bottom)
