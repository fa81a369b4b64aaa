"""Every frozen case has the outcome that it had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.frozen.cases import MOST_BYTES, case_files, layers, read_case, run_case
from tests.frozen.differences import differences

FILES = [path for layer in layers() for path in case_files(layer)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_outcome_is_what_it_was(path: Path, tmp_path: Path) -> None:
    changed = [str(found) for found in differences(read_case(path)["outcome"], run_case(path, tmp_path))]
    assert not changed, "\n".join(changed)


def test_cases_are_small() -> None:
    assert [path.name for path in FILES if path.stat().st_size > MOST_BYTES] == []


@pytest.mark.parametrize("layer", layers())
def test_each_layer_has_cases(layer: str) -> None:
    assert case_files(layer)
