"""The garbage collector, kept from walking again and again over what is not garbage."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


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


def set_aside() -> None:
    """Exempt everything that there is, since it will be needed to the end."""
    gc.freeze()


def take_back() -> None:
    """Undo it, for a program that goes on."""
    gc.unfreeze()


def leave_to_the_system() -> None:
    """When the program ends, let the operating system have the memory back at once.

    Python would walk all of it three times. It is for programs whose objects are known: one that is in a
    cycle, and waits for its end to write something, would not get to it.
    """
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
