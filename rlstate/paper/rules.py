"""How a claim is judged: it is a handful of checks, each an inequality on means over seeds that was written down beforehand.

A check holds, does not hold, or cannot be made because its runs are missing. A figure that is undefined in every seed cannot
bear a claim out: the check does not hold, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from rlstate.paper.select import Arm, Cell, cell, contrast, deciding
from rlstate.results import Row
from rlstate.statistics import Correlation, Difference, paired_difference

# What the paper's words mean here, fixed before the runs.
NEAR_CHANCE_GAP, NEAR_CHANCE_RECOVERY = 0.10, 0.25  # "near chance": the gap at most, recovery below
# "inert": neither moves by more. The gap by a little more than val_n: the paper calls so a gap that its Table 2 moves by .053.
INERT_VAL_N, INERT_GAP = 0.05, 0.06
SUBSTANTIAL = 0.10  # "substantially": the paired difference at least, and its t interval excludes 0
NEAR_OPTIMAL = 0.85  # val_n from which reward is near-optimal (the verdict's threshold)
RECOVERED = 0.5  # recovery from which the state is recovered (the verdict's threshold)
SATURATED = 0.95  # supervised accuracy from which capacity is saturated (the verdict's threshold)

CHANCE_RULE = f"gap ≤ {NEAR_CHANCE_GAP:.2f} and recovery < {NEAR_CHANCE_RECOVERY} in the mean of five seeds"
SUBSTANTIAL_RULE = f"the paired difference over five seeds is ≥ {SUBSTANTIAL:.2f}, its 95 % t interval above 0"

SEEDS = 5  # of a cell, unless its experiment says otherwise

PPO = Arm()
PPO_BROADCAST = Arm(credit="broadcast")
A2C = Arm(algorithm="a2c")
A2C_BROADCAST = Arm(algorithm="a2c", credit="broadcast")
STATE = Arm(auxiliary="state")
EMISSION = Arm(auxiliary="emission")

_WORDS = {"probe_gap": "gap", "ood_n": "val_n at 4T", "muted_gap": "gap with the channel muted"}


class MissingRuns(LookupError):
    """The runs that a check needs are not there, or not all of them, or are of two protocols."""


class UndefinedFigure(ValueError):
    """The runs are there, and a figure of theirs is undefined in every seed."""


@dataclass(frozen=True, eq=False)
class Runs:
    """The rows that claims are judged by; one differs from another as an object, so that what is costly is computed once."""

    rows: tuple[Row, ...]

    @cached_property
    def _of_task(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.task, []).append(row)
        return found

    def cell(self, task: str, arm: Arm, seeds: int = SEEDS) -> Cell:
        """The cell, complete. Raises MissingRuns where it has fewer than `seeds` seeds or is mixed."""
        found = cell(self._of_task.get(task, ()), task, arm)
        if found.mixed:
            raise MissingRuns(f"{found}: its runs are of {len(found.mixed)} kinds ({', '.join(found.mixed)})")
        if len(found) < seeds:
            raise MissingRuns(f"{found}: {len(found)} of {seeds} seeds")
        return found

    def require(self, tasks: Iterable[str], *arms: Arm, seeds: int = SEEDS) -> None:
        """Raises MissingRuns naming every cell that is not complete, not just the first."""
        gone = []
        for task, arm in product(tasks, arms):
            try:
                self.cell(task, arm, seeds)
            except MissingRuns as error:
                gone.append(str(error))
        if gone:
            raise MissingRuns("; ".join(gone))

    def mean(self, figure: str, task: str, arm: Arm, seeds: int = SEEDS) -> float:
        """Raises MissingRuns, or UndefinedFigure where no seed has the figure."""
        found = self.cell(task, arm, seeds)
        value = found.mean(figure)
        if value is None:
            raise UndefinedFigure(f"{word(figure)} of {found} is undefined in every seed")
        return value

    def difference(self, figure: str, task: str, arm: Arm, base: Arm, seeds: int = SEEDS) -> Difference:
        """`arm` − `base`, paired by seed. Raises MissingRuns, or UndefinedFigure where no seed has the figure in both."""
        found = paired_difference(
            self.cell(task, arm, seeds).values(figure), self.cell(task, base, seeds).values(figure)
        )
        if not found.n:
            raise UndefinedFigure(f"{word(figure)} of {task} is undefined under {arm} or under {base} in every seed")
        return found


@dataclass(frozen=True)
class Check:
    """An inequality, whether it held (None: its runs are missing) and the figures; of a missing one what is missing."""

    name: str
    held: bool | None
    evidence: str


@dataclass(frozen=True)
class Test:
    """An inequality in words, and what applies it: whether it holds, and the figures."""

    __test__ = False  # pytest: not one of yours

    name: str
    apply: Callable[[Runs], tuple[bool, str]]

    def check(self, runs: Runs) -> Check:
        try:
            held, evidence = self.apply(runs)
        except MissingRuns as error:
            return Check(self.name, None, str(error))
        except UndefinedFigure as error:
            return Check(self.name, False, str(error))
        return Check(self.name, bool(held), evidence)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        statement: what it says, in our words.
        rule: what must hold, in words with numbers, over which seeds.
        tests: all must hold.
        experiments: those whose runs it needs; none for what is computed exactly.
    """

    key: str
    section: str
    statement: str
    rule: str
    tests: tuple[Test, ...]
    experiments: tuple[str, ...] = ()


