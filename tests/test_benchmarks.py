"""The benchmarks run: here on a few queries, so that a change that breaks them is noticed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.forked import python
from tests.stores import new_database

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
# The commands that are measured are forked, too: here it does not matter what they cost.
FORKED = """
import runpy, sys
sys.path.insert(0, {benchmarks!r})
import measuring
start = measuring.subprocess.Popen
measuring.subprocess.Popen = lambda command, **given: start([*{python!r}, *command[1:]], **given)
"""


def run(code: str, *args: str | Path, cwd: Path) -> str:
    """What Python prints for this code, which may import the benchmarks."""
    code = FORKED.format(benchmarks=str(BENCHMARKS), python=python()) + code
    done = subprocess.run(python("-c", code, *args), cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_script(name: str, *args: str | Path, cwd: Path) -> str:
    """What a benchmark prints."""
    return run(f"runpy.run_path({str(BENCHMARKS / name)!r}, run_name='__main__')", *args, cwd=cwd)


def rows(code: str, where: Path, *, imports: str = "from bench import *") -> list[list[str]]:
    """The cells of the rows that an expression on a `Bench` gives."""
    bench = f"bench = Bench(Path({str(where)!r}), repeats=1)"
    script = f"{imports}; {bench}\nfor row in {code}: print(row.line())"
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in run(script, cwd=where).splitlines()]


def kinds(where: Path) -> list[str]:
    """What became of each query of the gate that was measured."""
    (report,) = where.glob("*/runs/b/report.json")
    return [query["kind"] for query in json.loads(report.read_text("utf-8"))["per_query"]]


def test_a_gate_is_measured_against_empty_tests(tmp_path: Path) -> None:
    found = {what: limit for what, _, limit, _ in rows("bench.gate(30)", tmp_path)}
    assert found == {
        "gate, 30 queries": "0.42",
        "peak memory of it": "1.15",
        "size of its `report.html`": "4.0 MB",
        "gate, 30 queries, no HTML": "0.35",
    }
    assert kinds(tmp_path).count("regression") == 2  # queries 21 and 29


def test_a_gate_on_postgresql_is_measured_against_one_on_sqlite(tmp_path: Path) -> None:
    with new_database(with_tables=False) as empty:
        here = (
            f"import bench, contextlib; bench.local_database = lambda: contextlib.nullcontext({empty.db!r})"
        )
        imports = f"{here}; from bench import *"
        ((what, against, limit, measured),) = rows("bench.postgres(30)", tmp_path, imports=imports)
    assert what == "gate, 30 queries, PostgreSQL over a local socket"
    assert (against, limit) == ("the same on SQLite", "1.50")
    assert "(wall " in measured


def test_all_queries_of_the_row_that_says_so_fail(tmp_path: Path) -> None:
    ((what, *_),) = rows("bench.all_fail(20)", tmp_path)
    assert "20 queries that all fail" in what
    assert kinds(tmp_path) == ["regression"] * 20


def test_a_limit_is_held_against_the_number_that_is_shown(tmp_path: Path) -> None:
    found = rows("[Row('gate', 'tests', 0.4, measured) for measured in (0.404, 0.406, 0.3)]", tmp_path)
    assert [cells[2:] for cells in found] == [["0.40", "0.40"], ["0.40", "0.41, not met"], ["0.40", "0.30"]]


def test_only_some_rows_are_measured(tmp_path: Path) -> None:
    script = (
        "import bench\n"
        "few = bench.Measurement('few', lambda given: given.warm(30, 1.25))\n"
        "bench.PROMISES = few, bench.Measurement('many', lambda given: 1 / 0)\n"
        "bench.main()\n"
    )
    found = run(script, "--repeats", "1", "--only", "few", cwd=tmp_path)
    (row,) = [line for line in found.splitlines() if line.startswith("| gate")]
    assert row.startswith("| gate, 30 queries | 30 empty tests | 1.25 |")


def test_passages_of_the_notes_of_an_example_are_told_by_their_text(tmp_path: Path) -> None:
    notes = sorted((BENCHMARKS.parent / "examples" / "own_retriever" / "notes").glob("*.md"))
    (tmp_path / "notes").mkdir()
    for number in range(3):  # documents that are long enough to be cut
        text = "\n\n".join(note.read_text(encoding="utf-8") for note in notes[number::3])
        (tmp_path / "notes" / f"{number}.md").write_text(text, encoding="utf-8")
    printed = run_script("real_documents.py", "--corpus", tmp_path / "notes", cwd=tmp_path).splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed if line.startswith("| ")]
    (long,) = [row for row in rows if row[0] == "notes" and len(row) == 5]
    pairs, precision, _, recall = (float(cell.replace(",", "")) for cell in long[1:])
    assert pairs >= 300
    assert precision >= 0.96
    assert recall >= 0.97


@pytest.mark.parametrize("option", ["--quick", "--only=warm"])
def test_tables_of_a_page_are_replaced_as_a_whole(option: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="needs all rows"):
        run_script("bench.py", option, "--output", "page.md", cwd=tmp_path)


def test_a_table_is_replaced_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before\n<!-- growth -->\n| old |\n<!-- end of growth -->\nAfter\n", encoding="utf-8")
    run("from bench import *; write(Path('page.md'), growth=['| new |'])", cwd=tmp_path)
    assert page.read_text("utf-8") == "Before\n<!-- growth -->\n| new |\n<!-- end of growth -->\nAfter\n"


def test_statements_of_two_gates_are_counted(tmp_path: Path) -> None:
    ((what, against, limit, measured),) = rows("bench.statements(20, 40)", tmp_path)
    assert (what, against) == ("statements sent to SQLite by a gate of 40 queries", "of 20")
    assert limit == "1.10"
    many, few = (int(number) for number in measured.partition(" = ")[0].replace(",", "").split(" / "))
    assert many >= few > 10


@pytest.mark.parametrize("name", ["bench.py", "same_output.py"])
def test_a_benchmark_can_be_started(name: str, tmp_path: Path) -> None:
    assert "usage:" in run_script(name, "--help", cwd=tmp_path)


def test_the_site_is_measured_the_first_time_again_and_for_one_more_run(tmp_path: Path) -> None:
    lines = run_script("site.py", tmp_path, "--runs", "3", "--queries", "20", cwd=tmp_path).splitlines()
    assert [line.partition("  ")[0] for line in lines[:5]] == [
        "the first time",
        "again",
        *["one more run"] * 3,
    ]
    assert "3 runs of 1 suite, 0 new or changed, 0 files written" in lines[1]


def test_blame_is_measured_against_reading_once(tmp_path: Path) -> None:
    lines = run_script("blame.py", tmp_path, "--runs", "4", "--queries", "20", cwd=tmp_path).splitlines()
    assert [line.split("   ")[0] for line in lines[:4]] == [
        "reading 80 results once",
        "blame, 20 queries, 4 runs",
        "blame, 2 queries, 4 runs",
        "blame, 1 queries, 4 runs",
    ]
    assert lines[4].endswith("queries are lost in the newest run")


def test_noise_alone_seldom_fails_a_simulated_session_and_a_loss_is_found(tmp_path: Path) -> None:
    script = (
        "from noise import *\n"
        "draw = np.random.default_rng(1)\n"
        "for shared in SHARED:\n"
        "    print(sum(decide(Setting(100, 3, 0.1, shared), draw).fails for _ in range(50)))\n"
        "print(sum(decide(Setting(500, 3, 0.2, lost=10), draw).fails for _ in range(10)))\n"
    )
    *alarms, seen = map(int, run(script, cwd=tmp_path).split())
    assert max(alarms) <= 7  # of 50; at 5 % that or less in 99 % of such tests
    assert seen >= 8  # of 10; at 95 % that or more in 99 % of such tests


def test_intervals_hold_and_shards_are_no_change_in_simulated_comparisons(tmp_path: Path) -> None:
    lines = run_script("intervals.py", "--samples", "2", cwd=tmp_path).splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert [row[0] for row in rows if row[1] == "500"][:2] == ["| nothing changes", "| 1 % fall"]
    assert all(row[-1] == "0 |" for row in rows if "%" in row[2] and len(row) == 6)  # none is contradicted


def test_labels_of_one_run_favour_it_and_reviewed_ones_of_both_do_not(tmp_path: Path) -> None:
    lines = run_script("pooling.py", "--sessions", "5", cwd=tmp_path).splitlines()
    worse = {
        cells[0].removeprefix("| "): (cells[1], cells[4].removesuffix(" |"))
        for cells in (line.split(" | ") for line in lines[2:])
    }
    assert worse["`--run A`"] == ("100.0%", "100.0%")
    assert worse["`--run A --run B`, reviewed"] == ("0.0%", "100.0%")


def test_after_a_review_as_many_queries_fail_as_if_everything_was_labelled(tmp_path: Path) -> None:
    lines = run_script("labels.py", "--sessions", "1", cwd=tmp_path).splitlines()
    before, reviewed, every, everything = ([*map(str.strip, line.split("|"))][2:5] for line in lines[2:])
    assert reviewed[1] == every[1] == everything[1]
    assert float(reviewed[1]) < float(before[1])
    assert 0 < int(reviewed[0]) < int(every[0])
    assert before[2] == "100.0%"


def test_equal_runs_are_seldom_called_better_on_a_simulated_leaderboard(tmp_path: Path) -> None:
    script = "from leaderboard import *\nprint(*shares(30, 'mrr', 50)[:2], shares(50, 'mrr', 10, 0.5)[2])\n"
    alone, together, seen = (float(share) for share in run(script, cwd=tmp_path).split())
    assert together <= 0.14  # of 50; at 5 % that or less in 99 % of such tests
    assert together < alone
    assert seen == 1.0
