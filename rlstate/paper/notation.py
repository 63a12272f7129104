"""What the paper's tables are made of: a table, how a cell of seeds is written, and what a table has to say is missing.

The notation, one everywhere: ``.67 ±.02 (.66 .68 .66 .65 .69)`` is the mean over seeds, the half width of its 95 % t interval
(t(n − 1) s/√n), and every seed in order. One seed has no interval. A figure that is undefined is –, is in no mean, and is never
0; what is not there is *missing*, and runs of two configurations are *mixed*, named by their hashes and never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rlstate.paper.experiments import Experiment, experiments
from rlstate.paper.heldout import Share, verdict_of
from rlstate.paper.select import Arm, Cell, cell
from rlstate.paper.targets import Printed
from rlstate.results import Row
from rlstate.statistics import t_interval

NOTATION = "Cells: mean over seeds ± half width of its 95 % t interval (each seed); –: undefined."
PAPER = "*paper*: as it prints, ± its 95 % bootstrap half width; blank: not printed."
UNTRAINED = (
    "*untrained*: recovery of the same probe on an untrained network's features of the same episodes; *untrained too* stands "
    "beside a verdict where both reach the threshold: recovery is then no sign of learning."
)
UNDEFINED, MISSING = "–", "missing"


@dataclass(frozen=True)
class Table:
    """A table of text. `key` names it in files and links; the notes are what it says below: what is missing, and the like."""

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.key}: {row} has {len(row)} cells, but there are {len(self.columns)} columns"
                )


class Wanted:
    """The cells that a table asks for, and so what is missing of it, with the command that makes it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._asked: dict[tuple[str, Arm], tuple[Cell, str]] = {}

    def cell(self, task: str, arm: Arm, experiment: str) -> Cell:
        """The cell; `experiment` is the file of conf/experiment that trains it, and says how many seeds it should have."""
        if (task, arm) not in self._asked:
            self._asked[task, arm] = cell(self._rows, task, arm), experiment
        return self._asked[task, arm][0]

    def notes(self) -> tuple[str, ...]:
        """Cells that are missing or have fewer seeds than their experiment, by experiment; mixed ones with their hashes."""
        lacking: dict[str, dict[Arm, list[str]]] = {}
        mixed = []
        for (task, arm), (found, experiment) in self._asked.items():
            seeds = expected_seeds(experiment)
            if found.mixed:
                mixed.append(f"mixed: {found} has runs of {', '.join(found.mixed)}, which are not averaged.")
            elif len(found) < seeds:
                told = task if not len(found) else f"{task} ({len(found)} of {seeds} seeds)"
                lacking.setdefault(experiment, {}).setdefault(arm, []).append(told)
        notes = []
        for experiment, by_arm in lacking.items():
            listed = "; ".join(f"{arm}: {', '.join(tasks)}" for arm, tasks in by_arm.items())
            notes.append(f"missing: {listed}. `{command(experiment)}` makes it.")
        return (*notes, *mixed)


def there(cells: Iterable[Cell]) -> bool:
    """Whether there is a run for any of the cells."""
    return any(found.rows or found.mixed for found in cells)


# --- experiments --------------------------------------------------------------------------------------------------


def command(experiment: str) -> str:
    return _experiments()[experiment].command


def expected_seeds(experiment: str) -> int:
    """How many seeds the experiment's cells have."""
    return len(_experiments()[experiment].seeds)


def tasks_of(experiment: str) -> tuple[str, ...]:
    return _experiments()[experiment].tasks


@cache
def _experiments() -> dict[str, Experiment]:
    return {each.name: each for each in experiments()}


# --- how figures are written --------------------------------------------------------------------------------------


def number(value: float | None, signed: bool = False, digits: int = 2) -> str:
    """Without the leading zero: ``.67``, ``+.20``, ``1.00``; – where there is none."""
    if value is None or math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{abs(value):.{digits}f}"
    sign = "" if not float(text) and not signed else "−" if value < 0 and float(text) else "+" if signed else ""
    return sign + text.removeprefix("0")


def small(value: float | None) -> str:
    """Three digits, and one significant digit of what these would make 0: an exact 0 stays apart."""
    if value is None or math.isnan(value):
        return UNDEFINED
    return "0" if value == 0 else f"{value:.0e}" if abs(value) < 5e-4 else number(value, digits=3)


def spread(values: Mapping[int, float | None], signed: bool = False, empty: str = MISSING) -> str:
    """{seed: figure} as ``.67 ±.02 (.66 .68 .66 .65 .69)``; of one seed ``.67 (.67)``; of no seed `empty`."""
    if not values:
        return empty
    found = t_interval([value for value in values.values() if value is not None])
    half = "" if math.isnan(found.low) else f" ±{number(found.high - found.value)}"
    each = " ".join(number(values[seed], signed) for seed in sorted(values))
    return f"{number(found.value, signed)}{half} ({each})"


def seeds(found: Cell, figure: str, signed: bool | None = None) -> str:
    """A figure of a cell; gaps have a sign."""
    if found.mixed:
        return mixed(found)
    signed = figure.endswith("gap") if signed is None else signed
    return spread({row.seed: row[figure] for row in found.rows}, signed)


def paired(arm: Cell, base: Cell, figure: str) -> dict[int, float]:
    """{seed: `arm` − `base`} over the seeds that both have and in which the figure is defined."""
    values, of = arm.values(figure), base.values(figure)
    return {seed: values[seed] - of[seed] for seed in values.keys() & of.keys()}


def difference(arm: Cell, base: Cell, figure: str) -> str:
    """`arm` − `base`, paired by seed."""
    if arm.mixed or base.mixed:
        return mixed(arm if arm.mixed else base)
    if not arm.rows or not base.rows:
        return MISSING
    return spread(paired(arm, base, figure), signed=True, empty=UNDEFINED)


def mixed(found: Cell) -> str:
    return f"mixed: {', '.join(found.mixed)}"


def printed(value: Printed | float | None, signed: bool = False) -> str:
    """What the paper prints; blank where it prints nothing."""
    if value is None:
        return ""
    if isinstance(value, Printed):
        return number(value.value, signed) + ("" if value.half is None else f" ±{number(value.half)}")
    return number(value, signed)


def share(found: Share) -> str:
    """For example ``89/103 = .86 [.78, .92]``."""
    if found.interval is None:
        return f"{UNDEFINED} (0 of 0)"
    low, high = found.interval
    return f"{found.hits}/{found.of} = {number(found.value)} [{number(low)}, {number(high)}]"


def judged(found: Cell) -> str:
    """The verdict of a cell in words."""
    if found.mixed:
        return mixed(found)
    return str(verdict_of(found.rows)).replace("_", " ") if found.rows else MISSING


def yes(value: bool) -> str:
    return "yes" if value else "no"
