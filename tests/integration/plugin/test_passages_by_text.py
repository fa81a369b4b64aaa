"""A chunker changes, and only texts tell what was found: a passage that B lost fails its query."""

from __future__ import annotations

import pytest

from tests.builders import Json, hit, line, result
from tests.integration.conftest import Project

CONFIGS: dict[str, Json | str] = {"A": {"chunker_version": "v1"}, "B": {"chunker_version": "v2"}}
ROTATION = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
REVOKING = "Create the new key beside the old one, move every service, then revoke the old key."
BACKUPS = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."
NOTICE = "Only an administrator of the project can change this, and only in the settings page."
PLAN = "Signed invoices of customers are kept for {} in the {} plan, then deleted for good."
HINDI = "सर्वर की कुंजी हर तिमाही के पहले सोमवार को बदली जाती है और पुरानी कुंजी रद्द की जाती है। {}"

Cases = dict[str, tuple[str, tuple[str, ...]]]

LOST: Cases = {
    # by query: the expected text, and the hits of B
    "fence": (ROTATION, ("```",)),
    "rule": (ROTATION, ("---",)),
    "image": (ROTATION, ("![](x.png)",)),
    "nothing": (ROTATION, ("",)),
    "table-rule": (ROTATION, ("| --- | :-: |",)),
    "invisible": (ROTATION, ("\u200b\u00ad\ufeff&nbsp;",)),
    "comment": (ROTATION, ("<!-- Keys are rotated on the first Monday of a quarter, by the engineer -->",)),
    "fence-and-others": (ROTATION, ("```", BACKUPS)),
    "word-in-words": (f"{ROTATION} You can not export them.", ("Note", BACKUPS)),
    "letter": (ROTATION, ("A", BACKUPS)),
    "short-alone": (f"{ROTATION} {REVOKING}", ("on call.", BACKUPS)),
    "near-copy": (PLAN.format("30 days", "standard"), (PLAN.format("365 days", "enterprise"),)),
    "near-copy-of-a-plan": (PLAN.format("30 days", "standard"), (PLAN.format("30 days", "enterprise"),)),
    "near-copy-of-a-number": (PLAN.format("30 days", "standard"), (PLAN.format("365 days", "standard"),)),
    "a-digit-more": (PLAN.format("5 days", "standard"), (PLAN.format("15 days", "standard"),)),
    "a-digit-at-the-edge": (f"{ROTATION} Keys: 5", (f"{ROTATION} Keys: 50",)),
    "a-point-in-a-number": (PLAN.format("1.5 days", "standard"), (PLAN.format("15 days", "standard"),)),
    "copy-elsewhere": (f"{ROTATION} {NOTICE}", (f"{BACKUPS} {NOTICE}",)),
    "vowel-signs": (
        HINDI.format("इसकी सूचना दल को दी जाती है।"),
        ("सर्वर का कुंजा हर तिमाहा का पहला सोमवार का बदला जाता ह और पुराना कुंजा रद्द का जाता ह।",),
    ),
}
KEPT: Cases = {
    "finer": (f"{ROTATION} {REVOKING}", (ROTATION,)),
    "coarser": (REVOKING, (f"{ROTATION}\n\n{REVOKING}\n\n{BACKUPS}",)),
    "entities": (
        ROTATION.replace("engineer", '"engineer\'s help"'),
        (ROTATION.replace("engineer", "&quot;engineer&#x27;s&nbsp;help&quot;"),),
    ),
    "entities-escaped-twice": (
        ROTATION.replace("engineer", '"engineer"'),
        (ROTATION.replace("engineer", "&amp;quot;engineer&amp;quot;"),),
    ),
    "pdf": (ROTATION, (ROTATION.replace("quarter", "quar-\nter").replace("first", "\ufb01rst"),)),
    "markup": (ROTATION, (f"> **{ROTATION[:30]}**{ROTATION[30:]}\n\n```python\nprint(1)\n```",)),
    "soft-hyphens": (
        ROTATION,
        (ROTATION.replace("quarter", "quar\u00adter").replace("Monday", "Mon\u200bday"),),
    ),
    "links": (ROTATION, (ROTATION.replace("on call", "[on call](https://example.org/who/is/on/call.html)"),)),
    "rst": (
        ROTATION,
        (f".. note::\n\n   {ROTATION.replace('engineer', ':ref:`engineer <people-on-call>`')}",),
    ),
    "tags": (ROTATION, (f"<p>{ROTATION.replace('first', '<em>first</em>')}</p>",)),
    "full-width": (ROTATION, ("".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in ROTATION),)),
    "hindi": (HINDI.format("इसकी सूचना दल को दी जाती है।"), (HINDI.format(""),)),
    "table": (f"{ROTATION} {REVOKING}", (f"| {ROTATION} | {REVOKING} |",)),
    "blank-beside": (ROTATION, (ROTATION, "---")),
}


