"""How well passages are told by their text on real documents: precision and recall, the truth by offsets.

    make matching
    python benchmarks/real_documents.py [--documents 16] [--corpus DIR …] [--pairs] [--wrong N]

Documents are cut by five chunkers, and every chunk of one is held against every chunk of another in the same
document. Two chunks are the same passage if they share at least half of the shorter one, by the offsets at
which they were cut from the source. The documents are those of packages on PyPI, downloaded once
into build/corpora: in five scripts, prose and reference pages. `--corpus` names directories of your own.

A chunker emits what splitters emit: headings alone, code fences, rules, single list items; one stores plain
text, one text with HTML entities, one wraps lines anew. The length of a pair is that of its shorter text, in
letters; a Chinese or Japanese character counts as three, a Korean one as two.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import re
import tarfile
import textwrap
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.matching.targets import SPAN_OVERLAP
from pytest_kebab_eval.matching.text import letters_of, shared_part

STORED = Path(__file__).parent.parent / "build" / "corpora"
ENDINGS = {".md", ".rst", ".txt"}
LEAST_CHARACTERS = 2_000  # of a document that is worth cutting
MOST_CHARACTERS = 12_000  # what is beyond is not looked at: pairs are quadratic
LENGTHS = (1, 24, 40, 100, 200)


class Chunk(NamedTuple):
    """A passage: where it is in its document, and the text that is stored of it."""

    start: int
    end: int
    text: str


class Sdist(NamedTuple):
    """A source distribution on PyPI."""

    name: str
    version: str
    sha256: str


FASTAPI = Sdist("fastapi", "0.94.1", "4a75936dbf9eb74be5eb0d41a793adefe9f3fc6ba66dbdabd160120fd3c2d9cd")
# Its tutorials say in up to twelve tabs a page which of two forms is preferred, in the same words.
WITH_TABS = Sdist("fastapi", "0.110.0", "266775f0dcc95af9d3ef39bad55cff525329a931d5fd51930aadd4f428bf7ff3")
DJANGO = Sdist("django", "5.2.1", "57fe1f1b59462caed092c80b3dd324fd92161b620d59a9ba9181c34746c97284")
PYTEST = Sdist("pytest", "8.4.0", "14d920b48472ea0dbf68e45b96cd1ffda4705f33307dcc86c676c1b5104838a6")

# Without pages that a template makes: lists of releases, of people, of links.
_PAGES = r"(?!release-notes|fastapi-people|external-links|reference).*\.md"
PROSE: dict[str, tuple[Sdist, str]] = {
    "English (Django)": (DJANGO, r"docs/(intro|topics|howto)/.*\.txt"),
    "English (FastAPI)": (FASTAPI, f"docs/en/docs/{_PAGES}"),
    "Russian": (FASTAPI, f"docs/ru/docs/{_PAGES}"),
    "Chinese": (FASTAPI, f"docs/zh/docs/{_PAGES}"),
    "Japanese": (FASTAPI, f"docs/ja/docs/{_PAGES}"),
    "Korean": (FASTAPI, f"docs/ko/docs/{_PAGES}"),
}
REFERENCE: dict[str, tuple[Sdist, str]] = {
    "reference (Django)": (DJANGO, r"docs/ref/.*\.txt"),
    "tutorials with tabs (FastAPI)": (WITH_TABS, r"docs/(en|ru|zh|ko)/docs/tutorial/.*\.md"),
    "reference (pytest)": (PYTEST, r"doc/en/(reference|how-to|announce)/.*\.rst"),
}


# -- documents -------------------------------------------------------------------------------------


def downloaded(sdist: Sdist) -> Path:
    """Where the sdist is, which is downloaded the first time."""
    path = STORED / f"{sdist.name}-{sdist.version}.tar.gz"
    if not path.exists():
        with urllib.request.urlopen(f"https://pypi.org/simple/{sdist.name}/") as page:
            links = re.findall(r'href="([^"#]+)', page.read().decode())
        address = next(link for link in links if link.lower().endswith(path.name))
        with urllib.request.urlopen(urllib.parse.urljoin(page.url, address)) as file:
            data = file.read()
        if hashlib.sha256(data).hexdigest() != sdist.sha256:
            raise SystemExit(f"{address} is not the file that was measured")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def in_sdist(sdist: Sdist, pattern: str, most: int, longest: int = MOST_CHARACTERS) -> list[str]:
    """Documents of a sdist, evenly chosen."""
    inside = re.compile(rf"[^/]+/{pattern}")
    with tarfile.open(downloaded(sdist)) as archive:
        files = (member for member in archive if member.isfile() and inside.fullmatch(member.name))
        texts = {member.name: archive.extractfile(member).read().decode() for member in files}  # type: ignore[union-attr]
    return chosen([texts[name] for name in sorted(texts)], most, longest)


def in_directory(directory: Path, most: int) -> list[str]:
    """Documents of a directory, evenly chosen."""
    paths = sorted(path for path in directory.rglob("*") if path.suffix in ENDINGS)
    return chosen([path.read_text(encoding="utf-8", errors="replace") for path in paths], most)


def chosen(texts: list[str], most: int, longest: int = MOST_CHARACTERS) -> list[str]:
    texts = [text[:longest] for text in texts if len(text) >= LEAST_CHARACTERS]
    return texts[:: -(-len(texts) // most)] if texts else []


# -- chunkers --------------------------------------------------------------------------------------

Cuts = Iterator[tuple[int, int]]
_HEADING = re.compile(r"^#+ .*|^(?=.+\n([=\-~^*\"'])\1{2,}$)", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|(?<=[。！？])\s*|\n\n+")


def between(ends: list[int], text: str) -> Cuts:
    return ((start, end) for start, end in pairwise([0, *ends, len(text)]) if end > start)


def by_paragraphs(text: str) -> Cuts:
    """At every empty line: a heading, a rule or a code fence may be alone."""
    return between([match.end() for match in re.finditer(r"\n\s*\n", text)], text)


def by_headings(text: str) -> Cuts:
    """A section a chunk, with its heading."""
    return between([match.start() for match in _HEADING.finditer(text)], text)


def by_sentence_windows(text: str, sentences: int = 4, step: int = 3) -> Cuts:
    """So many sentences a chunk, each beginning within the one before it."""
    ends = [0, *sorted({match.end() for match in _SENTENCE.finditer(text)} - {0, len(text)}), len(text)]
    return ((ends[at], ends[min(at + sentences, len(ends) - 1)]) for at in range(0, len(ends) - 1, step))


def recursively(text: str, size: int = 400) -> Cuts:
    """As LangChain's splitter for Markdown: at the first of these that leaves pieces of at most that size."""
    return _recursively(text, 0, size, ("\n## ", "\n```\n", "\n---\n", "\n\n", "\n", " ", ""))


