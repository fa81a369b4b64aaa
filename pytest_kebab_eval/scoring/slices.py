"""The slices that golden queries are in, such as `difficulty=hard`."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_kebab_eval.model import GoldenQuery

ONE_VALUED_SLICES = ("lang", "difficulty", "category")
SLICES = (*ONE_VALUED_SLICES, "tags", "answerable")


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in, such as `difficulty=hard` and `tags=security`."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return tuple(found)


def slices_by_query(queries: Iterable[GoldenQuery]) -> dict[str, tuple[str, ...]]:
    """The slices of every query; those in the same ones share a tuple."""
    shared: dict[object, tuple[str, ...]] = {}
    found = {}
    for query in queries:
        labels = (query.lang, query.difficulty, query.category, query.tags, query.can_be_answered)
        slices = shared.get(labels)
        if slices is None:
            slices = shared[labels] = slices_of(query)
        found[query.id] = slices
    return found