def saying(text: str, chunk_id: str, rank: int = 1) -> Json:
    return hit(chunk_id, rank, doc_id="d1", doc_path="d1.md", text=text)


def store(project: Project, cases: Cases, found_in_a: str = "old") -> None:
    """Runs in which A finds the text of every query first, as a chunk of that name."""
    project.write_golden(*({"id": name, "expected_chunk_ids": [f"old-{name}"]} for name in cases))
    a = {name: result(saying(expected, f"{found_in_a}-{name}")) for name, (expected, _) in cases.items()}
    b = {
        name: result(*(saying(text, f"new-{name}-{rank}", rank) for rank, text in enumerate(texts, 1)))
        for name, (_, texts) in cases.items()
    }
    project.make_database(configs=CONFIGS, A=a, B=b)


def compare(project: Project, cases: Cases) -> pytest.RunResult:
    store(project, cases)
    return project.pytest()


def test_a_query_whose_passage_was_lost_fails_and_one_that_was_cut_anew_passes(project: Project) -> None:
    outcome = compare(project, LOST | KEPT)
    kinds = {query["query_id"]: query["kind"] for query in project.report()["per_query"]}
    assert kinds == dict.fromkeys(LOST, "regression") | dict.fromkeys(KEPT, "draw")
    outcome.assert_outcomes(failed=len(LOST), passed=len(KEPT))
    matched = project.report()["deltas"]["matched_by"]
    assert matched == {
        "chunk": 0,
        "anchor": 0,
        "span": 0,
        "text": len(LOST | KEPT),
        "answer": 0,
        "document": 0,
    }


# -- warnings --------------------------------------------------------------------------------------

LENGTHS = "*the hits of run B have * characters on average, those of run A *"


def written(project: Project) -> list[str]:
    """The reports as text."""
    return [(project.path / name).read_text("utf-8") for name in project.reports()]


def test_hits_of_more_than_twice_the_length_are_warned_of_in_the_summary_and_in_reports(
    project: Project,
) -> None:
    outcome = compare(project, {"longer": (ROTATION, (f"{BACKUPS} {ROTATION} {REVOKING}",))})
    outcome.assert_outcomes(passed=1)
    outcome.stdout.fnmatch_lines([LENGTHS])
    assert all("characters on average, those of run A" in text for text in written(project))


def test_a_chunker_that_loses_nothing_is_not_warned_of(project: Project) -> None:
    outcome = compare(project, {name: KEPT[name] for name in ("finer", "pdf", "table")})
    outcome.assert_outcomes(passed=3)
    outcome.stdout.no_fnmatch_line("*warning*")
    assert project.report()["warnings"] == []


# -- chunkers that cut coarser, told by spans ------------------------------------------------------


def test_one_huge_chunk_is_not_every_target_of_its_document(project: Project) -> None:
    def on_lines(chunk_id: str, start: int, end: int) -> Json:
        return result(hit(chunk_id, doc_id="d1", doc_path="d1.md", citation=line("d1.md", start, end)))

    project.write_golden(*({"id": f"q{n}", "expected_chunk_ids": [f"c{n}"]} for n in (1, 2)))
    a = {"q1": on_lines("c1", 1, 10), "q2": on_lines("c2", 500, 510)}
    project.make_database(configs=CONFIGS, A=a, B=dict.fromkeys(a, on_lines("all", 1, 4_000)))
    project.pytest().assert_outcomes(failed=2)
