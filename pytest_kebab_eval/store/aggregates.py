"""Aggregates -> `eval_runs.aggregate_json`, the only column ever written in a foreign database."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.store.address import Address, PostgresAddress, is_export, shown_address
from pytest_kebab_eval.store.backend import AggregateWriter
from pytest_kebab_eval.text import printable


def write_aggregates(aggregates: Mapping[tuple[Address, str], bytes]) -> None:
    """Store the JSON for each (database, run id) in one transaction: all of them or none.

    Where A and B are on two servers, or one is in a file, there are two, committed one right after the other.
    Rows are written in the order of their names, so that gates that share runs do not wait for each other.
    """
    aggregates = {key: value for key, value in aggregates.items() if not is_export(key[0])}
    if not aggregates:
        return
    with ExitStack() as stack:
        writers = _open_writers(stack, [address for address, _ in aggregates])
        for (address, run_id), aggregate in sorted(aggregates.items(), key=_order):
            if not writers[address].write(run_id, aggregate.decode()):
                raise StoreError(
                    f"nothing was stored: there is no run '{printable(run_id)}' in {shown_address(address)}"
                )
        for writer in writers.values():
            writer.commit()


def _order(item: tuple[tuple[Address, str], bytes]) -> tuple[str, str]:
    (address, run_id), _ = item
    return shown_address(address), run_id


def _open_writers(stack: ExitStack, addresses: list[Address]) -> Mapping[Address, AggregateWriter]:
    """A writer for each database; files share one transaction."""
    writers: dict[Address, AggregateWriter] = {}
    files = [address for address in addresses if isinstance(address, Path)]
    if files:
        from pytest_kebab_eval.store.sqlite import aggregates as sqlite

        writers.update(stack.enter_context(sqlite.open_for_aggregates(files)).items())
    for address in addresses:
        if isinstance(address, PostgresAddress) and address not in writers:
            from pytest_kebab_eval.store.postgres import aggregates as postgres

            writers[address] = stack.enter_context(postgres.open_for_aggregates(address))
    return writers
