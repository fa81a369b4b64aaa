"""Few chunks are asked about, and none that the gate's rules would take is left out."""

from __future__ import annotations

import random
import time

import pytest

from pytest_kebab_eval.golden import HashedText
from pytest_kebab_eval.matching.located import ByText, ExpectedLocation
from pytest_kebab_eval.matching.locations import Location, Passages
from pytest_kebab_eval.matching.shingles import hashed_text
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import Hit, MatchMode, Span
from pytest_kebab_eval.spans import Box
from pytest_kebab_eval.upkeep.candidates import Candidates

HALF = 0.5
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices("abcdefghijklmnoprstu", k=DRAW.randint(2, 9))) for _ in range(800)]
CHARACTERS = [chr(0x4E00 + number) for number in range(600)]
NOTICE = "This notice is at the end of every section of the manual, whatever the section is about."


def passage(draw: random.Random, script: str) -> str:
    if script == "unspaced":
        return "".join(draw.choices(CHARACTERS, k=draw.randint(2, 90)))
    words = " ".join(draw.choices(WORDS, k=draw.randint(1, 40)))
    return f"{words} {NOTICE}" if script == "repeated" else words


def hit(number: int, text: str | None = None, lines: tuple[int, int] | None = None) -> Hit:
    citation = Span(kind="line", start=lines[0], end=lines[1]) if lines else None
    return Hit(rank=1, chunk_id=f"n{number}", doc_id="d1", text=text, citation=citation)


def target(text: str | HashedText | None = None, lines: tuple[int, int] | None = None) -> ExpectedLocation:
    extents = (Box("line", lines[0], lines[1] + 1),) if lines else ()
    return ExpectedLocation(frozenset({"d1"}), Location("d1", extents), "old", text)


def matched(hits: list[Hit], wanted: ExpectedLocation) -> set[str | None]:
    rules = ByText([wanted], HALF, Matcher(MatchMode.FALLBACK))
    return {hit.chunk_id for hit in hits if rules.judge([hit], Passages()).correct}


def asked_about(hits: list[Hit], wanted: ExpectedLocation) -> set[str | None]:
    return {hit.chunk_id for hit in Candidates(hits, Passages(), HALF).of(wanted)}


@pytest.mark.parametrize("script", ["spaced", "unspaced", "repeated"])
@pytest.mark.parametrize("known_by", ["text", "hashes"])
def test_no_chunk_is_left_out_that_shares_enough_text(script: str, known_by: str) -> None:
    draw = random.Random(2)
    text = "\n".join(passage(draw, script) for _ in range(30))
    size = 90 if script == "unspaced" else 260
    cuts = sorted(draw.sample(range(len(text)), len(text) // size))
    old = [text[start : start + size] for start in range(0, len(text), size)]
    new = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    hits = [hit(number, part) for number, part in enumerate(new) if part]
    for part in old:
        known = hashed_text(part) if known_by == "hashes" else part
        assert matched(hits, target(known)) <= asked_about(hits, target(known))


def test_no_chunk_is_left_out_that_overlaps_enough_and_few_others_are_asked_about() -> None:
    draw = random.Random(3)
    starts = [draw.randint(1, 5_000) for _ in range(500)]
    lengths = [draw.choice((1, 3, 10, 40)) for _ in starts]
    hits = [
        hit(number, lines=(start, start + length))
        for number, (start, length) in enumerate(zip(starts, lengths, strict=True))
    ]
    hits.append(hit(999, lines=(1, 5_000)))  # one long chunk does not make all others candidates
    candidates = Candidates(hits, Passages(), HALF)
    for start in range(1, 5_000, 50):
        wanted = target(lines=(start, start + 20))
        found = {hit.chunk_id for hit in candidates.of(wanted)}
        assert matched(hits, wanted) <= found
        assert len(found) < 50


def test_a_chunk_that_is_told_by_its_document_alone_is_among_them() -> None:
    hits = [hit(1, text="A text without a place."), hit(2, text="Another one."), hit(3, lines=(1, 9))]
    assert asked_about(hits, target()) == {"n1", "n3"}  # one of each kind is enough


@pytest.mark.parametrize("known_by", ["text", "hashes"])
def test_a_footer_that_all_chunks_have_does_not_make_all_of_them_candidates(known_by: str) -> None:
    draw = random.Random(4)
    bodies = [" ".join(draw.choices(WORDS, k=60)) for _ in range(200)]
    hits = [hit(number, f"{body} {NOTICE}") for number, body in enumerate(bodies)]
    candidates = Candidates(hits, Passages(), HALF)
    for number, body in enumerate(bodies[:20]):
        text = f"{body} {NOTICE}"
        known = hashed_text(text) if known_by == "hashes" else text
        found = {hit.chunk_id for hit in candidates.of(target(known))}
        assert f"n{number}" in found
        assert len(found) < 20


@pytest.mark.parametrize("known_by", ["text", "hashes"])
def test_a_chunk_of_a_long_document_takes_as_long_as_one_of_a_short_document(known_by: str) -> None:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=60)) for _ in range(640)]
    wanted = [target(hashed_text(text) if known_by == "hashes" else text) for text in texts[:40]]

    def seconds(chunks: int) -> float:
        hits = [hit(number, text) for number, text in enumerate(texts[:chunks])]
        candidates = Candidates(hits, Passages(), HALF)
        assert all(
            len({hit.chunk_id for hit in candidates.of(one)}) <= 2 for one in wanted
        )  # itself, and one of its kind
        start = time.process_time()
        for one in wanted * 3:
            assert [*candidates.of(one)]
        return time.process_time() - start

    assert seconds(640) < 6 * seconds(40)  # sixteen times, if all were looked at
