"""Tables of §5.2, §5.3 and Appendix D: what closes the gap (shaping, auxiliaries, observations, a symbol that holds)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rlstate.paper import targets
from rlstate.paper.notation import NOTATION, PAPER, Table, Wanted, difference, judged, number, printed, seeds, there
from rlstate.paper.rules import EMISSION, PPO, STATE
from rlstate.paper.select import Arm
from rlstate.results import Row

PAIR = ("parity", "mod_3")


def shaping(rows: Sequence[Row]) -> Table | None:
    wanted, lines = Wanted(rows), []
    shaped = replace(PPO, shaping="oracle")
    if not there(wanted.cell(task, shaped, "shaping") for task in PAIR):
        return None
    for name, arm, theirs in (
        ("PPO", PPO, {task: targets.TABLE1_GAP[task, "ppo", "discounted"] for task in PAIR}),
        ("PPO + oracle shaping", shaped, targets.SHAPING_GAP),
        ("PPO + acceptance shaping", replace(PPO, shaping="acceptance"), {}),
        ("PPO + state auxiliary", STATE, targets.STATE_AUXILIARY_GAP),
    ):
        line = [name]
        for task in PAIR:
            found = wanted.cell(task, arm, "auxiliary" if arm == STATE else "shaping")
            line += [seeds(found, "val_n"), seeds(found, "probe_gap"), printed(theirs.get(task), signed=True)]
            line.append(seeds(found, "recovery"))
        lines.append(tuple(line))
    return Table(
        "shaping",
        "§5.2 The shaping ladder",
        "Reward shaped by the oracle's value, beside the privileged auxiliary as the ceiling. *Acceptance*, a control of ours: "
        f"Φ is 1 where the state accepts, at every step. {NOTATION} {PAPER}",
        (
            "arm",
            *("paper" if what == "paper" else f"{task} {what}" for task in PAIR
              for what in ("val_n", "probe gap", "paper", "recovery")),
        ),
        tuple(lines),
        wanted.notes(),
    )  # fmt: skip


# --- §5.3 ---------------------------------------------------------------------------------------------------------

_AUXILIARY_TASKS = (*PAIR, "mod_5")
_FIGURES = {"val_n": "val_n", "probe gap": "probe_gap"}


def auxiliary(rows: Sequence[Row]) -> list[Table]:
    """Each optimizer × auxiliary, and what the auxiliaries add, paired by seed."""
    wanted = Wanted(rows)
    arms = {
        f"{algorithm.upper()} + {name}": Arm(algorithm=algorithm, auxiliary=name)
        for algorithm in ("a2c", "ppo")
        for name in ("none", "state", "emission")
    }
    cells = {
        (name, task): wanted.cell(task, arm, "auxiliary") for name, arm in arms.items() for task in _AUXILIARY_TASKS
    }
    helped = [name for name, arm in arms.items() if arm.auxiliary != "none"]
    if not there(cells[name, task] for name in helped for task in _AUXILIARY_TASKS):
        return []
    columns = tuple(f"{task} {heading}" for task in _AUXILIARY_TASKS for heading in _FIGURES)

    def lines(names: Sequence[str], written: Callable[[str, str, str], str]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (name, *(written(name, task, figure) for task in _AUXILIARY_TASKS for figure in _FIGURES.values()))
            for name in names
        )

    def absolute(name: str, task: str, figure: str) -> str:
        return seeds(cells[name, task], figure)

    def added(name: str, task: str, figure: str) -> str:
        return difference(cells[name, task], cells[f"{name.split()[0]} + none", task], figure)

    return [
        Table(
            "auxiliary",
            "§5.3 Auxiliaries where observations carry no state (β = 0)",
            "*state* is privileged (predict q_t), *emission* label-free (predict what is shown next). "
            f"{NOTATION} Of these cells the paper prints PPO + emission on mod_5: val_n {number(targets.BETA_VAL_N[0.0])}, "
            f"gap {number(targets.BETA_GAP[0.0], signed=True)} (three seeds).",
            ("optimizer + auxiliary", *columns),
            lines(list(arms), absolute),
            wanted.notes(),
        ),
        Table(
            "auxiliary_benefit",
            "§5.3 What the auxiliaries add",
            f"With the auxiliary less without it, paired by seed. {NOTATION}",
            ("optimizer + auxiliary", *columns),
            lines(helped, added),
        ),
    ]


def beta(rows: Sequence[Row]) -> Table | None:
    wanted, lines = Wanted(rows), []
    pairs = {
        value: [wanted.cell("mod_5", replace(arm, beta=value), "beta") for arm in (EMISSION, PPO)]
        for value in targets.BETAS
    }
    if not there(
        each for value, pair in pairs.items() for each in pair if value
    ):  # at β = 0 they are other tables' runs
        return None
    for value, (helped, plain) in pairs.items():
        muted = [
            [seeds(each, name) if value else "" for name in ("muted_val_n", "muted_gap")] for each in (helped, plain)
        ]
        lines.append((
            f"{value:g}".removeprefix("0") or "0",
            seeds(helped, "val_n"), printed(targets.BETA_VAL_N.get(value)),
            seeds(helped, "probe_gap"), printed(targets.BETA_GAP.get(value), signed=True), *muted[0],
            seeds(plain, "val_n"), seeds(plain, "probe_gap"), *muted[1],
            seeds(helped, "input_gap"),
        ))  # fmt: skip
    return Table(
        "beta",
        "§5.3 How much observations say of the state: mod_5 by β",
        "With probability β an observation shows the state. *muted*: the same policy where nothing is shown (at β = 0 there is "
        "nothing to mute). *input*: the probe on the observation alone, on the rollouts of the policy with the auxiliary; at "
        f"β = 1 the input gives the state away. {NOTATION} {PAPER} What it prints for β ≥ .1 stands at .1.",
        (
            "β",
            "+ emission: val_n", "paper", "+ emission: gap", "paper", "+ emission: muted val_n", "+ emission: muted gap",
            "without: val_n", "without: gap", "without: muted val_n", "without: muted gap",
            "input gap",
        ),
        tuple(lines),
        wanted.notes(),
    )  # fmt: skip


# --- Appendix D ---------------------------------------------------------------------------------------------------


def table4(rows: Sequence[Row]) -> Table | None:
    wanted = Wanted(rows)
    conditions = (
        ("mod_5", "baseline", wanted.cell("mod_5", PPO, "table4"), "mod_5"),
        ("mod_5_hold", "latchability", wanted.cell("mod_5_hold", PPO, "table4"), "mod_5_hold"),
        ("mod_5, β = 0, + emission", "observability off", wanted.cell("mod_5", EMISSION, "beta"), "beta_0"),
        (
            "mod_5, β = .1, + emission", "observability on",
            wanted.cell("mod_5", replace(EMISSION, beta=0.1), "beta"), "beta_0.1",
        ),
        ("mod_5, + state", "ceiling", wanted.cell("mod_5", STATE, "table2"), "ceiling"),
    )  # fmt: skip
    if not there(found for _, _, found, _ in conditions):
        return None
    lines = []
    for name, lever, found, key in conditions:
        gap = targets.TABLE4_GAP.get(key, targets.Printed(targets.TABLE4_CEILING))
        lines.append((
            name, lever, seeds(found, "val_n"), printed(targets.TABLE4_VAL_N.get(key)), number(found.sd("val_n")),
            seeds(found, "probe_gap"), printed(gap, signed=True), seeds(found, "recovery"), judged(found),
        ))  # fmt: skip
    return Table(
        "table4",
        "Table 4 Predict, fix, measure: mod_5",
        "Two ways out of a hard task: a symbol that holds the state, and observations that carry it. *SD*: of val_n over "
        f"seeds. {NOTATION} {PAPER}",
        ("condition", "lever", "val_n", "paper", "SD", "probe gap", "paper", "recovery", "verdict"),
        tuple(lines),
        wanted.notes(),
    )
