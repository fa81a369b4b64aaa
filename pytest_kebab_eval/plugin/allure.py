"""What Allure's plugin cannot know of our items: each is a test of its own, with its properties."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib import import_module
from typing import Any

import pytest

from pytest_kebab_eval.plugin.items import KebabItem


def uses_allure(config: pytest.Config) -> bool:
    """Whether Allure's plugin writes its results."""
    return bool(config.getoption("allure_report_dir", None))


class AllureResults:
    """A plugin for sessions in which Allure's writes its results."""

    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Name each item in full, before Allure selects by full names those of a test plan.

        Allure would cut the names at their brackets, as those of one parametrized function, and then take all
        queries for one test and its retries.
        """
        parse = getattr(import_module("allure_pytest.utils"), "parse_nodeid", None)
        if parse is not None:
            for item in items:
                if isinstance(item, KebabItem):
                    _name_in_full(parse(item), item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Add the item's properties as parameters; not to its identity, as they differ from run to run."""
        try:
            yield
        finally:
            if isinstance(item, KebabItem):
                parameter = import_module("allure").dynamic.parameter
                for name, value in item.properties:
                    parameter(name, value, excluded=True)


def _name_in_full(parsed: Any, item: pytest.Item) -> None:
    """Correct what Allure has read from a node id, and keeps for the item."""
    parsed.class_names = []
    parsed.test_function = item.name
