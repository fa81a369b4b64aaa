"""From which alpha on a drop fails: on its own, or together with others; half of alpha is for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import Check, Limit, Tallies, Tally
from pytest_kebab_eval.comparing.noise.control import CheckNoise, RankNoise, control, family_of
from pytest_kebab_eval.comparing.noise.together import Patterns, Together, count_tallies, judge_together


class CheckLimits(NamedTuple):
    """What noise explains of a check."""

    noise: CheckNoise | RankNoise
    limits: Mapping[Tally, Limit]  # of each way in which queries did worse
    together: Together | None  # None: runs of one side never disagree on it, or it is about ranks
    single: float  # the alpha from which on a query fails that is lost in all runs, and is the only one


def find_limits(
    checks: Mapping[Check, Patterns],
    ranks: Mapping[Check, Tallies],
    runs_a: int,
    runs_b: int,
    *,
    others: int = 0,
    simulated: bool = False,
) -> dict[Check, CheckLimits]:
    """Of all checks that are judged together; `others` are queries of further ones, which lost nothing."""
    of_a = (1 << runs_a) - 1
    noises: dict[Check, CheckNoise | RankNoise] = {
        check: CheckNoise(count_tallies(found, of_a)) for check, found in checks.items()
    }
    noises |= {check: RankNoise(tallies) for check, tallies in ranks.items()}
    alone = control(noises, others)
    flipping = {check: found for check, found in checks.items() if not noises[check].is_steady}
    together = judge_together(flipping, runs_a, runs_b, simulated=simulated)
    lost, family = Tally(runs_a, runs_a, 0, runs_b), others + family_of(noises)
    return {
        check: CheckLimits(
            noise,
            {tally: _limit(tally, alpha, together.get(check)) for tally, alpha in alone[check].items()},
            together.get(check),
            0.0 if noise.is_steady else min(1.0, 2 * family * noise.probability(lost)),
        )
        for check, noise in noises.items()
    }


def _limit(tally: Tally, alone: float, together: Together | None) -> Limit:
    if together and tally in together.fallen and together.alpha < 2 * alone:
        return Limit(together.alpha, together.fell, together.rose)
    return Limit(min(1.0, 2 * alone))
