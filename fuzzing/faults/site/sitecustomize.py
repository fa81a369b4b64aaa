"""Python imports this when it starts, where this directory is in PYTHONPATH."""

from __future__ import annotations

from fuzzing.faults.injecting import install_from_environment

install_from_environment()
