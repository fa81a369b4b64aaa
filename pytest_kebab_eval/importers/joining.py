"""Two files that belong together by the ids in them: what to say where the ids differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.text import brief


class Ids:
    """The ids in a file, in the order in which they appear."""

    def __init__(self, source: Source, noun: str, ids: Iterable[str] = ()) -> None:
        self.source = source
        self._noun = noun
        self._ids = dict.fromkeys(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._ids

    def __str__(self) -> str:
        return f"{len(self)} {self._noun}{'' if len(self) == 1 else 's'}"

    def add(self, query_id: str) -> None:
        """Add an id, unless it is there."""
        self._ids[query_id] = None

    def adding(self, results: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """The results as they come; their ids are added."""
        for query_id, result in results:
            self.add(query_id)
            yield query_id, result

    def missing_in(self, other: Ids) -> list[str]:
        """The ids that the other file does not have."""
        return [query_id for query_id in self if query_id not in other]


class Join:
    """The ids that results are for, and those that something is expected for.

    It can be checked when all results have been read.
    """

    def __init__(self, results: Ids, expected: Ids) -> None:
        self._results = results
        self._expected = expected

    def check(self) -> str | None:
        """A sentence if an id is in one file alone; an `InputError` if none is in both."""
        results, expected = self._results, self._expected
        alone = results.missing_in(expected), expected.missing_in(results)
        if len(alone[0]) == len(results):
            raise nothing_alike(results, expected)
        if not any(alone):
            return None
        examples = [
            f"'{brief(ids[0], 40)}' is in {file.source.name} alone"
            for ids, file in zip(alone, (results, expected), strict=True)
            if ids
        ]
        return (
            f"{results.source.name} has {results} and {expected.source.name} has {expected},"
            f" {len(results) - len(alone[0])} of them in both: {', '.join(examples)};"
            " say --allow-missing if that is right"
        )


def nothing_alike(ids: Ids, expected: Ids) -> InputError:
    """The error for two files that have no id in common, with an id of each."""
    name, other = ids.source.name, expected.source.name
    return ids.source.error(
        None,
        f"none of its {ids} is one of the {expected} in {other}:"
        f" '{brief(next(iter(ids)), 40)}' is in {name}, '{brief(next(iter(expected)), 40)}' in {other};"
        " write the ids alike, or name the files of the same queries",
    )
