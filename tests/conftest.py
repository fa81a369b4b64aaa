"""What all tests have in common: a busy machine is no reason to fail."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kebab-eval", deadline=None)
settings.load_profile("kebab-eval")
