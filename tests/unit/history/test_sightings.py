"""The last good run and the first bad one after it, of what each run says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.history.sightings import Rate, Sighting, State, Trace

LETTERS = {
    "F": State.FOUND,
    "L": State.LOST,
    "E": State.ERROR,
    "A": State.ABSENT,
    "U": State.UNREADABLE,
    "?": State.UNKNOWN,
}


def trace(states: str) -> Trace:
    """The trace of runs 0, 1, 2, … by their letters."""
    made = Trace()
    for run, letter in enumerate(states):
        made.add(Sighting(run, LETTERS[letter]))
    return made


def ends(made: Trace) -> tuple[int | None, int | None]:
    good, bad = made.last_good, made.first_bad
    return good.run if good else None, bad.run if bad else None


@pytest.mark.parametrize(
    ("states", "last_good", "first_bad"),
    [
        ("FFLL", 1, 2),
        ("FLFLL", 2, 3),  # found, lost, found, lost: the last loss counts
        ("FLF", 2, None),
        ("LLL", None, 0),
        ("FFF", 2, None),
        ("AAA", None, None),
        ("FEL", 0, 1),  # an error is a loss
        ("FAUL", 0, 3),  # runs that do not tell are stepped over
        ("FA", 0, None),
        ("F?L", 0, 2),
    ],
)
def test_the_last_good_run_and_the_first_bad_one_after_it(
    states: str, last_good: int | None, first_bad: int | None
) -> None:
    assert ends(trace(states)) == (last_good, first_bad)


def test_runs_that_do_not_tell_are_remembered_up_to_the_first_bad_one() -> None:
    assert [sighting.run for sighting in trace("AFAULA").unknown] == [2, 3]


@pytest.mark.parametrize(
    ("states", "empty", "last_good", "first_bad", "since"),
    [
        ("FFAA", (), 1, 2, 2),
        ("FUAA", (), 0, 2, 2),
        ("FAU", (), 0, None, 0),  # the newest run does not tell
        ("FAF", (), 2, None, 0),
        ("AA", (), None, None, 0),  # it never was there
        ("FLA", (), 0, 1, 1),
        ("FA", (1,), 0, None, 0),  # that run has no result at all
        ("FAA", (2,), 0, 1, 1),
    ],
)
def test_what_the_newest_run_has_no_result_for_is_lost(
    states: str, empty: tuple[int, ...], last_good: int | None, first_bad: int | None, since: int
) -> None:
    made = trace(states)
    made.lose_absent(empty)
    assert (ends(made), made.since) == ((last_good, first_bad), Rate(0, since))


@pytest.mark.parametrize(
    ("states", "before", "since"),
    [
        ("FFFFFLLL", Rate(5, 5), Rate(0, 3)),
        ("LLFLLFFEL", Rate(3, 7), Rate(0, 2)),
        ("FAUL?L", Rate(1, 1), Rate(0, 2)),  # runs that do not tell count nowhere
        ("LF", Rate(1, 2), Rate(0, 0)),
        ("LL", Rate(0, 0), Rate(0, 2)),
    ],
)
def test_it_is_counted_how_often_it_was_found_before_and_since(
    states: str, before: Rate, since: Rate
) -> None:
    made = trace(states)
    assert (made.before, made.since) == (before, since)


@given(st.text("FLEAU?", max_size=30))
def test_what_a_trace_says_holds_for_any_runs(states: str) -> None:
    made = trace(states)
    good, bad = ends(made)
    assert good == (states.rindex("F") if "F" in states else None)
    after = states[0 if good is None else good + 1 :]
    is_bad = [position for position, letter in enumerate(after) if letter in "LE"]
    assert bad == ((0 if good is None else good + 1) + is_bad[0] if is_bad else None)
    assert made.passed == states.count("F")
    assert made.before.runs + made.since.runs == sum(letter in "FLE" for letter in states)
