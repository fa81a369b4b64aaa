"""The command `kebab-eval`: the same logic as the plugin, for scripts and for people."""

from pytest_kebab_eval.cli.commands import main

__all__ = ["main"]
