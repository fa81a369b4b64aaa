"""The leaderboard of a site: the last runs of a suite against A, of which each is compared once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history import LAST_RUNS
from pytest_kebab_eval.inputs import find_inputs, run_names
from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.reports.leaderboard import Board, BoardComparison, BoardRow
from pytest_kebab_eval.reports.site.directory import SiteDirectory
from pytest_kebab_eval.reports.site.records import PlannedRun, fingerprint
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text import printable
from pytest_kebab_eval.text.progress import Advancing, Progress


class BoardRecord(Value, frozen=True):
    """`against.json`: a run against A, and a hash of what that was made from."""

    key: str
    row: BoardRow


class BoardMaker:
    """Makes the leaderboard of the suite that A is of; `basis` is a hash of what every page depends on."""

    def __init__(
        self,
        settings: Settings,
        golden: GoldenSet,
        runs_a: Sequence[Run],
        plan: Mapping[str, Sequence[PlannedRun]],
        basis: str,
    ) -> None:
        self.suite = runs_a[0].suite
        names = {run.run_id for run in runs_a}
        planned = plan.get(self.suite, ())
        self.runs = [run for run in planned if run.results and run.run.run_id not in names][-LAST_RUNS:]
        self.errors: list[str] = []
        self._golden = golden
        self._settings = settings._replace(run_a=run_names(runs_a), suite=None)
        self._basis = fingerprint([basis, [(run.run_id, run.created_at) for run in runs_a]])

    def make(self, directory: SiteDirectory) -> Board:
        """The board; runs that are new, or have changed, are compared."""
        kept = {planned.run.run_id: self._kept(planned, directory) for planned in self.runs}
        missing = [planned for planned in self.runs if kept[planned.run.run_id] is None]
        compare = BoardComparison(self._settings)
        with Progress("comparing with A", len(missing)) as progress:
            for planned in Advancing(missing, progress):
                kept[planned.run.run_id] = self._compared(planned, compare, directory)
        return Board(self._settings.run_a or "", tuple(row for row in kept.values() if row))

    def _key(self, planned: PlannedRun) -> str:
        return fingerprint([self._basis, planned.identity])

    def _kept(self, planned: PlannedRun, directory: SiteDirectory) -> BoardRow | None:
        if directory.has(planned.board_file):
            with suppress(OSError, ValueError, RecursionError):
                content = (directory.path / planned.board_file).read_bytes()
                record = msgspec.json.decode(content, type=BoardRecord)
                return record.row if record.key == self._key(planned) else None
        return None

    def _compared(
        self, planned: PlannedRun, compare: BoardComparison, directory: SiteDirectory
    ) -> BoardRow | None:
        """The row of a run, which is kept; None, and an error, if it cannot be compared."""
        try:
            settings = self._settings._replace(run_b=planned.run.run_id)
            row = compare.row(find_inputs(settings, golden=self._golden))
        except InputError as error:
            self.errors.append(f"run {printable(planned.run.run_id)} is not on the leaderboard: {error}")
            return None
        record = BoardRecord(self._key(planned), row)
        directory.update(planned.board_file, f"{msgspec.json.encode(record).decode()}\n")
        return row


def changed_queries(board: Board) -> Iterator[tuple[str, dict[str, str]]]:
    """The queries that any run won or failed, those that most runs failed first, with what each run did."""
    words: dict[str, dict[str, str]] = {}
    for row in board.rows:
        for word, query_ids in (("won", row.wins), ("failed", row.failed)):
            for query_id in query_ids:
                words.setdefault(query_id, {})[row.run_id] = word
    counts = {query_id: Counter(found.values()) for query_id, found in words.items()}
    for query_id in sorted(words, key=lambda name: (-counts[name]["failed"], -counts[name]["won"], name)):
        yield query_id, words[query_id]
