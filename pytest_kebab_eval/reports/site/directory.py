"""The directory of a site: which files in it are ours, written only if they differ, removed if not needed.

`site.json` names the files that were written. Others are neither replaced nor removed, and a directory with
files and no `site.json` is refused. The names that are about to be written are added before anything is, so
that after a call that was killed they still count as ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.text import printable, shown_path

MANIFEST = "site.json"
NO_JEKYLL = ".nojekyll"  # without it GitHub Pages leaves out what begins with an underscore
FORMAT = 5
T = TypeVar("T")
_TO_IGNORE = ("CNAME",)  # beside hidden files such as .git: what a branch for GitHub Pages may have
_OURS = re.compile(
    r"index\.html|\.nojekyll|suites/[^/]+/(?:(?:index|trends)\.html"
    r"|runs/[^/]+/(?:report\.html|record\.json))"
)


class SiteBasis(msgspec.Struct, frozen=True):
    """What every page depends on."""

    version: str
    golden: str
    settings: str
    format: int = FORMAT


class Manifest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="kebab-eval site"):
    """`site.json`."""

    basis: SiteBasis
    files: tuple[str, ...]


class SiteDirectory:
    """A directory that is empty, or a site of ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest = _read_manifest(path)
        self._ours = {name for name in (self._manifest.files if self._manifest else ()) if is_ours(name)}
        self._foreign: set[str] = set()
        self.written = 0
        self.errors: list[str] = []

    @property
    def basis(self) -> SiteBasis | None:
        """What the pages that are there depend on; None if there are none."""
        return self._manifest.basis if self._manifest else None

    def start(self, basis: SiteBasis, names: Collection[str]) -> None:
        """Claim the names that are to be written; those that somebody else has are left to them."""
        self._foreign = {
            name for name in names if name not in self._ours and os.path.lexists(self.path / name)
        }
        self.errors += [
            f"{shown_path(self.path / name)} was not written by kebab-eval site, and stays as it is"
            for name in sorted(self._foreign - {NO_JEKYLL})  # of which any is as good
        ]
        self._write_manifest(basis, self._ours.union(names))

    def has(self, name: str) -> bool:
        return name in self._ours and (self.path / name).is_file()

    def read(self, name: str, kind: type[T]) -> T | None:
        """What an earlier call kept in a file; None if there is nothing that can be used."""
        if self.has(name):
            with suppress(OSError, ValueError, RecursionError):
                return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        return None

    def keep(self, name: str, value: object) -> None:
        """Keep a value in a file, for a later call."""
        self.update(name, f"{msgspec.json.encode(value).decode()}\n")

    def write(self, name: str, parts: Iterable[str]) -> None:
        """Write a file, unless the name is somebody else's; a `StoreError` if that is not possible."""
        if name in self._foreign:
            return
        path = self.path / name
        try:
            self._refuse_links(path.parent)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, parts, follow_link=False)
        except OSError as error:
            raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None
        self.written += 1

    def update(self, name: str, text: str) -> None:
        """Write a file if it would differ."""
        try:
            old = (self.path / name).read_bytes()
        except OSError:
            old = None
        if old != text.encode("utf-8", "surrogatepass"):
            self.write(name, [text])

    def finish(self, basis: SiteBasis, names: Collection[str], missing: Collection[str] = ()) -> None:
        """Remove what is no longer part of the site, or is missing now: a report that could not be made."""
        for name in sorted(self._ours.difference(names).union(self._ours.intersection(missing))):
            path = self.path / name
            with suppress(OSError, StoreError):
                self._refuse_links(path.parent)
                path.unlink()
                for directory in list(path.relative_to(self.path).parents)[:-1]:
                    (self.path / directory).rmdir()  # as far as they are empty
        self._write_manifest(basis, names)

    def _write_manifest(self, basis: SiteBasis, names: Collection[str]) -> None:
        manifest = Manifest(basis=basis, files=tuple(sorted(set(names) - self._foreign)))
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1).decode()
        count = self.written
        self.update(MANIFEST, f"{text}\n")
        self.written = count  # which is of pages and reports

    def _refuse_links(self, path: Path) -> None:
        """A directory of the site that is a link would lead out of it."""
        while path != self.path:
            if path.is_symlink():
                raise StoreError(
                    f"{shown_path(path)} is a link, which is not written through; remove the link"
                )
            path = path.parent


def is_ours(name: str) -> bool:
    """Whether a file of a site may have that name, as a path from its directory."""
    parts = name.split("/")
    return _OURS.fullmatch(name) is not None and ".." not in parts and "\\" not in name and "\0" not in name


def _read_manifest(path: Path) -> Manifest | None:
    """That of a site of ours; None where the directory is empty, or not there."""
    if path.is_dir():
        with suppress(OSError, ValueError, RecursionError):
            return msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{shown_path(path)} cannot be used for a site: {error.strerror or error}") from None
    found = [name for name in names if not name.startswith(".") and name not in _TO_IGNORE]
    if found:
        raise InputError(
            f"{shown_path(path)} is not empty and no site of kebab-eval"
            f" (it has {printable(found[0])}); name another directory"
        )
    return None