def _recursively(text: str, offset: int, size: int, separators: tuple[str, ...]) -> Cuts:
    while separators and separators[0] not in text:
        separators = separators[1:]
    if len(text) <= size:
        yield offset, offset + len(text)
        return
    first, *others = separators
    width = 1 if not first else 0
    cuts = (
        range(size, len(text), size)
        if width
        else [match.start() for match in re.finditer(re.escape(first), text)]
    )
    start = end = 0
    for cut in [*cuts, len(text)]:
        if cut - start > size and end > start:
            yield offset + start, offset + end
            start = end
        if cut - start > size:
            yield from _recursively(text[start:cut], offset + start, size, tuple(others))
            start = cut
        end = cut
    if end > start:
        yield offset + start, offset + end


def by_characters(text: str, size: int = 500, overlap: int = 100) -> Cuts:
    """So many characters a chunk, wherever that cuts; each begins within the one before it."""
    return ((start, min(start + size, len(text))) for start in range(0, len(text) - overlap, size - overlap))


def as_it_is(text: str) -> str:
    return text


def wrapped_anew(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 50)


def plain(text: str) -> str:
    """As a converter to plain text makes it of Markdown or reStructuredText."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    text = re.sub(r":[\w:+-]+:`~?([^`<]*?)\s*(<[^>`]*>)?`", r"\1", text)
    text = re.sub(
        r"^(#+ |[-*+] |\d+\. |> ?|```.*$|~~~.*$|([=\-~^*\"'`])\2{2,}$)", "", text, flags=re.MULTILINE
    )
    return re.sub(r"\*\*|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)", "", text)


def with_entities(text: str) -> str:
    return html.escape(text).replace("'", "&#x27;").replace("\N{NO-BREAK SPACE}", "&nbsp;")


CHUNKERS: dict[str, tuple[Callable[[str], Cuts], Callable[[str], str]]] = {
    "characters": (by_characters, as_it_is),
    "paragraphs": (by_paragraphs, as_it_is),
    "headings": (by_headings, plain),
    "sentences": (by_sentence_windows, wrapped_anew),
    "recursive": (recursively, with_entities),
}


def chunks_of(name: str, text: str) -> list[Chunk]:
    """A document, cut by the chunker of that name."""
    cut, stored = CHUNKERS[name]
    return [Chunk(start, end, stored(text[start:end])) for start, end in cut(text)]


def overlap(one: Chunk, other: Chunk) -> float:
    """The truth: how much of the shorter passage both cover, in characters of the document."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    return max(0, shared) / min(one.end - one.start, other.end - other.start)


