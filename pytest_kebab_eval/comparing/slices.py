"""The slices that golden queries are in, such as `difficulty=hard` and `tags=security`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_kebab_eval.model import GoldenQuery

ONE_VALUED_SLICES = ("lang", "difficulty", "category")
SLICES = (*ONE_VALUED_SLICES, "tags", "answerable")


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return (*found, *_metadata_slices(query))


def _metadata_slices(query: GoldenQuery) -> Iterator[str]:
    """`metadata.team=search`, for each value that is a text, a number or a flag."""
    for name, value in query.metadata.items():
        if isinstance(value, (str, int, float)) and str(value).strip():
            yield f"metadata.{name}={str(value).lower() if isinstance(value, bool) else value}"


def slices_by_query(queries: Iterable[GoldenQuery]) -> dict[str, tuple[str, ...]]:
    """The slices of every query; those in the same ones share a tuple."""
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    found = {}
    for query in queries:
        slices = slices_of(query)
        found[query.id] = shared.setdefault(slices, slices)
    return found
