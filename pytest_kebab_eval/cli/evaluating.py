"""How commands compare two runs: alone, or with the processes of `--workers` and `--scheduler`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pytest_kebab_eval.cli.output import tell_size, tell_warnings
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings

if TYPE_CHECKING:
    from pytest_kebab_eval.parallel.workers import Workers


def read_inputs(settings: Settings, golden: GoldenSet | None = None) -> Inputs:
    """The runs and the golden set that the settings name."""
    inputs = find_inputs(settings, golden=golden)
    tell_size(inputs.golden)
    return inputs


def compare_and_warn(settings: Settings, inputs: Inputs, briefs: Briefs | None = None) -> Evaluation:
    """B against A; the warnings are told."""
    evaluation = evaluate(settings, inputs, observer=briefs)
    tell_warnings(evaluation.report.warnings)
    return evaluation


def evaluate_with(
    workers: int | None, scheduler: str | None, settings: Settings
) -> tuple[Inputs, Evaluation]:
    """Compare the runs that the settings name; nothing but the time it takes depends on who helps."""
    if scheduler is None and workers in {None, 1}:
        inputs = read_inputs(settings)
        return inputs, evaluate(settings, inputs)
    from pytest_kebab_eval.parallel.golden import load_golden
    from pytest_kebab_eval.parallel.scoring import PartScorer

    with _open_workers(workers or 1, scheduler) as helpers:
        loaded = load_golden(settings.golden, helpers)
        inputs = read_inputs(settings, loaded.golden)
        score = PartScorer(helpers, settings, loaded).score
        return inputs, evaluate(settings, inputs, score_parts=score)


def _open_workers(count: int, scheduler: str | None) -> AbstractContextManager[Workers]:
    if scheduler is not None:
        from pytest_kebab_eval.parallel.dask_workers import dask_workers

        return dask_workers(scheduler)
    from pytest_kebab_eval.parallel.workers import process_workers

    return process_workers(count)
