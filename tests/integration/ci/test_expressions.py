"""The evaluator that the tests of action.yml rest on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.ci.github import Evaluator, UnknownExpressionError

VALUES: dict[str, Any] = {"inputs.name": "kebab", "github.event.number": 12, "steps.gate.outputs.report": ""}


def lookup(name: str) -> Any:
    if name not in VALUES:
        raise UnknownExpressionError(name)
    return VALUES[name]


def evaluator(*, has_failed: bool = False) -> Evaluator:
    functions = {"success": not has_failed, "failure": has_failed, "cancelled": False, "always": True}
    return Evaluator(lookup, functions)


def test_a_text_is_filled_with_the_values_of_its_expressions() -> None:
    assert evaluator().fill("a ${{ inputs.name }}-${{github.event.number}} b") == "a kebab-12 b"
    assert evaluator().fill(True) == "true"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("inputs.name == 'KEBAB'", True),  # GitHub compares text without case
        ("${{ inputs.name != 'kebab' || github.event.number == '12' }}", True),
        ("${{ !cancelled() && steps.gate.outputs.report != '' }}", False),
        ("${{ !(inputs.name == 'it''s') }}", True),
    ],
)
def test_conditions_hold_as_on_github(condition: str, expected: bool) -> None:
    assert evaluator().holds(condition) is expected


def test_after_a_failure_only_a_condition_that_names_the_status_holds() -> None:
    assert not evaluator(has_failed=True).holds("inputs.name == 'kebab'")
    assert evaluator(has_failed=True).holds("${{ !cancelled() && inputs.name == 'kebab' }}")


@pytest.mark.parametrize(
    "source",
    [
        "inputs.nmae",
        "inputs.name = 'x'",
        "contains(inputs.name, 'x')",
        "inputs.name inputs.name",
        "1 < 2",
        "(",
    ],
)
def test_what_is_not_known_is_an_error(source: str) -> None:
    with pytest.raises((UnknownExpressionError, IndexError)):
        evaluator().value(source)
