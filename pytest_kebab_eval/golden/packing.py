"""Golden queries in few bytes, for files with so many of them that they would take most of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import GenericAlias
from typing import Any, overload

import msgspec

from pytest_kebab_eval.limits import PACKED_QUERIES
from pytest_kebab_eval.model import GoldenQuery, Value

_FIELDS = tuple(field.type for field in msgspec.structs.fields(GoldenQuery)[1:])  # all but the id
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(GenericAlias(tuple, _FIELDS)).decode


def kept(queries: Iterable[GoldenQuery]) -> Sequence[GoldenQuery]:
    """The queries as they are kept in memory: as a tuple, or packed if there are many."""
    rest = iter(queries)
    found = tuple(islice(rest, PACKED_QUERIES))
    return found if len(found) < PACKED_QUERIES else PackedQueries(chain(found, rest))


class _Packed(Value, frozen=True):
    """A query whose other fields are packed; its id is shared by all who ask for it."""

    id: str
    fields: bytes

    def unpack(self) -> GoldenQuery:
        fields: tuple[Any, ...] = _unpack(self.fields)
        return GoldenQuery(self.id, *fields)


class PackedQueries(Sequence[GoldenQuery]):
    """Queries that are unpacked when they are asked for, each time anew."""

    def __init__(self, queries: Iterable[GoldenQuery]) -> None:
        self._packed = {
            query.id: _Packed(query.id, _pack(msgspec.structs.astuple(query)[1:])) for query in queries
        }

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
        """The same queries by their id."""
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
