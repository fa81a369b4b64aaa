"""The terminal of `kebab-eval review`: hits are shown one by one, and one key says what each is."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from pytest_kebab_eval.cli.output import print_line, tell
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.upkeep.reviewing import Label
from pytest_kebab_eval.upkeep.unlabelled import QueryToReview, UnlabelledHit

_VERDICTS = {"r": "right", "s": "same", "w": "wrong"}
_SKIP, _UNDO, _QUIT = "n", "u", "q"
_CTRL_C, _ESCAPE = "\x03", "\x1b"
_EXPECTED_SHOWN, _TEXT_SHOWN = 400, 800  # characters
_WIDEST = 100


def ask(found: Sequence[QueryToReview]) -> list[Label]:
    """What a person says of the hits; what was decided is kept when they stop half-way."""
    hits = [(reviewed, hit) for reviewed in found for hit in reviewed.hits]
    decided: list[Label | None] = []  # None: skipped
    keys = _typed()
    try:
        while len(decided) < len(hits):
            reviewed, hit = hits[len(decided)]
            _show(reviewed, hit, f"{len(decided) + 1} of {len(hits)}")
            key = _key(keys, reviewed, hit, can_undo=bool(decided))
            if key == _QUIT:
                break
            if key == _UNDO:
                decided.pop()
            else:
                decided.append(_decision(reviewed, hit, key))
    except (KeyboardInterrupt, EOFError):
        tell("stopped; what was decided is kept")
    return [decision for decision in decided if decision]


def _typed() -> Iterator[str]:
    """The keys, one by one: what is typed fast may come together; arrows and the like are none."""
    while True:
        typed = click.getchar()
        for key in () if typed.startswith(_ESCAPE) else typed:
            if key == _CTRL_C:
                raise KeyboardInterrupt
            yield key.lower()


def _key(keys: Iterator[str], reviewed: QueryToReview, hit: UnlabelledHit, *, can_undo: bool) -> str:
    """The next key that means something here; a proposed label is right or wrong, and not the same as one."""
    targets = [str(number) for number, _ in enumerate(reviewed.expected[:9], 1)]
    known = {*_VERDICTS, _SKIP, _QUIT, *targets, *([_UNDO] if can_undo else [])}
    if hit.is_proposed:
        known -= {"s", *targets}
    return next(key for key in keys if key in known)


def _decision(reviewed: QueryToReview, hit: UnlabelledHit, key: str) -> Label | None:
    if key == _SKIP:
        print_line("  skipped")
        return None
    same_as = reviewed.expected[int(key) - 1].id if key.isdigit() else None
    verdict = "same" if same_as else _VERDICTS[key]
    print_line(f"  {verdict}{f' as {same_as}' if same_as else ''}", "red" if verdict == "wrong" else "green")
    return Label(reviewed, hit, verdict, same_as)


def _show(reviewed: QueryToReview, hit: UnlabelledHit, position: str) -> None:
    """A query, what it expects, the hit, and what the keys are."""
    print_line(f"\n[{position}] {brief(reviewed.query.id, 60)}: {brief(reviewed.query.query, 200)}", "cyan")
    for number, passage in enumerate(reviewed.expected, 1):
        lost = " (B lost it)" if passage.id in reviewed.lost else ""
        where = f", {brief(passage.where, 80)}" if passage.where else ""
        print_line(f"  expected {number}. {brief(passage.id, 60)}{where}{lost}")
        _show_text(passage.text, _EXPECTED_SHOWN)
    shares = f", has {100 * hit.shared:.0f} % of {hit.nearest}" if hit.shared and hit.nearest else ""
    places = [*([hit.path] if hit.path else []), *(hit.hit.heading_path or ())]
    where = f", {brief(' > '.join(places), 80)}" if places else ""
    found = f"B at rank {hit.hit.rank}" if hit.is_in_b else "not in B"
    print_line(f"  {'proposed, ' if hit.is_proposed else ''}{found}: {brief(hit.id, 60)}{where}{shares}")
    _show_text(hit.text, _TEXT_SHOWN)
    which = f" (1-{min(9, len(reviewed.expected))}: as which)" if len(reviewed.expected) > 1 else ""
    same = "" if hit.is_proposed else f"   s same{which}"
    print_line(f"  r right{same}   w wrong   n skip   u undo   q quit")


def _show_text(text: str | None, length: int) -> None:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    shown = brief(text, length) if text else "(its text is not known)"
    print_line(textwrap.fill(shown, width, initial_indent="      ", subsequent_indent="      "))
