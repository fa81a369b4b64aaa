"""Templates are compiled once, and whatever is wrong with what is kept of them, they are compiled anew."""

from __future__ import annotations

import sys
from pathlib import Path

import jinja2
import pytest

from pytest_kebab_eval.reports import templates
from pytest_kebab_eval.reports.templates import make_environment

TEMPLATE = "templates/report.md.jinja"

FILTERS = ["code", "codes", "setting", "in_markdown", "as_value", "as_delta", "as_number"]


@pytest.fixture(autouse=True)
def kept_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(templates, "cache_from_source", lambda _: str(tmp_path / "bytecode.pyc"))
    return tmp_path


def compiled(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the template is compiled when it is asked for."""
    compilations = []
    compile_source = jinja2.Environment.compile

    def counted(self: jinja2.Environment, *arguments: object) -> object:
        compilations.append(arguments)
        return compile_source(self, *arguments)  # type: ignore[call-overload]

    with monkeypatch.context() as patched:
        patched.setattr(jinja2.Environment, "compile", counted)
        environment = make_environment(autoescape=False)
        environment.filters.update(dict.fromkeys(FILTERS, str))
        environment.get_template(TEMPLATE)
    return bool(compilations)


def test_a_template_is_compiled_once(monkeypatch: pytest.MonkeyPatch, kept_in: Path) -> None:
    assert compiled(monkeypatch)
    (file,) = kept_in.iterdir()
    assert jinja2.__version__ in file.name
    assert not compiled(monkeypatch)


@pytest.mark.parametrize("damage", [b"", b"nothing of the kind", None])
def test_a_damaged_file_is_replaced(
    monkeypatch: pytest.MonkeyPatch, kept_in: Path, damage: bytes | None
) -> None:
    compiled(monkeypatch)
    (file,) = kept_in.iterdir()
    file.write_bytes(file.read_bytes()[:30] if damage is None else damage)
    assert compiled(monkeypatch)
    assert not compiled(monkeypatch)


def test_nothing_is_kept_where_python_keeps_no_bytecode(
    monkeypatch: pytest.MonkeyPatch, kept_in: Path
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compiled(monkeypatch)
    assert not any(kept_in.iterdir())


def test_a_directory_that_is_not_there_is_done_without(
    monkeypatch: pytest.MonkeyPatch, kept_in: Path
) -> None:
    monkeypatch.setattr(templates, "cache_from_source", lambda _: str(kept_in / "absent" / "bytecode.pyc"))
    assert compiled(monkeypatch)
    assert compiled(monkeypatch)
