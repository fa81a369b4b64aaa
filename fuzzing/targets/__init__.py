"""What is fuzzed: each target takes bytes, and lets every exception through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fuzzing import CORPUS
from fuzzing.targets.databases import database_bytes, database_values
from fuzzing.targets.files import exported, gates, golden_file, lock, results, snapshot
from fuzzing.targets.imports import importing
from fuzzing.targets.sheets import review_sheet
from pytest_kebab_eval.importers import InstalledImporters

Execute = Callable[[bytes], None]


class Target(NamedTuple):
    """A part of the program that reads what others wrote.

    `prepare` is given a directory, and returns the function to call with each input.
    """

    name: str
    prepare: Callable[[Path], Execute]

    def corpus(self) -> Iterator[bytes]:
        """The inputs to start from."""
        for path in sorted((CORPUS / self.name).iterdir()):
            yield path.read_bytes()


TARGETS = {
    target.name: target
    for target in (
        Target("results", results),
        Target("golden-yaml", golden_file("golden.yaml")),
        Target("golden-json", golden_file("golden.json")),
        Target("golden-jsonl", golden_file("golden.jsonl")),
        Target("export", exported),
        Target("review-sheet", review_sheet),
        Target("lock", lock),
        Target("snapshot", snapshot),
        Target("gates", gates),
        *(
            Target(f"import-{importer.name}", importing(importer))
            for importer in InstalledImporters().load_all(print)
        ),
        Target("database-values", database_values),
        Target("database-bytes", database_bytes),
    )
}
