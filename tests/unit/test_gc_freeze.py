"""Reading much without the garbage collector leaves it as it was."""

from __future__ import annotations

import gc

import pytest

from pytest_kebab_eval.gc_freeze import no_collection


def test_it_is_off_in_the_block_and_on_again_after_an_error() -> None:
    enabled = []
    with pytest.raises(ZeroDivisionError), no_collection():
        enabled.append(gc.isenabled() or 1 // 0)
    assert enabled == []
    assert gc.isenabled()


def test_it_stays_off_for_who_switched_it_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_made_in_the_block_is_not_young_afterwards() -> None:
    with no_collection():
        made = [[number] for number in range(10_000)]
    assert len(gc.get_objects(generation=0)) < len(made)


def test_what_others_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with no_collection():
            pass
        assert gc.get_freeze_count() >= before - 1_000  # some of it was freed, by its references
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