# -- precision and recall --------------------------------------------------------------------------

_WIDE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")


def size_of(text: str) -> int:
    """The letters of a text, such that they say about as much in every script."""
    letters = letters_of(text)
    return len(letters) + 2 * len(_WIDE.findall(letters)) + len(_HANGUL.findall(letters))


class Outcome(NamedTuple):
    """What was said of a pair of chunks, and what is true."""

    corpus: str
    pair: str
    length: int  # the class of the shorter one
    said: bool
    true: bool
    once: bool  # the shorter one's text stands once in the document


Tally = Counter[Outcome]


class Pairs:
    """All pairs of chunks of two chunkers in one document."""

    def __init__(self, corpus: str, text: str) -> None:
        self._corpus = corpus
        self._cut = {name: chunks_of(name, text) for name in CHUNKERS}
        self._letters = letters_of(text)
        self._sizes = {id(chunk): size_of(chunk.text) for found in self._cut.values() for chunk in found}

    def judged(self) -> Iterator[tuple[Outcome, Chunk, Chunk]]:
        for one, other in combinations(CHUNKERS, 2):
            for expected in self._cut[one]:
                for hit in self._cut[other]:
                    size = min(self._sizes[id(expected)], self._sizes[id(hit)])
                    part = shared_part(expected.text, hit.text)
                    said, true = (part or 0.0) >= SPAN_OVERLAP, overlap(expected, hit) >= SPAN_OVERLAP
                    if size and (said or true):
                        length = max(least for least in LENGTHS if least <= size)
                        shorter = min(expected, hit, key=lambda chunk: self._sizes[id(chunk)])
                        once = self._letters.count(letters_of(shorter.text)) < 2
                        pair = f"{one} and {other}"
                        yield Outcome(self._corpus, pair, length, said, true, once), expected, hit


def row(title: str, tally: Tally) -> str:
    counts = Counter[tuple[bool, bool]]()
    for outcome, count in tally.items():
        counts[outcome.said, outcome.true] += count
    right, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    precision = f"{right / (right + wrong):.3f}" if right + wrong else ""
    recall = f"{right / (right + missed):.3f}" if right + missed else ""
    repeated = sum(
        count for outcome, count in tally.items() if outcome.said and not outcome.true and not outcome.once
    )
    once = f"{right / (right + wrong - repeated):.3f}" if right + wrong - repeated else ""
    return f"| {title} | {right + missed:,} | {precision} | {once} | {recall} |"


def where(tally: Tally, condition: Callable[[Outcome], bool]) -> Tally:
    return Counter({outcome: count for outcome, count in tally.items() if condition(outcome)})


def table(title: str, rows: dict[str, Tally]) -> Iterator[str]:
    yield f"| {title} | pairs | precision | without repeated text | recall |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    yield from (row(name, tally) for name, tally in rows.items())
    yield ""


def of_lengths(tally: Tally) -> dict[str, Tally]:
    bounds = [*(f"{least} to {most - 1}" for least, most in pairwise(LENGTHS)), f"{LENGTHS[-1]} and more"]
    return {
        name: where(tally, lambda outcome, least=least: outcome.length == least)  # type: ignore[misc]
        for name, least in zip(bounds, LENGTHS, strict=True)
    }


