"""The garbage collector, kept from walking again and again over what is not garbage."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection within: it would only walk what is being built."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def set_aside() -> bool:
    """Exempt everything that there is, since it will be needed to the end; not if somebody else did so."""
    if gc.get_freeze_count():
        return False
    gc.freeze()
    return True


def take_back() -> None:
    """Undo it, for a program that goes on."""
    gc.unfreeze()


def leave_to_the_system(*programs: str) -> None:
    """When one of these programs ends, let the operating system have the memory back at once.

    Python would walk all of it three times. It is for programs whose objects are known: one that is in a
    cycle, and waits for its end to write something, would not get to it.
    """
    path = Path(sys.argv[0]) if sys.argv else Path()
    name = path.parent.name if path.name == "__main__.py" else path.stem
    if name in programs:
        atexit.unregister(gc.freeze)
        atexit.register(gc.freeze)
