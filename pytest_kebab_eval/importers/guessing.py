"""Files -> the format that they are of, and which file is which of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.importers.importer import Importer
from pytest_kebab_eval.importers.samples import Sample, take_sample
from pytest_kebab_eval.importers.sources import STDIN
from pytest_kebab_eval.text import shown_path

_MOST_FILES = 5  # no format has more


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


def guess_format(importers: Sequence[Importer], paths: Sequence[str]) -> Guess:
    """The one format that the files are of; an error that names all if they could be of several, or none."""
    if STDIN in paths:
        raise InputError(
            "standard input has no format that could be guessed; name the format instead of auto"
        )
    if not 0 < len(paths) <= _MOST_FILES:
        raise InputError(f"there are {len(paths)} files; name one to {_MOST_FILES}, all of the same run")
    samples = [take_sample(path) for path in paths]
    found = [guess for importer in importers for guess in _guesses(importer, paths, samples)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(
            f"{_names(paths)} could be {_either(map(str, found))}; name the format and the files"
        )
    parts = [guess for importer in importers for guess in _partial_guesses(importer, paths, samples)]
    if len(parts) == 1:
        raise InputError(f"this could be {parts[0]}, which needs {parts[0].missing}; name all of its files")
    raise InputError(f"cannot tell the format: {_seen(importers, paths, samples)}; name it instead of auto")


def _guesses(importer: Importer, paths: Sequence[str], samples: Sequence[Sample]) -> Iterator[Guess]:
    """Each way in which every file is one of the format, and no required one is missing."""
    return (guess for guess in _partial_guesses(importer, paths, samples) if guess.missing is None)


def _partial_guesses(importer: Importer, paths: Sequence[str], samples: Sequence[Sample]) -> Iterator[Guess]:
    """Each way in which every file is one of the format."""
    for options in permutations(importer.options, len(paths)):
        if all(option.fits(sample) for option, sample in zip(options, samples, strict=True)):
            by_name = {option.name: path for option, path in zip(options, paths, strict=True)}
            yield Guess(importer, {name: by_name[name] for name in importer.option_names if name in by_name})


def _seen(importers: Iterable[Importer], paths: Sequence[str], samples: Sequence[Sample]) -> str:
    """What each file is, and what it could be if other files were there."""
    parts = []
    for path, sample in zip(paths, samples, strict=True):
        uses = [
            f"--{option.name} of {importer.name}"
            for importer in importers
            for option in importer.options
            if option.fits(sample)
        ]
        could_be = f", which could be {_either(uses)}" if uses else ""
        parts.append(f"{shown_path(Path(path))} is {sample.describe()}{could_be}")
    return "; ".join(parts)


def _names(paths: Sequence[str]) -> str:
    return " and ".join(shown_path(Path(path)) for path in paths)


def _either(texts: Iterable[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} or {last}" if others else last
