"""The importers of all installed distributions, and which of them some files are for.

An importer is an entry point of the group `kebab_eval.importers`; pyproject.toml has ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.importer import Importer
from pytest_kebab_eval.importers.samples import Sample, take_sample
from pytest_kebab_eval.importers.sources import STDIN
from pytest_kebab_eval.text import brief, printable, shown_path

GROUP = "kebab_eval.importers"
_MOST_FILES = 5  # no format has more

Tell = Callable[[str], object]
_Candidate = tuple[Importer, Mapping[str, set[str]]]  # for each option, the files that look like it


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
            raise _problem(entry, f"cannot be loaded: {_reason(error)}") from None
        if not isinstance(found, Importer):
            raise _problem(entry, f"cannot be used: {printable(entry.value)} is no Importer")
        if found.name != name:
            raise _problem(entry, f"cannot be used: it is called '{printable(found.name)}' itself")
        return found

    def load_all(self, tell: Tell) -> list[Importer]:
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


def _reason(error: Exception) -> str:
    return brief(f"{type(error).__name__}: {error}", 120)


# -- which of them some files are for --------------------------------------------------------------


class Guess(NamedTuple):
    """A format, and the file for each of its options."""

    importer: Importer
    files: Mapping[str, str]

    @property
    def missing(self) -> str | None:
        """The options that the format needs and no file is for; None if there are none."""
        return self.importer.missing(self.files)

    def __str__(self) -> str:
        files = ", ".join(f"--{name} {shown_path(Path(path))}" for name, path in self.files.items())
        return f"{self.importer.name} ({files})"


def guess_format(importers: Iterable[Importer], paths: Sequence[str], tell: Tell) -> Guess:
    """The one format that the files are of; an error that names all if they could be of several, or none.

    An importer that fails when it is asked is told, and left out.
    """
    if STDIN in paths:
        raise InputError(
            "standard input has no format that could be guessed; name the format instead of auto"
        )
    if not 0 < len(paths) <= _MOST_FILES:
        raise InputError(f"there are {len(paths)} files; name one to {_MOST_FILES}, all of the same run")
    samples = {path: take_sample(path) for path in paths}
    candidates = list(_candidates(importers, samples, tell))
    parts = [guess for candidate in candidates for guess in _guesses(candidate, paths)]
    whole = [guess for guess in parts if guess.missing is None]
    if len(whole) == 1:
        return whole[0]
    if whole:
        names = " and ".join(shown_path(Path(path)) for path in paths)
        raise InputError(f"{names} could be {_either(map(str, whole))}; name the format and the files")
    if len(parts) == 1:
        raise InputError(f"this could be {parts[0]}, which needs {parts[0].missing}; name all of its files")
    raise InputError(f"cannot tell the format: {_seen(candidates, samples)}; name it instead of auto")


def _guesses(candidate: _Candidate, paths: Sequence[str]) -> Iterator[Guess]:
    """Each way in which every file is one of the format."""
    importer, fitting = candidate
    for chosen in permutations(fitting, len(paths)):
        files = dict(zip(chosen, paths, strict=True))
        if all(path in fitting[name] for name, path in files.items()):
            yield Guess(importer, {name: files[name] for name in fitting if name in files})


def _candidates(
    importers: Iterable[Importer], samples: Mapping[str, Sample], tell: Tell
) -> Iterator[_Candidate]:
    for importer in importers:
        try:
            fitting = {
                option.name: {path for path, sample in samples.items() if option.fits(sample)}
                for option in importer.options
            }
        except Exception as error:  # noqa: BLE001  # code of others
            tell(f"the importer '{printable(importer.name)}' cannot be asked: {_reason(error)}")
        else:
            yield importer, fitting


def _seen(candidates: Sequence[_Candidate], samples: Mapping[str, Sample]) -> str:
    """What each file is, and what it could be if other files were there."""
    parts = []
    for path, sample in samples.items():
        uses = [
            f"--{name} of {importer.name}"
            for importer, fitting in candidates
            for name, paths in fitting.items()
            if path in paths
        ]
        could_be = f", which could be {_either(uses)}" if uses else ""
        parts.append(f"{shown_path(Path(path))} is {sample.describe()}{could_be}")
    return "; ".join(parts)


def _either(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last
