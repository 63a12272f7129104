"""Tables of §5.1–5.2 and Appendix A: capacity, optimizer × credit scheme, the decision rule, the long budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from rlstate.paper import targets
from rlstate.paper.notation import (
    MISSING,
    NOTATION,
    PAPER,
    UNDEFINED,
    Table,
    Wanted,
    command,
    difference,
    judged,
    number,
    paired,
    printed,
    seeds,
    spread,
    tasks_of,
    there,
)
from rlstate.paper.rules import A2C, A2C_BROADCAST, PPO, PPO_BROADCAST
from rlstate.paper.select import Arm, arm_of
from rlstate.results import Row

ENCODERS = {"gru": "GRU", "lstm": "LSTM", "window_mlp": "window-MLP", "transformer": "transformer"}
ARMS = {
    "A2C × broadcast": A2C_BROADCAST,
    "A2C × discounted": A2C,
    "PPO × broadcast": PPO_BROADCAST,
    "PPO × discounted": PPO,
}
PAIR = ("parity", "mod_3")  # the tasks of Table 1


def capacity(rows: Sequence[Row]) -> Table | None:
    """§5.1. A capacity is the encoder's and the task's, so any run of both tells it, however it was trained."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        arm = arm_of(row)
        if arm is not None and arm.beta == 0 and row["capacity"] is not None and not row.task.startswith("heldout_"):
            found.setdefault((row.task, arm.encoder), []).append(row)
    if not found:
        return None
    named = tasks_of("capacity")
    lines = []
    for task in (*named, *sorted({task for task, _ in found} - set(named))):
        by_encoder = {encoder: found.get((task, encoder), []) for encoder in ENCODERS}
        if not any(by_encoder.values()):
            continue
        first = next(row for of in by_encoder.values() for row in of)
        rooms = [_less(first.oracle.get(f"{at}optimal"), first.oracle.get(f"{at}random")) for at in ("", "ood_")]
        reached = [_reached(of, figure) for of in by_encoder.values() for figure in ("capacity", "capacity_ood")]
        diagnostic = {True: "yes", False: "no", None: UNDEFINED}[first.diagnostic]
        lines.append((task, *map(number, rooms), diagnostic, *reached))
    missing = [
        f"{name} ({'all' if len(lacking) == len(named) else ', '.join(lacking)})"
        for encoder, name in ENCODERS.items()
        if (lacking := [task for task in named if (task, encoder) not in found])
    ]
    return Table(
        "capacity",
        "§5.1 Supervised capacity, and which tasks are diagnostic",
        "Accuracy of the same encoder under full supervision on random play, at T and over the steps t ≥ T of 4T; from .95 at "
        "both it counts as saturated. *Room* is V_opt − V_rand: a task is diagnostic where it is at least .05 at T and at 4T. "
        "Where runs of one encoder differ: the least and the largest. The paper: GRU 1.00 on counting tasks at 4T, window-MLP "
        "at chance there, transformer .55 on parity (chance); contains_0010 not diagnostic.",
        (
            "task", "room at T", "room at 4T", "diagnostic",
            *(f"{name} {at}" for name in ENCODERS.values() for at in ("T", "4T")),
        ),
        tuple(lines),
        (f"missing: {'; '.join(missing)}. `{command('capacity')}` makes it.",) if missing else (),
    )  # fmt: skip


# --- Table 1 ------------------------------------------------------------------------------------------------------


def table1(rows: Sequence[Row], encoder: str = "gru") -> Table | None:
    """Optimizer × credit scheme. The paper prints the GRU's."""
    wanted = Wanted(rows)
    cells = {
        (name, task): wanted.cell(task, replace(arm, encoder=encoder), "table1")
        for name, arm in ARMS.items()
        for task in PAIR
    }
    if not there(cells.values()):
        return None
    beside = encoder == "gru"
    lines = []
    for name, arm in ARMS.items():
        line = [name]
        for task in PAIR:
            for figure, theirs in (("val_n", targets.TABLE1_VAL_N), ("probe_gap", targets.TABLE1_GAP)):
                line.append(seeds(cells[name, task], figure))
                if beside:
                    line.append(printed(theirs[task, arm.algorithm, arm.credit], figure == "probe_gap"))
        lines.append(tuple(line))
    columns = [f"{task} {figure}" for task in PAIR for figure in ("val_n", "probe gap")]
    if beside:
        columns = [name for column in columns for name in (column, "paper")]
    return Table(
        f"table1_{encoder}",
        f"Table 1 Optimizer × credit scheme, {ENCODERS[encoder]}",
        f"{NOTATION} {PAPER}" if beside else f"{NOTATION} The paper ran these cells and prints none of them.",
        ("optimizer × credit", *columns),
        tuple(lines),
        wanted.notes(),
    )


