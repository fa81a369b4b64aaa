"""All text leaves the program through `text.safe_lines` or `text.safe_json`: no writer goes around them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_kebab_eval

HOME = Path(pytest_kebab_eval.__file__).parent
FILES = sorted(HOME.rglob("*.py"))

# What prints its first argument, or has it printed.
WRITERS = {
    *("echo", "secho", "echo_via_pager", "print", "print_exception", "print_exc", "warn", "warning"),
    *("write_line", "write_sep", "ensure_newline", "rewrite", "section", "line", "sep", "UsageError"),
    *("ClickException", "BadParameter", "BadOptionUsage", "BadArgumentUsage", "NoSuchOption", "FileError"),
    *("CollectError", "PytestWarning", "exit_on_error", "confirm", "prompt"),
}
OF_PYTEST = {"skip", "xfail", "fail", "exit", "importorskip"}
SAFE = {"safe_lines", "safe_json"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
# The command in an annotation is ours, `::error`; `as_text` escapes the foreign text in it.
EXCEPTIONS = {
    ("plugin/terminal.py", "terminal.write_line(printable(annotation))"),
    ("cli/__init__.py", "formatter.section(heading)"),  # of a table of ours
    ("cli/output.py", "sys.stdout.writelines"),  # of what is mapped through the safe functions
}


def name(node: ast.expr) -> str:
    """`terminal.write_line` for the function of such a call."""
    if isinstance(node, ast.Attribute):
        return f"{name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_writer(call: ast.Call) -> bool:
    """Whether the call shows text to a user."""
    owner, _, function = name(call.func).rpartition(".")
    if function in OF_PYTEST:
        return owner in ("pytest", "pytest.mark")
    return function in WRITERS


def is_safe(argument: ast.expr) -> bool:
    """Whether it is text of ours, or what one of the safe functions returned."""
    is_constant = isinstance(argument, ast.Constant) or (
        isinstance(argument, ast.Name) and argument.id.isupper()
    )
    return is_constant or (isinstance(argument, ast.Call) and name(argument.func) in SAFE)


def unsafe_writes(source: str) -> Iterator[str]:
    """The calls that show text which none of the safe functions returned, and uses of the streams."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and is_writer(node):
            reasons = [word.value for word in node.keywords if word.arg in ("reason", "msg", "message")]
            if not all(map(is_safe, [*node.args[:1], *reasons])):
                yield ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr.startswith("write") and is_stream(node.value):
            yield ast.unparse(node)


def is_stream(node: ast.expr) -> bool:
    """`sys.stdout`, `sys.stdout.buffer`, and the like."""
    return not STREAMS.isdisjoint(name(node).split("."))


def test_every_writer_prints_what_was_made_safe() -> None:
    found = {
        (path.relative_to(HOME).as_posix(), call)
        for path in FILES
        for call in unsafe_writes(path.read_text("utf-8"))
    }
    assert found - EXCEPTIONS == set()


def test_reports_are_printed_through_the_safe_functions() -> None:
    source = (HOME / "cli/output.py").read_text("utf-8")
    assert 'sys.stdout.writelines(map(safe_json if form == "json" else safe_lines, parts))' in source
    assert source.count("sys.stdout.write") == 1


@pytest.mark.parametrize(
    "source",
    [
        "click.echo(text)",
        "click.secho(f'{run_id}', fg='red')",
        "print(text)",
        "sys.stdout.write(text)",
        "sys.stderr.buffer.write(text)",
        "terminalreporter.write_line(str(error))",
        "tw.line(text, red=True)",
        "raise pytest.UsageError(f'{path}: no')",
        "pytest.skip(reason)",
        "pytest.mark.skip(reason=reason)",
        "raise click.BadParameter(text)",
        "warnings.warn(text)",
    ],
)
def test_the_check_sees_a_writer_that_goes_around(source: str) -> None:
    assert list(unsafe_writes(source))


@pytest.mark.parametrize(
    "source",
    ["click.echo(safe_lines(text))", "pytest.skip(NO_RUN)", "tell(text)", "print('done')", "stack.exit(1)"],
)
def test_the_check_lets_safe_writers_pass(source: str) -> None:
    assert not list(unsafe_writes(source))
