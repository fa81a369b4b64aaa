"""`--workers` and `--scheduler`: the processes that help with a large comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from pytest_kebab_eval.cli.output import tell_size
from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.evaluate import Evaluation, evaluate
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.settings import Settings

if TYPE_CHECKING:
    from pytest_kebab_eval.parallel.workers import Workers

F = TypeVar("F", bound=Callable[..., Any])


class Helpers(NamedTuple):
    """How many processes help, or the scheduler of a cluster; by default there is none."""

    workers: int | None
    scheduler: str | None

    def evaluate(self, settings: Settings) -> tuple[Inputs, Evaluation]:
        """Compare the runs that the settings name; nothing but the time it takes depends on who helps."""
        if self.scheduler is None and self.workers in {None, 1}:
            inputs = find_inputs(settings)
            tell_size(inputs.golden)
            return inputs, evaluate(settings, inputs)
        with self._open() as workers:
            return _evaluated(workers, settings)

    @contextmanager
    def _open(self) -> Iterator[Workers]:
        if self.scheduler is None:
            from pytest_kebab_eval.parallel.workers import process_workers

            with process_workers(self.workers or 1) as workers:
                yield workers
        else:
            from pytest_kebab_eval.parallel.dask_workers import dask_workers

            with dask_workers(self.scheduler) as workers:
                yield workers


def _evaluated(workers: Workers, settings: Settings) -> tuple[Inputs, Evaluation]:
    from pytest_kebab_eval.parallel.golden import load_golden
    from pytest_kebab_eval.parallel.scoring import PartScorer

    loaded = load_golden(settings.golden, workers)
    inputs = find_inputs(settings, golden=loaded.golden)
    tell_size(inputs.golden)
    score = PartScorer(workers, settings, loaded).score
    return inputs, evaluate(settings, inputs, score_parts=score)


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