def table1_ood(rows: Sequence[Row]) -> Table | None:
    wanted = Wanted(rows)
    arms: tuple[tuple[Arm, targets.Printed | float], ...] = (
        (A2C_BROADCAST, targets.OOD_MOD_3_A2C),
        *((replace(PPO, encoder=encoder), theirs) for encoder, theirs in targets.OOD_MOD_3.items()),
    )
    cells = [
        [wanted.cell(task, arm, "table1_transformer" if arm.encoder == "transformer" else "table1") for task in PAIR]
        for arm, _ in arms
    ]
    if not there(each for line in cells for each in line):
        return None
    return Table(
        "table1_ood",
        "§5.2 Success on episodes of 4T",
        f"val_n at 4T, against the oracle at 4T. {NOTATION} {PAPER}",
        ("arm", "parity OOD", "mod_3 OOD", "paper"),
        tuple(
            (str(arm), *(seeds(each, "ood_n") for each in line), printed(theirs))
            for (arm, theirs), line in zip(arms, cells)
        ),
        wanted.notes(),
    )


# --- Appendix A ---------------------------------------------------------------------------------------------------

_AXES = {
    "optimizer": {
        "A2C → PPO at broadcast": (A2C_BROADCAST, PPO_BROADCAST),
        "A2C → PPO at discounted": (A2C, PPO),
    },
    "credit": {
        "broadcast → discounted under A2C": (A2C_BROADCAST, A2C),
        "broadcast → discounted under PPO": (PPO_BROADCAST, PPO),
    },
}


def decision(rows: Sequence[Row]) -> Table | None:
    """By how much each axis moves the probe gap with the other held fixed."""
    wanted = Wanted(rows)
    columns = ["axis", "step"]
    lines = [[axis, step] for axis, steps in _AXES.items() for step in (*steps, "mean of the two")]
    asked = []
    for encoder in ("gru", "window_mlp"):
        for task in PAIR:
            beside = encoder == "gru"
            columns += [f"{ENCODERS[encoder]}, {task}", *["paper"] * beside]
            written: list[list[str]] = []
            for steps in _AXES.values():
                ours: list[Mapping[int, float]] = []
                theirs: list[float] = []
                for base_arm, arm in steps.values():
                    base = wanted.cell(task, replace(base_arm, encoder=encoder), "table1")
                    found = wanted.cell(task, replace(arm, encoder=encoder), "table1")
                    asked += [base, found]
                    ours.append(paired(found, base, "probe_gap"))
                    theirs.append(_printed_gap(task, arm) - _printed_gap(task, base_arm))
                    written.append([difference(found, base, "probe_gap"), number(theirs[-1], signed=True)])
                means = {seed: fmean(each[seed] for each in ours) for seed in ours[0].keys() & ours[1].keys()}
                written.append([spread(means, signed=True), number(fmean(theirs), signed=True)])
            for line, each in zip(lines, written):
                line += each if beside else each[:1]
    if not there(asked):
        return None
    return Table(
        "decision",
        "Appendix A The decision rule in numbers",
        "By how much the probe gap rises along one axis with the other held fixed, paired by seed. The hypothesis that the "
        "optimizer matters is supported where A2C → PPO moves it substantially at a fixed credit scheme, that the reward "
        "channel matters where broadcast → discounted does under a fixed optimizer. "
        f"{NOTATION} *paper*: differences of what its Table 1 prints.",
        tuple(columns),
        tuple(map(tuple, lines)),
        wanted.notes(),
    )


def _printed_gap(task: str, arm: Arm) -> float:
    return targets.TABLE1_GAP[task, arm.algorithm, arm.credit].value


# --- the long budget ----------------------------------------------------------------------------------------------


def long_budget(rows: Sequence[Row]) -> Table | None:
    wanted, lines = Wanted(rows), []
    long = {task: wanted.cell(task, replace(A2C_BROADCAST, iterations=30_000), "long_budget") for task in PAIR}
    if not there(long.values()):
        return None
    for task in PAIR:
        key = (task, "a2c", "broadcast")
        for found, val_n, gap in (
            (wanted.cell(task, A2C_BROADCAST, "table1"), targets.TABLE1_VAL_N[key], targets.TABLE1_GAP[key]),
            (long[task], targets.LONG_VAL_N[task], targets.LONG_GAP[task]),
        ):
            lines.append((
                task, f"{found.arm.iterations:,}".replace(",", " "), seeds(found, "val_n"), printed(val_n),
                seeds(found, "probe_gap"), printed(gap, signed=True), seeds(found, "recovery"), judged(found),
            ))  # fmt: skip
    return Table(
        "long_budget",
        "§5.2 A2C × broadcast with five times the budget",
        f"{NOTATION} {PAPER}",
        ("task", "iterations", "val_n", "paper", "probe gap", "paper", "recovery", "verdict"),
        tuple(lines),
        wanted.notes(),
    )


# --- parts --------------------------------------------------------------------------------------------------------


def _reached(of: Sequence[Row], figure: str) -> str:
    values = sorted(value for row in of if (value := row[figure]) is not None)
    return "…".join(dict.fromkeys((number(values[0]), number(values[-1])))) if values else MISSING


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
