"""Whether a drop is found is known before all sessions are simulated, and is what all of them would say."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from pytest_kebab_eval.comparing.checks import RETRIEVAL, Tally
from pytest_kebab_eval.comparing.noise import power
from pytest_kebab_eval.comparing.noise.control import CheckNoise
from pytest_kebab_eval.comparing.noise.power import POWER, Population, Session, is_found, simulate
from pytest_kebab_eval.comparing.noise.together import find_limits


def seen(flaky: int, steady: int) -> CheckNoise:
    """Queries that passed in two of four runs, and in all four."""
    return CheckNoise(Counter({Tally(2, 4, 0, 0): flaky, Tally(4, 4, 0, 0): steady}))


def is_found_in_all(population: Population, session: Session) -> bool:
    """The same without a short cut, but for the one of plainly too few."""
    generator = random.Random(power._SEED)  # noqa: SLF001
    found = planted = 0
    for number in range(power._SESSIONS):  # noqa: SLF001
        rates = population.rates(session.scale, generator)
        patterns, lost = simulate(rates, session.runs, session.drop, generator)
        limits = find_limits({RETRIEVAL: patterns}, {}, session.runs, session.runs, simulated=True)[
            RETRIEVAL
        ].limits
        of_lost = [(limits.get(pattern.tally((1 << session.runs) - 1)), n) for pattern, n in lost.items()]
        found += sum(n for limit, n in of_lost if limit and limit.alpha <= session.alpha)
        planted += lost.total()
        if number == power._FIRST and found < POWER / 2 * planted:  # noqa: SLF001
            return False
    return planted > 0 and found / planted >= POWER


@pytest.mark.parametrize("flaky", [0, 2, 10])
@pytest.mark.parametrize("drop", [0.05, 0.3])
def test_a_drop_is_found_where_all_sessions_would_find_it(flaky: int, drop: float) -> None:
    population = Population(seen(flaky, 20))
    sessions = [Session(runs, scale, drop, 0.05, 0) for runs in (2, 3, 6) for scale in (0.3, 1.0)]
    found = [is_found(population, session) for session in sessions]
    assert found == [is_found_in_all(population, session) for session in sessions]
    assert any(found)
    assert flaky == 0 or not all(found)
