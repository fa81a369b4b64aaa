"""Aggregates -> `eval_runs.aggregate_json`, the only column ever written in a foreign database."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.store.address import Address, shown_address
from pytest_kebab_eval.store.backend import AggregateWriter
from pytest_kebab_eval.text import printable


def write_aggregates(aggregates: Mapping[tuple[Address, str], bytes]) -> None:
    """Store the JSON for each (database, run id) in one transaction: all of them or none."""
    if not aggregates:
        return
    with ExitStack() as stack:
        writers = _open_writers(stack, [address for address, _ in aggregates])
        for (address, run_id), aggregate in aggregates.items():
            if not writers[address].write(run_id, aggregate.decode()):
                raise StoreError(
                    f"nothing was stored: there is no run '{printable(run_id)}' in {shown_address(address)}"
                )
        for writer in writers.values():
            writer.commit()


def _open_writers(stack: ExitStack, addresses: list[Address]) -> Mapping[Address, AggregateWriter]:
    """A writer for each database; files share one transaction."""
    from pytest_kebab_eval.store.sqlite.aggregates import open_for_aggregates

    writers: dict[Address, AggregateWriter] = {}
    files = [address for address in addresses if isinstance(address, Path)]
    writers.update(stack.enter_context(open_for_aggregates(files)).items())
    return writers