# --- checks -------------------------------------------------------------------------------------------------------


def near_chance(task: str, arm: Arm, seeds: int = SEEDS) -> Test:
    """The probe gap's mean is at most `NEAR_CHANCE_GAP` and recovery's below `NEAR_CHANCE_RECOVERY`."""

    def apply(runs: Runs) -> tuple[bool, str]:
        gap, recovery = (runs.mean(figure, task, arm, seeds) for figure in ("probe_gap", "recovery"))
        held = gap <= NEAR_CHANCE_GAP and recovery < NEAR_CHANCE_RECOVERY
        return held, f"gap {gap:+.3f}, recovery {recovery:.2f}"

    return Test(f"{task}, {arm}: gap ≤ {NEAR_CHANCE_GAP:.2f}, recovery < {NEAR_CHANCE_RECOVERY}", apply)


def at_least(figure: str, task: str, arm: Arm, bound: float, seeds: int = SEEDS) -> Test:
    return _bounded(figure, task, arm, "≥", bound, seeds)


def at_most(figure: str, task: str, arm: Arm, bound: float, seeds: int = SEEDS) -> Test:
    return _bounded(figure, task, arm, "≤", bound, seeds)


def below(figure: str, task: str, arm: Arm, bound: float, seeds: int = SEEDS) -> Test:
    return _bounded(figure, task, arm, "<", bound, seeds)


def difference(figure: str, task: str, arm: Arm, base: Arm, sign: str, bound: float) -> Test:
    """The mean paired difference `arm` − `base` stands in relation `sign` (≥, ≤, <, >) to `bound`."""

    def apply(runs: Runs) -> tuple[bool, str]:
        found = runs.difference(figure, task, arm, base)
        return _compare(found.value, sign, bound), signed(found)

    return Test(f"{task}, {word(figure)}: {contrast(arm, base)} {sign} {number(bound)}", apply)


def substantial(figure: str, task: str, arm: Arm, base: Arm) -> Test:
    """The mean paired difference is at least `SUBSTANTIAL` and its t interval lies above 0."""

    def apply(runs: Runs) -> tuple[bool, str]:
        found = runs.difference(figure, task, arm, base)
        return is_substantial(found), signed(found)

    return Test(f"{task}, {word(figure)}: {contrast(arm, base)} ≥ {SUBSTANTIAL:.2f}, interval above 0", apply)


def is_substantial(found: Difference) -> bool:
    return found.value >= SUBSTANTIAL and found.low > 0


def inert(task: str, arm: Arm, base: Arm) -> Test:
    """val_n differs by at most `INERT_VAL_N` and the gap by at most `INERT_GAP`, in the mean."""

    def apply(runs: Runs) -> tuple[bool, str]:
        val_n, gap = (runs.difference(figure, task, arm, base) for figure in ("val_n", "probe_gap"))
        held = abs(val_n.value) <= INERT_VAL_N and abs(gap.value) <= INERT_GAP
        return held, f"val_n {signed(val_n)}, gap {signed(gap)}"

    return Test(f"{task}: {contrast(arm, base)}: |val_n| ≤ {INERT_VAL_N}, |gap| ≤ {INERT_GAP}", apply)


# --- parts --------------------------------------------------------------------------------------------------------


def word(figure: str) -> str:
    return _WORDS.get(figure, figure)


def signed(found: Difference) -> str:
    """For example ``+0.183 [+0.02, +0.35]``."""
    span = "" if found.low != found.low else f" [{found.low:+.3f}, {found.high:+.3f}]"
    return f"{found.value:+.3f}{span}".replace("-", "−")


def number(bound: float) -> str:
    return f"{bound:.2f}".replace("-", "−")


def correlated(found: Correlation) -> str:
    """For example ``ρ = −0.71, p = 0.14, 6 pairs``."""
    return f"ρ = {found.rho:.2f}, p = {found.p:.3f}, {found.n} pairs".replace("-", "−")


def setting() -> tuple[int, float]:
    """Horizon and `p_control` of the protocol."""
    protocol = deciding(PPO)
    assert protocol is not None
    return protocol["task.horizon"], protocol["task.p_control"]


def worst(values: Sequence[tuple[float, str]]) -> str:
    """The least of some figures and whose it is."""
    value, name = min(values)
    return f"the least is {value:.3f} ({name})"


def _bounded(figure: str, task: str, arm: Arm, sign: str, bound: float, seeds: int) -> Test:
    def apply(runs: Runs) -> tuple[bool, str]:
        value = runs.mean(figure, task, arm, seeds)
        return _compare(value, sign, bound), f"{value:+.3f}" if "gap" in figure else f"{value:.3f}"

    return Test(f"{task}, {arm}: {word(figure)} {sign} {number(bound)}", apply)


def _compare(value: float, sign: str, bound: float) -> bool:
    return {"≥": value >= bound, "≤": value <= bound, "<": value < bound, ">": value > bound}[sign]
