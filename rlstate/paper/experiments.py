"""The experiments of conf/experiment that belong to the paper: which runs each of them means, and which are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import yaml

from rlstate.paper.select import KEYS, Arm, arm_of, deciding, decisive
from rlstate.results import Row, flat
from rlstate.train import compose, configuration_folder

_FIELDS = {
    "algorithm": "algorithm",
    "algorithm.credit": "credit",
    "encoder": "encoder",
    "auxiliary": "auxiliary",
    "emission.beta": "beta",
    "shaping": "shaping",
    "iterations": "iterations",
}
"""Keys that an experiment may sweep: fields of `Arm`."""


@dataclass(frozen=True)
class Experiment:
    """A file of conf/experiment. Its runs are tasks × arms × seeds; experiments share the runs that both mean.

    Attributes:
        about: the comment at the head of the file.
    """

    name: str
    about: str
    tasks: tuple[str, ...]
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]

    @property
    def command(self) -> str:
        return f"python -m rlstate.train +experiment={self.name}"

    @property
    def expected(self) -> int:
        """How many runs."""
        return len(self.tasks) * len(self.arms) * len(self.seeds)

    def means(self, row: Row, arm: Arm | None) -> bool:
        """Whether a row, of this arm, is one of its runs."""
        return arm in self.arms and row.task in self.tasks and row.seed in self.seeds

    def missing(self, rows: Sequence[Row]) -> int:
        """How many of its runs are not among the rows."""
        return self.expected - len({(row.task, arm, row.seed) for row in rows if self.means(row, arm := arm_of(row))})


@cache
def experiments() -> tuple[Experiment, ...]:
    """Every experiment under the paper's protocol, by name."""
    found = (_read(path.stem) for path in sorted((configuration_folder() / "experiment").glob("*.yaml")))
    return tuple(each for each in found if each is not None)


def outside(rows: Sequence[Row]) -> str:
    """Why none of the paper's claims is judged by the rows, where one might expect it: they are of its tasks, or of its folder.

    Empty where a row is of an experiment of the paper, and where none looks like one.
    """
    tasks = {task for each in experiments() for task in each.tasks}
    alike = {row.hash: row for row in rows if row.experiment == "paper" or row.task in tasks}
    if not alike or any(each.means(row, arm) for row in rows if (arm := arm_of(row)) for each in experiments()):
        return ""
    nearest = min((_unlike(row) for row in alike.values()), key=len)
    shown = ", ".join(nearest[:MOST_TOLD]) + f" and {len(nearest) - MOST_TOLD} more" * (len(nearest) > MOST_TOLD)
    return (
        "No claim of the paper is judged here: that takes runs of its experiments, which follow one protocol in every key "
        "(`python -m rlstate.train +experiment=table1`, and others in `conf/experiment/`); "
        + (f"the nearest of these has {shown}." if nearest else "none of these is of a task, arm and seed of theirs.")
    )


MOST_TOLD = 4
"""So many keys are named."""


def _unlike(row: Row) -> list[str]:
    """The keys in which a run differs from the protocol, under the nearest arm; not those of its automaton."""
    said = {name: row.config.get(key) for name, key in KEYS.items()}
    usual = deciding(Arm(**{**said, "iterations": Arm().iterations})) or deciding(Arm()) or {}  # type: ignore[arg-type]
    own = decisive(row.config)
    return [
        f"{key} = {own.get(key, 'none')} instead of {usual.get(key, 'none')}"
        for key in sorted({*own, *usual}, key=lambda key: (key != "iterations", key != "task.horizon", key))
        if own.get(key) != usual.get(key)
    ]


def _read(name: str) -> Experiment | None:
    """None of an experiment of another protocol, and of the protocol itself."""
    text = (configuration_folder() / "experiment" / f"{name}.yaml").read_text()
    written = yaml.safe_load(text)
    composed = compose([f"+experiment={name}"])
    if composed["name"] != "paper" or name == "protocol":
        return None
    config = flat(composed)
    usual = {field: config[key if key in config else f"{key}.name"] for key, field in _FIELDS.items()}
    swept = written.get("hydra", {}).get("sweeper", {}).get("params", {})
    choices = [
        [(_FIELDS[key], _typed(_FIELDS[key], value)) for value in str(values).split(",")]
        for key, values in swept.items()
    ]
    comment = " ".join(line.lstrip("# ") for line in text.splitlines()[1:] if line.startswith("#"))
    return Experiment(
        name=name,
        about=comment,
        tasks=tuple(composed["tasks"] or [_task_name(config)]),
        arms=tuple(dict.fromkeys(replace(Arm(**usual), **dict(chosen)) for chosen in product(*choices))),
        seeds=tuple(range(composed["seeds"]) if isinstance(composed["seeds"], int) else composed["seeds"]),
    )


def _task_name(config: dict[str, Any]) -> str:
    return f"mod_{config['task.k']}" if config["task.name"] == "mod_k" else config["task.name"]


def _typed(field: str, value: str) -> Any:
    return {"beta": float, "iterations": int}.get(field, str)(value.strip())
