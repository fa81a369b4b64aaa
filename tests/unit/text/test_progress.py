"""The line that says how far long work is."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from pytest_kebab_eval.text import progress
from pytest_kebab_eval.text.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made))  # pytest replaces sys.stderr itself
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    return made


def lines(terminal: Terminal) -> list[str]:
    """What was shown, one after the other."""
    return [text.rstrip() for text in terminal.getvalue().split("\r") if text.strip()]


def test_it_says_what_is_done_and_left_the_errors_and_the_time_to_go(
    terminal: Terminal, clock: Clock
) -> None:
    with Progress("recording", total=2_000) as shown:
        clock.now += 30
        shown.advance(1_500, errors=2)  # 50 a second: 500 more take 10 seconds
    assert lines(terminal) == ["recording: 75 %, 1,500 done, 500 left, 2 errors, 0:10 to go"]


def test_what_was_done_before_does_not_make_it_look_faster(terminal: Terminal, clock: Clock) -> None:
    shown = Progress("recording", total=1_000, done=900)
    clock.now += 10
    shown.advance(50)  # 5 a second: 50 more take 10 seconds
    assert lines(terminal) == ["recording: 95 %, 950 done, 50 left, 0:10 to go"]


def test_without_a_total_it_says_what_is_done(terminal: Terminal, clock: Clock) -> None:
    shown = Progress("recording")
    clock.now += 3_700
    shown.advance(errors=1)
    assert lines(terminal) == ["recording: 1 done, 1 error, 1:01:40 so far"]


def test_it_is_drawn_ten_times_a_second_at_most(terminal: Terminal, clock: Clock) -> None:
    shown = Progress("copying", total=1_000)
    for _ in range(1_000):
        clock.now += 0.001
        shown.advance()
    assert 5 < len(lines(terminal)) <= 10


def test_work_that_is_done_before_the_delay_shows_nothing(terminal: Terminal, clock: Clock) -> None:
    with Progress("recording", delay_s=2.0) as shown:
        clock.now += 1.9
        shown.advance()
    assert terminal.getvalue() == ""


def test_the_line_is_removed_in_the_end_and_never_longer_than_the_terminal(
    terminal: Terminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with Progress("recording", total=10) as shown:
        shown.advance()
    assert lines(terminal) == ["recording: 10 %, 1"]  # and a space
    assert terminal.getvalue().endswith("\r" + " " * 19 + "\r")


def test_a_hostile_label_is_shown_as_text(terminal: Terminal) -> None:
    Progress("recording \x1b[31m").advance()
    assert lines(terminal) == [r"recording \x1b[31m: 1 done, 0:00 so far"]


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("CI", "1"), ("TERM", "dumb")])
def test_in_a_log_it_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    Progress("recording").advance()
    assert terminal.getvalue() == ""


def test_where_standard_error_is_no_terminal_it_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress("recording").advance()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys, "stderr", None)
    Progress("recording").advance()


def test_a_terminal_that_is_gone_stops_no_work(terminal: Terminal) -> None:
    shown = Progress("recording")
    terminal.close()
    shown.advance()
    shown.advance()
    shown.close()
