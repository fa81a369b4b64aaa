"""What was measured, as rows of Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from measuring import Cost

PROMISES_HEAD = ["| what | against | at most | measured |", "| --- | --- | --- | --- |"]
GROWTH_HEAD = ["| what | CPU seconds | µs a query | peak memory |", "| --- | ---: | ---: | ---: |"]


class Unit(Enum):
    """How a number and its limit are written. A number is judged as it is written."""

    RATIO = "{:.2f}"
    MORE_MS = "{:+.0f} ms"
    MEGABYTES = "{:.1f} MB"

    def write(self, number: float) -> str:
        return self.value.format(number)

    def read(self, text: str) -> float:
        return float(text.split(maxsplit=1)[0])


class Row(NamedTuple):
    """One promise, or without a limit one fact, and what was measured."""

    what: str
    against: str
    limit: float | None
    measured: float
    unit: Unit = Unit.RATIO
    from_numbers: str = ""  # what the number was computed from
    remark: str = ""

    @property
    def met(self) -> bool:
        return self.limit is None or self.unit.read(self.unit.write(self.measured)) <= self.limit

    def line(self) -> str:
        limit = "" if self.limit is None else self.unit.write(self.limit)
        measured = self.unit.write(self.measured)
        if self.from_numbers:
            measured = f"{self.from_numbers} = {measured}"
        verdict = "" if self.met else ", not met"
        return f"| {self.what} | {self.against} | {limit} | {measured}{self.remark}{verdict} |"


class Growth(NamedTuple):
    """What a size costs."""

    what: str
    cost: Cost
    queries: int

    def line(self) -> str:
        cpu, peak = self.cost.cpu, self.cost.peak_mb
        return f"| {self.what} | {cpu:.1f} | {1e6 * cpu / self.queries:.0f} | {peak:.0f} MB |"


def cpu_ratio(what: str, against: str, limit: float | None, ours: Cost, theirs: Cost) -> Row:
    numbers = f"{ours.cpu:.2f} s / {theirs.cpu:.2f} s"
    return Row(what, against, limit, ours.cpu / theirs.cpu, from_numbers=numbers)


def memory_ratio(what: str, against: str, limit: float | None, ours: Cost, theirs: Cost) -> Row:
    numbers = f"{ours.peak_mb:.0f} MB / {theirs.peak_mb:.0f} MB"
    return Row(what, against, limit, ours.peak_mb / theirs.peak_mb, from_numbers=numbers)


def write(page: Path, **tables: Iterable[str]) -> None:
    """Replace each table of the page between its marks."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, after = re.split(f"{marks[0]}.*?{marks[1]}", text, flags=re.DOTALL)
        text = before + "\n".join([marks[0], *lines, marks[1]]) + after
    page.write_text(text, encoding="utf-8")
