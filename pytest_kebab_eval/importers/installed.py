"""The importers of all installed distributions.

An importer is an entry point of the group `kebab_eval.importers`; pyproject.toml has ours.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.importer import Importer
from pytest_kebab_eval.text import brief, printable

GROUP = "kebab_eval.importers"


class InstalledImporters:
    """Importers by name, each loaded when it is asked for; ours go before others of the same name."""

    def __init__(self) -> None:
        self._entries: dict[str, EntryPoint] = {}
        self.left_out: dict[str, list[str]] = {}  # by name, a sentence on each other one of that name
        found = sorted(entry_points(group=GROUP), key=lambda e: (e.name, not _is_ours(e), _distribution(e)))
        if not any(map(_is_ours, found)):
            raise InputError(
                "pytest-kebab-eval was installed before its formats were entry points, so none is found;"
                " install it again (in a clone: pip install --editable .)"
            )
        for entry in found:
            first = self._entries.setdefault(entry.name, entry)
            if first is not entry:
                problem = _problem(entry, f"is left out: {_distribution(first)} has one of that name")
                self.left_out.setdefault(entry.name, []).append(str(problem))

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def load(self, name: str) -> Importer:
        """The importer of that name; an `InputError` if it cannot be used."""
        entry = self._entries[name]
        try:
            found = entry.load()
        except Exception as error:  # noqa: BLE001  # code of others
            reason = brief(f"{type(error).__name__}: {error}", 120)
            raise _problem(entry, f"cannot be loaded: {reason}") from None
        if not isinstance(found, Importer):
            raise _problem(entry, f"cannot be used: {printable(entry.value)} is no Importer")
        if found.name != name:
            raise _problem(entry, f"cannot be used: it is called '{printable(found.name)}' itself")
        return found

    def load_all(self, tell: Callable[[str], object]) -> list[Importer]:
        """All that can be used, in the order of their names; `tell` gets a sentence on each other one."""
        found = []
        for name in self._entries:
            try:
                found.append(self.load(name))
            except InputError as error:
                tell(str(error))
            for sentence in self.left_out.get(name, ()):
                tell(sentence)
        return found


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith("pytest_kebab_eval.")


def _distribution(entry: EntryPoint) -> str:
    return printable(f"{entry.dist.name} {entry.dist.version}") if entry.dist else "another distribution"


def _problem(entry: EntryPoint, what: str) -> InputError:
    return InputError(f"the importer '{printable(entry.name)}' of {_distribution(entry)} {what}")