def is_long(outcome: Outcome) -> bool:
    return outcome.length >= 40


def tables(tally: Tally, prose: list[str], *, pairs: bool) -> Iterator[str]:
    long = where(tally, is_long)
    corpora = list(dict.fromkeys(outcome.corpus for outcome in tally))
    by_corpus = {name: where(long, lambda outcome, name=name: outcome.corpus == name) for name in corpora}  # type: ignore[misc]
    yield from table("40 letters and more", by_corpus)
    in_prose = where(tally, lambda outcome: outcome.corpus in prose)
    yield from table("prose, letters of the shorter", of_lengths(in_prose))
    others = where(tally, lambda outcome: outcome.corpus not in prose)
    if others:
        yield from table("pages that repeat themselves, letters of the shorter", of_lengths(others))
    long_prose = where(in_prose, is_long)
    names = dict.fromkeys(outcome.pair for outcome in long_prose)
    yield from table(
        "prose, 40 letters and more, cut by",
        {name: where(long_prose, lambda outcome, name=name: outcome.pair == name) for name in names},  # type: ignore[misc]
    )
    yield from table(
        "40 letters and more",
        {
            "prose": long_prose,
            "pages that repeat themselves": where(others, is_long),
        },
    )
    if pairs:
        for corpus in corpora:
            for name in names:
                both = where(long, lambda outcome: (outcome.corpus, outcome.pair) == (corpus, name))  # noqa: B023
                yield row(f"{corpus}: {name}", both)


class Confused:
    """Expected chunks of 100 letters and more, and those that another passage of the document counts as."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, str, Chunk], bool]] = {}

    def add(self, outcome: Outcome, text: str, expected: Chunk) -> None:
        if outcome.length >= 100:
            of_corpus = self._found.setdefault(outcome.corpus, {})
            key = text, outcome.pair, expected
            of_corpus[key] = of_corpus.get(key, False) or (outcome.said and not outcome.true)

    def table(self) -> Iterator[str]:
        yield "| 100 letters and more | expected chunks | another passage counts as it |"
        yield "| --- | ---: | ---: |"
        for corpus, found in self._found.items():
            yield f"| {corpus} | {len(found):,} | {sum(found.values()) / len(found):.1%} |"
        yield ""


def show(outcome: Outcome, expected: Chunk, hit: Chunk) -> str:
    """A pair that was judged wrongly."""
    part = shared_part(expected.text, hit.text)
    what = f"{outcome.corpus}, {outcome.pair}: says {part}, is {overlap(expected, hit):.2f}"
    texts = (textwrap.shorten(chunk.text, 700) for chunk in (expected, hit))
    return "\n".join([what, *(f"    [{text}]" for text in texts)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure matching by text on real documents.")
    parser.add_argument("--documents", type=int, default=16, help="of each corpus")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="a directory of documents")
    parser.add_argument("--pairs", action="store_true", help="every corpus by pair of chunkers, too")
    parser.add_argument(
        "--wrong", type=int, default=0, help="show every so many-th pair that is judged wrongly"
    )
    given = parser.parse_args()
    corpora = {path.name: in_directory(path, given.documents) for path in given.corpus}
    prose = list(corpora) or list(PROSE)
    if not corpora:
        places = {**PROSE, **REFERENCE}
        corpora = {name: in_sdist(*place, given.documents) for name, place in places.items()}
    tally, confused, wrong = Tally(), Confused(), 0
    for corpus, texts in corpora.items():
        for text in texts:
            pairs = Pairs(corpus, text)
            for outcome, expected, hit in pairs.judged():
                tally[outcome] += 1
                confused.add(outcome, text, expected)
                if given.wrong and outcome.said != outcome.true and outcome.once and is_long(outcome):
                    wrong += 1
                    if wrong % given.wrong == 0:
                        print(show(outcome, expected, hit), flush=True)
    documents = sum(map(len, corpora.values()))
    print(f"{documents} documents, {sum(tally.values()):,} pairs that are the same or said to be\n")
    print(*tables(tally, prose, pairs=given.pairs), *confused.table(), sep="\n")


if __name__ == "__main__":
    main()
