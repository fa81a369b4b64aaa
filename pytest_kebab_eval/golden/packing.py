"""Golden queries in few bytes, for files with so many of them that they would take most of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import GenericAlias
from typing import Any, overload

import msgspec

from pytest_kebab_eval.golden import is_unusual
from pytest_kebab_eval.model import GoldenQuery, Value

_pack = msgspec.msgpack.Encoder().encode


@cache
def _decoder() -> msgspec.msgpack.Decoder[tuple[Any, ...]]:
    fields = tuple(field.type for field in msgspec.structs.fields(GoldenQuery)[1:])  # all but the id
    return msgspec.msgpack.Decoder(GenericAlias(tuple, fields))


class _Packed(Value, frozen=True):
    """A query whose other fields are packed; its id is shared by all who ask for it."""

    id: str
    fields: bytes

    def unpack(self) -> GoldenQuery:
        fields: tuple[Any, ...] = _decoder().decode(self.fields)
        return GoldenQuery(self.id, *fields)


def pack(query: GoldenQuery) -> bytes:
    """All fields of a query but its id, in few bytes."""
    return _pack(msgspec.structs.astuple(query)[1:])


class PackedQueries(Sequence[GoldenQuery]):
    """Queries that are unpacked when they are asked for, each time anew."""

    def __init__(self, queries: Iterable[GoldenQuery] = ()) -> None:
        self._packed: dict[str, _Packed] = {}
        self._unusual: list[str] = []
        for query in queries:
            self.add(query)

    def add(self, query: GoldenQuery) -> None:
        self._packed[query.id] = _Packed(query.id, pack(query))
        if is_unusual(query):
            self._unusual.append(query.id)

    def add_packed(self, ids: Iterable[str], fields: Iterable[bytes], unusual: Iterable[str] = ()) -> None:
        """Add queries that are packed already: their ids, what `pack` made of them, and which are unusual."""
        self._packed.update(
            (query_id, _Packed(query_id, packed)) for query_id, packed in zip(ids, fields, strict=True)
        )
        self._unusual += unusual

    def unusual(self) -> list[GoldenQuery]:
        """The queries that are in a group or have an xfail."""
        return [self._packed[query_id].unpack() for query_id in self._unusual]

    def packed(self, query_ids: Iterable[str]) -> list[bytes]:
        """Some of the queries as they are kept."""
        return [self._packed[query_id].fields for query_id in query_ids]

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[GoldenQuery]:
        return map(_Packed.unpack, self._packed.values())

    @overload
    def __getitem__(self, index: int) -> GoldenQuery: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[GoldenQuery]: ...
    def __getitem__(self, index: int | slice) -> GoldenQuery | Sequence[GoldenQuery]:
        found = list(self._packed.values())[index]
        return found.unpack() if isinstance(found, _Packed) else tuple(map(_Packed.unpack, found))

    def by_id(self) -> Mapping[str, GoldenQuery]:
        return _ById(self._packed)


class _ById(Mapping[str, GoldenQuery]):
    def __init__(self, packed: dict[str, _Packed]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._packed

    def __getitem__(self, query_id: str) -> GoldenQuery:
        return self._packed[query_id].unpack()
