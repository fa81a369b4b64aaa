"""How commands compare two runs: alone, or with the processes of `--workers` and `--scheduler`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from pytest_kebab_eval.cli.output import tell_size, tell_warnings
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings

if TYPE_CHECKING:
    from pytest_kebab_eval.parallel.workers import Workers

F = TypeVar("F", bound=Callable[..., Any])


def read_inputs(settings: Settings, golden: GoldenSet | None = None) -> Inputs:
    """The runs and the golden set that the settings name."""
    inputs = find_inputs(settings, golden=golden)
    tell_size(inputs.golden)
    return inputs


def compare_and_warn(settings: Settings, inputs: Inputs, briefs: Briefs | None = None) -> CompareReport:
    """The report of B against A, whose warnings are told."""
    report = evaluate(settings, inputs, observer=briefs).report
    tell_warnings(report.warnings)
    return report


class Helpers(NamedTuple):
    """How many processes help, or the scheduler of a cluster; by default there is none."""

    workers: int | None
    scheduler: str | None

    def evaluate(self, settings: Settings) -> tuple[Inputs, Evaluation]:
        """Compare the runs that the settings name; nothing but the time it takes depends on who helps."""
        if self.scheduler is None and self.workers in {None, 1}:
            inputs = read_inputs(settings)
            return inputs, evaluate(settings, inputs)
        from pytest_kebab_eval.parallel.golden import load_golden
        from pytest_kebab_eval.parallel.scoring import PartScorer

        with self._open() as workers:
            loaded = load_golden(settings.golden, workers)
            inputs = read_inputs(settings, loaded.golden)
            score = PartScorer(workers, settings, loaded).score
            return inputs, evaluate(settings, inputs, score_parts=score)

    def _open(self) -> AbstractContextManager[Workers]:
        if self.scheduler is not None:
            from pytest_kebab_eval.parallel.dask_workers import dask_workers

            return dask_workers(self.scheduler)
        from pytest_kebab_eval.parallel.workers import process_workers

        return process_workers(self.workers or 1)


def worker_options(command: F) -> F:
    """The two options; a command takes what they say as `helpers`."""

    @click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Score with N processes on this machine."
    )
    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Score on a Dask cluster, by the address of its scheduler: tcp://host:8786.",
    )
    @wraps(command)
    def with_helpers(workers: int | None, scheduler: str | None, **given: Any) -> Any:
        if workers is not None and scheduler is not None:
            raise SettingsError("--workers and --scheduler are both given; leave one of them out")
        return command(helpers=Helpers(workers, scheduler), **given)

    return with_helpers  # type: ignore[return-value]
