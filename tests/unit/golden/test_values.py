"""Golden files as text: formats, lines, what YAML's values are, and files that were made to do harm."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval import GoldenError, GoldenSet, load_golden_set
from pytest_kebab_eval.golden.lock import lock_path
from pytest_kebab_eval.golden.values import entries_of
from tests.builders import write_golden
from tests.unit.conftest import load, refusal

FORMATS = ("golden.yaml", "golden.json", "golden.jsonl")
Q1 = "- id: q1\n  query: one\n"
ONE, TWO = '{"id": "q1", "query": "one"}', '{"id": "q2", "query": "two"}'
needs_pipes = pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")

# -- formats and lines ---------------------------------------------------------------------------

LINES: list[tuple[str, str | bytes, dict[str, int]]] = [
    ("g.yaml", "# a comment\n- id: q1\n  query: one\n\n- query: two\n  id: q2\n", {"q1": 2, "q2": 5}),
    ("g.yaml", "- id: q1\r\n  query: one\r\n- id: q2\r\n  query: two\r\n", {"q1": 1, "q2": 3}),
    ("g.yml", Q1, {"q1": 1}),
    ("g", Q1, {"q1": 1}),
    ("g.yaml", "- id: ключ\n  query: 질문 🍢\n", {"ключ": 1}),
    ("g.yaml", f"\ufeff[{ONE}]", {"q1": 1}),
    ("g.json", f"\ufeff[{ONE}]", {"q1": 1}),
    (
        "g.json",
        '[\n  {"id": "q1",\n   "query": "one"},\n\n  {"id": "q2", "query": "two"}\n]\n',
        {"q1": 2, "q2": 5},
    ),
    ("g.json", f"[{ONE}, {TWO}]", {"q1": 1, "q2": 1}),
    ("g.jsonl", f"\ufeff{ONE}\n\n   \n{TWO}", {"q1": 1, "q2": 4}),
    ("g.JSONL", f"{ONE}\r\n{TWO}\r\n", {"q1": 1, "q2": 2}),
    ("g.jsonl", f'{ONE[:-5]}\u2028 x"}}\n{TWO}\n', {"q1": 1, "q2": 2}),
]


@pytest.mark.parametrize(("name", "text", "lines"), LINES)
def test_each_entry_has_the_line_that_it_starts_on(
    tmp_path: Path, name: str, text: str, lines: dict[str, int]
) -> None:
    golden = load(tmp_path, text, name)
    assert {query.id: query.line for query in golden.queries} == lines
    assert golden.by_id().keys() == lines.keys()


REFUSED = [
    # Nothing in it.
    *[("golden.yaml", text, 1, "there is no query") for text in ("", "# a comment\n", "[]\n")],
    *[("golden.json", text, 1, "there is no query") for text in ("[]", " [\n] \n")],
    *[("golden.jsonl", text, 1, "there is no query") for text in ("", "\n\n")],
    # Something else in it.
    ("golden.yaml", "# queries\nqueries:\n  - id: q1\n", 2, "the top level must be a list of queries"),
    ("golden.yaml", "just text\n", 1, "the top level must be a list of queries"),
    ("golden.json", f"\n{ONE}", 2, "the top level must be a list of queries"),
    ("golden.json", "", 1, "the top level must be a list of queries"),
    ("golden.yaml", f"{Q1}---\n- id: q2\n", 3, "a second YAML document"),
    # Broken.
    ("golden.yaml", "- id: q1\n  query: one\n  tags: [a\n- id: q2\n", 4, "this is not YAML"),
    ("golden.yaml", "- id: q1\n  query: 'one\n", 3, "this is not YAML"),
    ("golden.yaml", "- id: q1\n\tquery: one\n", 2, "this is not YAML"),
    ("golden.json", '[\n{"id": "q1",\n "query": oops}]', 3, "this is not JSON"),
    ("golden.json", f"[\n{ONE},\n]", 3, "this is not JSON"),
    ("golden.json", f"[\n{ONE}", 2, "a ',' or ']' is missing"),
    ("golden.json", f"[\n{ONE}\n{TWO}]", 3, "a ',' or ']' is missing"),
    ("golden.json", f"[{ONE}]\nmore", 2, "there is something after the list's end"),
    ("golden.JSON", "[NaN]", 1, "NaN is not a JSON number"),
    ("golden.jsonl", f'{ONE}\n{{"id": "q2"', 2, "this is not JSON"),
    ("golden.jsonl", f"{ONE}\n{TWO} {{}}", 2, "more than one JSON value"),
    # Keys.
    ("golden.yaml", f"{Q1}  id: q2\n", 3, "the key 'id' is there twice"),
    ("golden.yaml", f"{Q1}  xfail:\n    id: a\n    id: b\n", 5, "the key 'id' is there twice"),
    ("golden.json", f'[\n{ONE[:-1]}, "id": "q2"}}]', 2, "the key 'id' is there twice"),
    ("golden.jsonl", f'\n{ONE[:-1]}, "id": "q2"}}', 2, "the key 'id' is there twice"),
    *[
        ("golden.yaml", f"{Q1}  {key}\n", 3, "a key must be plain text")
        for key in ("? [a, b]\n  : 1", "? {a: b}\n  : 1", "&list [a]: 1")
    ],
    # Aliases, merge keys and tags.
    ("golden.yaml", "- id: q1\n  query: *nobody\n", 2, "has no anchor before it"),
    ("golden.yaml", "- &self\n  id: q1\n  query: *self\n", 3, "has no anchor before it"),
    *[("golden.yaml", f"{Q1}  <<: {value}\n", 3, "'<<' takes a mapping") for value in ("text", "[a]", "3")],
    *[
        ("golden.yaml", f"{Q1}  lang: {value}\n", 3, "is not allowed here")
        for value in (
            *("!!python/name:os.system x", "!!python/object/apply:os.getcwd [x]", "!custom x", "!custom [x]"),
            *("!!binary eA==", "!!set {x}", "!!python/tuple [x]"),
        )
    ],
    *[
        ("golden.yaml", f"{Q1}  lang: {value}\n", 3, "is not a valid value; quote it")
        for value in ("2031-02-30", "0b_", "!!int x", "!!bool perhaps", "!!float ''", "!!timestamp soon")
    ],
    ("golden.yaml", f"{Q1}- {{id: q2, query: two, !!int id: 3}}\n", 3, "'id' is not a valid value; quote it"),
    # Characters.
    *[(name, b"\n\n\xe9", 3, "this is not UTF-8 text; save the file as UTF-8") for name in FORMATS],
    ("golden.yaml", f"{Q1}  lang: bell \x07\n", 3, "this is not YAML"),
    *[
        ("golden.jsonl", f"{ONE}\n{{{fields}}}", 2, "a character that is not Unicode text")
        for fields in (
            '"id": "\\ud800", "query": "x"',
            '"id": "q", "query": "x", "tags": ["\\uDFFF"]',
            '"id": "q", "query": "x", "relevance": {"\\ud800": 1}',
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "line", "reason"), REFUSED)
def test_what_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, line: int, reason: str
) -> None:
    message = refusal(tmp_path, content, name)
    assert f"{name}:{line}: " in message
    assert reason in message
    assert message.replace("\n", "").isprintable()


def test_every_broken_line_of_jsonl_is_reported_at_once(tmp_path: Path) -> None:
    head, *problems = refusal(tmp_path, f'oops\n{TWO}\n{ONE[:-1]}, "kk": 1}}\n{{"id"\n', FORMATS[2]).split(
        "\n  "
    )
    assert head == "golden.jsonl has 3 problems:"
    assert [problem.split(": ")[0] for problem in problems] == [f"golden.jsonl:{n}" for n in (1, 3, 4)]


def test_whole_surrogate_pairs_are_text(tmp_path: Path) -> None:
    assert load(tmp_path, '{"id": "q1", "query": "\\ud83c\\udf62"}', FORMATS[2]).queries[0].query == "🍢"


# -- YAML ----------------------------------------------------------------------------------------

TYPED = "yes Yes NO on Off true FALSE null Null ~ = y n 12 -7 0x1F 1_000 1:30 .5 1e3 .inf 2031-01-31"
TEXTS = "tag-1 total nothing falsey trueish onwards offer noise +49 -dash 1.2.3 yEs"


def usual(value: object) -> object:
    """A date where PyYAML makes a moment of it; NaN, which is not itself, as text."""
    if isinstance(value, datetime.datetime):
        return value.date()
    return "NaN" if value != value else value  # noqa: PLR0124


@given(
    st.sampled_from([*TYPED.split(), *TEXTS.split()])
    | st.text("aefnortuy0123456789.-+_", min_size=1, max_size=9)
)
@example("- a")
@example("-")
def test_a_plain_value_is_what_pyyaml_takes_it_for(word: str) -> None:
    text = f"- alone: {word}\n  among: [{word}, text, {word}]\n  quoted: ['{word}']\n"
    try:
        expected = yaml.load(text, yaml.SafeLoader)[0]
    except (yaml.YAMLError, ValueError):
        return
    (entry,) = entries_of(text, ".yaml", [])
    assert repr(usual(entry.value["alone"])) == repr(usual(expected["alone"]))
    assert repr([*map(usual, entry.value["among"])]) == repr([*map(usual, expected["among"])])
    assert entry.value["quoted"] == [word]


def test_aliases_and_merge_keys_stand_for_what_they_name(tmp_path: Path) -> None:
    golden = load(
        tmp_path,
        "- &base {id: q1, query: one, lang: en, difficulty: easy, tags: &tags [a, b]}\n"
        "- {<<: *base, id: q2, difficulty: hard}\n"
        "- {<<: [{lang: de}, *base], id: &text q3, query: *text}\n"
        "- {id: !!str 4, query: four, tags: *tags}\n",
    )
    assert [
        (query.id, query.query, query.lang, query.difficulty, query.tags) for query in golden.queries
    ] == [
        ("q1", "one", "en", "easy", ("a", "b")),
        ("q2", "one", "en", "hard", ("a", "b")),
        ("q3", "q3", "de", "easy", ("a", "b")),
        ("4", "four", None, None, ("a", "b")),
    ]


def test_a_quoted_merge_key_is_an_ordinary_and_so_unknown_field(tmp_path: Path) -> None:
    assert "has the unknown field '<<'" in refusal(tmp_path, f'{Q1}  "<<": {{lang: en}}\n')


def test_a_golden_file_is_read_where_pyyaml_has_no_libyaml(tmp_path: Path) -> None:
    path = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "one", "expected_chunk_ids": ["c1"]}]
    )
    program = (
        "import sys, yaml\n"
        "for name in ('CSafeLoader', 'CLoader', 'CParser'): vars(yaml).pop(name, None)\n"
        "from pytest_kebab_eval import load_golden_set\n"
        "from pytest_kebab_eval.golden.yaml_values import LOADER\n"
        "print(LOADER.__name__, *load_golden_set(sys.argv[1]).by_id())"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["SafeLoader", "q1"]


# -- files made to do harm -----------------------------------------------------------------------

MULTIPLIED = "aliases here multiply into far more than is written"
KEYS = ", ".join(f"k{n}: 0" for n in range(1000))
LONG = "too long for a number; quote it"
DEEP = '{"a":' * 900 + "1" + "}" * 900
SIXTIES = ":".join(["1"] * 500_000)  # each part multiplies what is there by 60
HARMFUL = {
    **{
        f"nested {opening} in {name}": (name, start + opening * 50_000, "nested too deeply")
        for name, start in zip(FORMATS, ("[", "[", ""), strict=True)
        for opening in ("[", '{"a":')
    },
    **{
        f"{field} of 900 levels": ("golden.jsonl", f"{ONE[:-1]}, {field}: {DEEP}}}", "nested too deeply")
        for field in ('"expected_chunk_ids"', '"xfail"', '"k": 0, "metadata"')
    },
    "10^10 aliases": (
        "golden.yaml",
        "- &a0 [x, x]\n" + "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)),
        MULTIPLIED,
    ),
    "a million merged keys": (
        "golden.yaml",
        f"- {{id: q, query: '?', metadata: &big {{{KEYS}}}}}\n"
        + "".join(f"- {{id: q{n}, query: '?', metadata: {{<<: *big}}}}\n" for n in range(1000)),
        MULTIPLIED,
    ),
    **{
        f"a long {kind} number": ("golden.yaml", f"{Q1}  k: {number}\n", LONG)
        for kind, number in {
            "sexagesimal": SIXTIES,
            "negative": f"-{SIXTIES}.5",
            "decimal": "1" * 2_000,
            "hexadecimal": f"0x{'f' * 5_000}",
            "time": f"2031-01-01 00:00:00.{'1' * 2_000}",
        }.items()
    },
    "a long JSON number": ("golden.jsonl", f'{ONE[:-1]}, "k": {"1" * 5_000}}}', "too many digits"),
}  # fmt: skip


@pytest.mark.parametrize("what", HARMFUL)
def test_a_file_that_would_take_all_time_or_memory_is_refused_at_once(tmp_path: Path, what: str) -> None:
    name, content, reason = HARMFUL[what]
    began = time.process_time()
    assert reason in refusal(tmp_path, content, name)
    assert time.process_time() - began < 5


def test_one_set_of_defaults_may_be_merged_into_thousands_of_queries(tmp_path: Path) -> None:
    base = "- &base {id: base, query: '?', lang: en, category: c, difficulty: easy, tags: [a, b, c]}\n"
    golden = load(tmp_path, base + "".join(f"- {{<<: *base, id: q{n}}}\n" for n in range(3000)))
    assert len(golden.queries) == 3001
    assert golden.queries[-1].tags == ("a", "b", "c")


def test_a_text_that_looks_like_a_long_number_is_fine_in_quotes(tmp_path: Path) -> None:
    assert load(tmp_path, f"- id: q1\n  query: '{'1' * 2_000}'\n").queries[0].query == "1" * 2_000


def test_hostile_text_is_shown_inert_in_messages(tmp_path: Path) -> None:
    text = json.dumps({"id": "q\x1b[31m\u202e\n1", "query": "x", "key\x1b]0;title\x07": 1})
    message = refusal(tmp_path, text, "golden.jsonl")
    assert message.isprintable()
    assert "q\\x1b[31m\\u202e 1" in message


# -- files that cannot be read -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere.yaml", r"there is no golden file .*nowhere\.yaml.*--kebab-golden=FILE"),
        ("", "cannot read the golden file"),
        ("a\0b.yaml", "cannot read the golden file"),
    ],
)
def test_a_file_that_is_none_is_an_error(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(GoldenError, match=reason):
        load_golden_set(str(tmp_path / name))


@needs_pipes
@pytest.mark.parametrize("name", ["golden.yaml", "golden.json", "golden.lock.json"])
def test_a_pipe_is_no_golden_file_nor_a_lock_file(name: str, tmp_path: Path) -> None:
    if "lock" in name:
        write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?"}])
    os.mkfifo(tmp_path / name)
    with pytest.raises(
        GoldenError, match=rf"cannot read the (golden|lock) file .*{name}: it is a pipe or a device"
    ):
        load_golden_set(tmp_path / name.replace("lock.json", "yaml"))
    assert lock_path(tmp_path / "golden.yaml") == tmp_path / "golden.lock.json"


@needs_pipes
def test_an_endless_device_is_no_golden_file() -> None:
    with pytest.raises(GoldenError, match=r"cannot read the golden file /dev/zero: it is a pipe or a device"):
        load_golden_set("/dev/zero")


# -- any file at all -----------------------------------------------------------------------------


def set_or_message(content: bytes, name: str) -> GoldenSet | str:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return load(Path(directory), content, name)
        except GoldenError as error:
            return str(error)


PIECES = [
    *"-:[]{}&*!|>'\"#%@`?,\n ",
    Q1,
    "  ",
    "<<",
    "~",
    "---",
    "\t",
    "0x1",
    "1:2",
    "! ",
    "!!str ",
    "&a ",
    "*a",
    "\x85",
]
ANYTHING = st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode())
YAML_LIKE = st.lists(st.sampled_from(PIECES), max_size=20).map(lambda pieces: "".join(pieces).encode())


@pytest.mark.parametrize("name", FORMATS)
@given(content=ANYTHING | YAML_LIKE)
@example(content=b"- &a [*a]")
@example(content=b"- ? : \n")
def test_any_bytes_give_a_set_or_a_golden_error(name: str, content: bytes) -> None:
    found = set_or_message(content, name)
    assert found.queries if isinstance(found, GoldenSet) else name in found


def test_the_fingerprint_is_of_what_the_queries_say_and_not_of_the_layout(tmp_path: Path) -> None:
    text = "- {id: a, query: x, tags: [t], relevance: {c1: 1, c2: 2}}\n- {id: b, query: y}\n"
    same = [
        ("g.yaml", "# new\n- query: y\n  id: b\n- {relevance: {c2: 2, c1: 1}, tags: [t], query: x, id: a}\n"),
        ("g.json", json.dumps([*reversed(yaml.safe_load(text))])),
        ("g.yaml", text.replace("y}", "y, xfail: {reason: known}}")),
    ]  # fmt: skip
    other = [text.replace(old, new) for old, new in (("x", "z"), ("id: b", "id: c"), ("y}", "y, k: 5}"))]
    other += [text.replace("y}", "y, expected_doc_ids: []}")]  # should refuse, where it was not judged
    fingerprint = load(tmp_path, text).fingerprint
    assert {load(tmp_path, content, name).fingerprint for name, content in same} == {fingerprint}
    assert len({fingerprint, *(load(tmp_path, content).fingerprint for content in other)}) == 5


# -- the same in every format --------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
LISTS = st.lists(WORDS, max_size=3)
ENTRIES = st.fixed_dictionaries(
    {"query": WORDS},
    optional={
        **dict.fromkeys(("expected_chunk_ids", "must_contain", "claims", "tags"), LISTS),
        "expected_doc_ids": st.lists(WORDS, min_size=1, max_size=3),
        "relevance": st.dictionaries(WORDS, st.floats(0, 10) | st.integers(0, 10), max_size=3),
        "gold_supports": st.lists(
            st.fixed_dictionaries({"path": WORDS}, optional={"heading": WORDS, "snippets": LISTS}), max_size=3
        ),
        "k": st.integers(1, 100) | st.none(),
        "xfail": st.builds(lambda a, day: {"reason": a, "until": str(day)}, WORDS, st.dates()),
        "metadata": st.dictionaries(st.sampled_from("abc"), st.none() | WORDS, max_size=2),
    },
)  # fmt: skip


@given(st.lists(ENTRIES, min_size=1, max_size=4), st.booleans())
def test_the_same_entries_are_the_same_queries_in_every_format(
    fields: list[dict[str, Any]], ascii_only: bool
) -> None:
    entries = [{"id": f"q{n}", **entry} for n, entry in enumerate(fields)]
    files = {
        "golden.yaml": yaml.safe_dump(entries),
        "golden.json": json.dumps(entries, ensure_ascii=ascii_only, indent=1),
        "golden.jsonl": "\n".join(json.dumps(entry, ensure_ascii=ascii_only) for entry in entries),
    }
    sets = [set_or_message(text.encode(), name) for name, text in files.items()]
    prints = {golden.fingerprint if isinstance(golden, GoldenSet) else golden for golden in sets}
    assert len(prints) == 1
    assert isinstance(sets[0], GoldenSet), sets[0]
    assert [query.id for query in sets[0].queries] == [entry["id"] for entry in entries]
