"""The paper's tables made of rows, ours beside what it printed (`rlstate.paper.targets`), and a table of all runs.

How a cell is written: `rlstate.paper.notation`. A table is there if a run of its own is; what it lacks, and the command that
makes it, stand below it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlstate.paper import tables_levers, tables_mechanism, tables_suite, tables_training
from rlstate.paper.heldout import verdict_of
from rlstate.paper.notation import NOTATION, UNDEFINED, UNTRAINED, Table, seeds
from rlstate.paper.select import Arm, Cell, arm_of, deciding
from rlstate.paper.tables_heldout import held_out
from rlstate.results import Row, cells

__all__ = ["Table", "all_runs", "tables"]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Those for which there are runs, in the paper's order; `credit`, which needs none, is always there, `all_runs` is last."""
    found = [
        tables_training.capacity(rows),
        tables_training.table1(rows, "gru"),
        tables_training.table1(rows, "window_mlp"),
        tables_training.table1_ood(rows),
        tables_training.decision(rows),
        tables_training.long_budget(rows),
        tables_levers.shaping(rows),
        *tables_levers.auxiliary(rows),
        tables_levers.beta(rows),
        tables_suite.table2(rows),
        tables_suite.suite(rows),
        tables_suite.falsified(rows),
        tables_suite.behaviour(rows),
        tables_suite.predictor(rows),
        *held_out(rows),
        tables_levers.table4(rows),
        tables_mechanism.mined(rows),
        tables_mechanism.intervention(rows),
        tables_mechanism.credit(),
        tables_mechanism.proposition_1(),
        all_runs(rows),
    ]
    return [table for table in found if table is not None]


def all_runs(rows: Sequence[Row]) -> Table | None:
    """A line for every configuration of every task, under whichever protocol."""
    if not rows:
        return None
    lines = []
    for group in sorted(cells(rows), key=lambda each: (each[0].task, _in_words(each[0]), each[0].hash)):
        found = Cell(group[0].task, Arm(), tuple(group))
        lines.append((
            group[0].task, _in_words(group[0]), group[0].hash, str(len(group)), str(verdict_of(group)).replace("_", " "),
            seeds(found, "val_n"), seeds(found, "ood_n"), seeds(found, "probe_gap"), seeds(found, "recovery"),
            seeds(found, "untrained_recovery"), _time([row.seconds for row in group]),
            " ".join(sorted({(row.commit or UNDEFINED)[:7] for row in group})),
        ))  # fmt: skip
    return Table(
        "all_runs",
        "All runs",
        "Every configuration of every task that has a finished run, those of another protocol too, which enter no table above: "
        "of them the keys that differ from the protocol are named. "
        f"{NOTATION} {UNTRAINED} The verdict is that of the means. Time: of all seeds together, "
        "training and measuring.",
        (
            "task",
            "configuration",
            "hash",
            "seeds",
            "verdict",
            "val_n",
            "OOD",
            "probe gap",
            "recovery",
            "untrained",
            "time",
            "commits",
        ),
        tuple(lines),
    )


_THRESHOLDS = ("probe.recovery", "probe.val_n", "probe.saturated")  # the reader's
_ARM = (
    "algorithm.name",
    "algorithm.credit",
    "encoder.name",
    "auxiliary.name",
    "emission.beta",
    "shaping.name",
    "iterations",
)
"""Where a configuration has the fields of an `Arm`."""


def _in_words(row: Row) -> str:
    arm = arm_of(row)
    if arm is not None:
        return str(arm)
    nearest = Arm(*(row.config.get(key) for key in _ARM))  # type: ignore[arg-type]
    protocol = deciding(nearest)
    name = ", ".join(str(row.config.get(key)) for key in ("encoder.name", "algorithm.name"))
    name = name if protocol is None else str(nearest)
    protocol = protocol or deciding(Arm()) or {}
    told = [
        f"{key}={row.config[key]}" if key in row.config else f"no {key}"
        for key in sorted({*row.config, *protocol})
        if key not in _THRESHOLDS
        and (key in protocol or not key.startswith("task."))
        and (key not in row.config or key not in protocol or row.config[key] != protocol[key])
    ]
    return f"{name}; not the protocol: {', '.join(told)}"


def _time(seconds: Sequence[float | None]) -> str:
    """Hours or minutes; ≥ where it is not known of every run."""
    known = [each for each in seconds if each is not None]
    if not known:
        return UNDEFINED
    total = sum(known)
    text = f"{total / 3600:.1f} h" if total >= 3600 else f"{total / 60:.1f} min"
    return text if len(known) == len(seconds) else f"≥ {text}"
