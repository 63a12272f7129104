"""Which rows belong together: a cell of the paper's tables is a task and an arm, under the one protocol of `conf/`.

A row counts only if every key of its configuration that decides numbers is what the protocol and the arm say. Anything else
(another horizon, another learning rate, an older version) is in no cell, however well its task and algorithm would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from rlstate.results import UNTOLD, Row, flat
from rlstate.statistics import Interval, t_interval
from rlstate.train import compose

# Of `task` only the setting is the protocol's; which automaton it is, a row's task and hash say.
_SETTING = ("task.horizon", "task.p_control")
# Thresholds name what came out, and are the reader's.
_NOT_DECIDING = ("probe.recovery", "probe.val_n", "probe.saturated")


@dataclass(frozen=True, order=True)
class Arm:
    """What the experiments vary; the protocol says the rest. The values are those of the configuration keys."""

    algorithm: str = "ppo"  # or a2c
    credit: str = "discounted"  # or broadcast
    encoder: str = "gru"  # lstm, window_mlp, transformer
    auxiliary: str = "none"  # state, emission
    beta: float = 0.0
    shaping: str = "none"  # oracle, acceptance
    iterations: int = 6000

    def overrides(self) -> list[str]:
        """What one adds to `python -m rlstate.train +experiment=protocol` to train it."""
        return [f"{key.removesuffix('.name')}={getattr(self, name)}" for name, key in KEYS.items()]

    def __str__(self) -> str:
        """For example ``GRU, PPO × discounted, state auxiliary, β = 0.1``; what is as usual goes without saying."""
        return self.told(_PARTS)

    def told(self, fields: Iterable[str]) -> str:
        """The given fields in words, without those that are as usual; optimizer and credit as ``PPO × discounted``."""
        asked, usual = set(fields), Arm()
        told = [
            name
            for name in _PARTS
            if name in asked and (name in _ALWAYS or getattr(self, name) != getattr(usual, name))
        ]
        text = ", ".join(_PARTS[name](getattr(self, name)) for name in told)
        joined = f"{self.algorithm.upper()}, {self.credit}"
        return text.replace(joined, joined.replace(", ", " × "))


def contrast(arm: Arm, base: Arm) -> str:
    """What `arm` − `base` compares, for example ``PPO − A2C (GRU, broadcast)``."""
    differ = [name for name in _PARTS if getattr(arm, name) != getattr(base, name)]
    one, other = (_own(each, differ) for each in (arm, base))
    return f"{one} − {other} ({arm.told(set(_PARTS) - set(differ))})"


def _own(arm: Arm, differ: Sequence[str]) -> str:
    """What sets an arm apart; where that is more than one thing, what is as usual goes without saying."""
    telling = [name for name in differ if name in _ALWAYS or getattr(arm, name) != getattr(Arm(), name)]
    return " × ".join(_PARTS[name](getattr(arm, name)) for name in telling or differ)


KEYS = {
    "algorithm": "algorithm.name",
    "credit": "algorithm.credit",
    "encoder": "encoder.name",
    "auxiliary": "auxiliary.name",
    "beta": "emission.beta",
    "shaping": "shaping.name",
    "iterations": "iterations",
}
"""An arm's field: where a row's configuration has it."""
_ALWAYS = ("encoder", "algorithm", "credit")
_ENCODERS = {"gru": "GRU", "lstm": "LSTM", "window_mlp": "window-MLP"}
_PARTS: dict[str, Callable[[Any], str]] = {
    "encoder": lambda name: _ENCODERS.get(name, name),
    "algorithm": str.upper,
    "credit": str,
    "auxiliary": lambda name: "no auxiliary" if name == "none" else f"{name} auxiliary",
    "beta": lambda beta: f"β = {beta:g}",
    "shaping": lambda name: "no shaping" if name == "none" else f"{name} shaping",
    "iterations": lambda number: f"{number} iterations",
}


@dataclass(frozen=True)
class Cell:
    """The runs of one task under one arm.

    Attributes:
        rows: by seed; empty where none is finished, and where the cell is mixed.
        mixed: the hashes, where runs of several answer to this task and arm (two automata of one name, say): such runs are
            never averaged. Otherwise empty.
    """

    task: str
    arm: Arm
    rows: tuple[Row, ...] = field(repr=False, default=())
    mixed: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many seeds."""
        return len(self.rows)

    def __str__(self) -> str:
        return f"{self.task}, {self.arm}"

    def values(self, figure: str) -> dict[int, float]:
        """{seed: figure}, without the seeds in which it is undefined or was not measured."""
        return {row.seed: value for row in self.rows if (value := row[figure]) is not None}

    def mean(self, figure: str) -> float | None:
        """Over the seeds in which the figure is defined; None where it is in none."""
        values = list(self.values(figure).values())
        return float(np.mean(values)) if values else None

    def sd(self, figure: str) -> float | None:
        """The seeds' sample standard deviation (n − 1); None of fewer than two."""
        values = list(self.values(figure).values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def interval(self, figure: str) -> Interval:
        """The mean and its t interval over seeds (NaN where there is none)."""
        return t_interval(list(self.values(figure).values()))


def cell(rows: Sequence[Row], task: str, arm: Arm) -> Cell:
    """The runs of `task` under `arm` and the protocol."""
    found = [row for row in rows if row.task == task and arm_of(row) == arm]
    hashes = tuple(sorted({row.hash for row in found}))
    if len(hashes) > 1:
        return Cell(task, arm, mixed=hashes)
    by_seed = {row.seed: row for row in found}
    return Cell(task, arm, tuple(by_seed[seed] for seed in sorted(by_seed)))


def arm_of(row: Row) -> Arm | None:
    """The arm under which the row follows the protocol; None where it does not follow it."""
    arm = Arm(**{name: row.config.get(key) for name, key in KEYS.items()})  # type: ignore[arg-type]
    expected = deciding(arm)
    return arm if expected is not None and decisive(row.config) == expected else None


@cache
def deciding(arm: Arm) -> Mapping[str, Any] | None:
    """The flat configuration of an arm under the protocol, as far as it decides numbers; None where `conf/` has no such arm."""
    try:
        composed = compose(["+experiment=protocol", *arm.overrides()])
    except (
        HydraException,
        OmegaConfBaseException,
        ValueError,
    ):  # a user's own encoder, say: its name is no choice of conf/
        return None
    return MappingProxyType(decisive(flat(composed)))


def decisive(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a flat configuration decides numbers, which automaton it is aside."""
    return {
        key: value
        for key, value in config.items()
        if (key in _SETTING or not key.startswith("task."))
        and key not in _NOT_DECIDING
        and key.split(".")[0] not in UNTOLD
    }
