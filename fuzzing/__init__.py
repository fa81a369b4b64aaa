"""Fuzzing: anything but the package's own errors that hostile input brings about is a finding.

    make fuzz SECONDS=600                 # the time is divided over the targets
    make fuzz SECONDS=60 TARGET=import-trec
    python -m fuzzing --repeat fuzzing/findings/import-trec/ValueError-0123abcd.bin

The engine is atheris, which is guided by coverage, where it is installed (the dependency group `fuzz`), else
a mutator that is not guided. Each target has a corpus in `corpus/`; what is found goes to `findings/`.
"""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).parent
CORPUS = HOME / "corpus"
FINDINGS = HOME / "findings"

MAX_INPUT = 1 << 16  # bytes
HANG_SECONDS = 10.0  # that one input may take
MAX_MEMORY = 1 << 30  # bytes of address space that a worker may have
