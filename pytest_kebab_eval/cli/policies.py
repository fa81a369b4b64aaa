"""When a build fails: the policies of docs/policies.md, for pytest's ini file and for CI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_RECORD = 'python -m pytest -o addopts= tests/test_retrieval.py --kebab-record "$KEBAB_RUN'
_RUN = "run-${{ github.run_id }}-${{ github.run_attempt }}"


class Policy(NamedTuple):
    """What fails a build; a query fails on what it lost unless gates alone decide."""

    name: str
    summary: str  # as `kebab-eval init` lists it
    gates: tuple[str, ...] = ()
    gates_alone: bool = False
    replicates: int = 1

    @property
    def _needs_tag(self) -> bool:
        return any("tag:release" in gate for gate in self.gates)

    def as_ini(self) -> str:
        """The lines for pytest's ini file."""
        lines = ["kebab_fail_on = none"] if self.gates_alone else []
        lines += ["kebab_gates =", *(f"    {gate}" for gate in self.gates)] if self.gates else []
        lines += ["kebab_if_no_baseline = pass"] if self._needs_tag else []
        lines += ["kebab_alpha = 0.05"] if self.replicates > 1 else []
        return "\n".join(["[pytest]", *lines, ""])

    def as_action(self) -> str:
        """The inputs of the GitHub action that differ from policy to policy."""
        return "\n".join([*self._recording(), *self._judging(), ""])

    def _recording(self) -> Iterator[str]:
        if self.replicates == 1:
            yield f'record: {_RECORD}"'
            return
        numbers = range(1, self.replicates + 1)
        yield f'record: for n in {" ".join(map(str, numbers))}; do {_RECORD}-$n"; done'
        yield f"run: {_RUN}"
        yield f"run-a: {','.join(['latest@main', *(f'latest@main~{n}' for n in numbers[:-1])])}"
        yield f"run-b: {','.join(f'{_RUN}-{n}' for n in numbers)}"

    def _judging(self) -> Iterator[str]:
        if self.gates:
            yield from ("gates: |", *(f"  {gate}" for gate in self.gates))
        if self.gates_alone:
            yield "pytest-args: --kebab-fail-on=none"
        if self._needs_tag:
            yield "move-tag: ${{ github.event_name == 'workflow_dispatch' && 'release' || '' }}"

    def as_arguments(self) -> list[str]:
        """The arguments for pytest, as the jobs of GitLab give them."""
        fail_on = ["--kebab-fail-on=none"] if self.gates_alone else []
        return [*fail_on, *(f"--kebab-gate='{gate}'" for gate in self.gates)]


POLICIES = (
    Policy(
        "every-loss",
        "a query lost what it had, or a gate does not hold",
        ("hit@3 >= 0.9", "delta hit@3 >= -0.03", "delta hit@3 vs tag:release >= -0.05"),
    ),
    Policy("share", "more than 3 % of the queries failed", ("failed <= 3%",), gates_alone=True),
    Policy(
        "gates",
        "a metric is too low, or fell too far",
        ("hit@3 >= 0.8", "delta hit@3 >= -0.03"),
        gates_alone=True,
    ),
    Policy(
        "significance",
        "a metric is too low, or fell by more than chance explains",
        ("hit@3 >= 0.8", "delta hit@3 >= 0 unless p > 0.05"),
        gates_alone=True,
    ),
    Policy(
        "release",
        "a metric fell too far since the last release",
        ("delta hit@3 vs tag:release >= -0.05", "delta mrr vs tag:release >= -0.05"),
        gates_alone=True,
    ),
    Policy("replicates", "a query did worse in several runs than noise explains", replicates=3),
)
BY_NAME = {policy.name: policy for policy in POLICIES}
DEFAULT = POLICIES[0]
