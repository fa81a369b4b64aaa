"""Keeps the garbage collector from visiting objects that stay until the program ends."""

from __future__ import annotations

import atexit
import gc
import sys
from pathlib import Path


def freeze() -> bool:
    """`gc.freeze()`, unless someone already did; whether it was done here."""
    if gc.get_freeze_count():
        return False
    gc.freeze()
    return True


def unfreeze() -> None:
    """Undo `freeze`, for a program that goes on."""
    gc.unfreeze()


def skip_final_collection(*programs: str) -> None:
    """If one of these programs is running, have its memory freed by the operating system when it ends.

    Python would visit every object three times. An object in a reference cycle that writes something when it
    is deleted is then never deleted, so name only programs whose objects are known.
    """
    path = Path(sys.argv[0]) if sys.argv else Path()
    name = path.parent.name if path.name == "__main__.py" else path.stem
    if name in programs:
        atexit.unregister(gc.freeze)
        atexit.register(gc.freeze)
