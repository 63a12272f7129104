"""Tables of §5.6, §6 and Appendix B: automata mined from code and logs, interventions, the state's influence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rlstate.automata import DFA, zoo
from rlstate.control import Oracle, state_influence
from rlstate.control.credit import proposition_2_bound, replaying_influence
from rlstate.paper import targets
from rlstate.paper.notation import (
    NOTATION,
    PAPER,
    UNDEFINED,
    Table,
    Wanted,
    judged,
    mixed,
    number,
    printed,
    seeds,
    small,
    tasks_of,
    there,
    yes,
)
from rlstate.paper.proposition_1 import NETWORKS, families, network_influence
from rlstate.paper.rules import EMISSION, PPO, RECOVERED, STATE, setting
from rlstate.paper.select import Cell, arm_of
from rlstate.results import Row

# --- §5.6 ---------------------------------------------------------------------------------------------------------


def mined(rows: Sequence[Row]) -> Table | None:
    wanted, lines = Wanted(rows), []
    others = {row.task for row in rows if row.task.startswith("mined_") and arm_of(row) is not None}
    tasks = tuple(dict.fromkeys((*tasks_of("mined"), *sorted(others))))
    asked = {task: [wanted.cell(task, arm, "mined") for arm in (PPO, STATE)] for task in tasks}
    shown = tasks_of("mined_emission")
    label_free = {task: wanted.cell(task, replace(EMISSION, beta=1.0), "mined_emission") for task in shown}
    if not there([*(each for pair in asked.values() for each in pair), *label_free.values()]):
        return None
    theirs = {
        "mined_div7": (printed(targets.MINED_DIV7_VAL_N), printed(targets.MINED_DIV7_GAP, signed=True)),
        "mined_ean": (printed(targets.MINED_EAN_VAL_N), printed(targets.MINED_EAN_GAP, signed=True)),
    }
    for task, (plain, helped) in asked.items():
        dfa, found = _automaton(task), label_free.get(task)
        val_n, gap = theirs.get(task, ("", ""))
        lines.append((
            task, UNDEFINED if dfa is None else f"{dfa.n_states} × {dfa.n_symbols}",
            UNDEFINED if dfa is None else yes(dfa.is_permutation()),
            UNDEFINED if dfa is None else number(Oracle(dfa, *setting()).leverage, digits=3),
            seeds(plain, "val_n"), val_n, seeds(plain, "probe_gap"), gap, seeds(plain, "recovery"),
            seeds(helped, "val_n"), seeds(helped, "probe_gap"),
            *("" if found is None else seeds(found, figure) for figure in ("val_n", "probe_gap", "muted_val_n")),
            judged(plain),
        ))  # fmt: skip
    return Table(
        "mined",
        "§5.6 Automata mined from code and event logs",
        "GRU under PPO; + state, the privileged auxiliary; + emission, the label-free one where every observation shows the "
        "state (β = 1; *muted*: where it then shows nothing). The logs are not the paper's seven. "
        f"{NOTATION} {PAPER} It says that both auxiliaries rescue mined_div7 to optimal, and that all its logs are learnable."
        + "".join(f" {each}: one automaton, and one set of runs." for each in _alike(tasks)),
        (
            "task", "states × symbols", "permutation", "L", "PPO val_n", "paper", "PPO probe gap", "paper", "PPO recovery",
            "+ state val_n", "+ state gap", "+ emission val_n", "+ emission gap", "+ emission muted val_n", "verdict",
        ),
        tuple(lines),
        wanted.notes(),
    )  # fmt: skip


def _alike(tasks: Sequence[str]) -> list[str]:
    """The names, together, of those that are the same automaton, state by state."""
    names: dict[tuple[bytes, ...], list[str]] = {}
    for task in tasks:
        if (dfa := _automaton(task)) is not None:
            tables = (dfa.transitions, dfa.accepting, np.array(dfa.start))
            names.setdefault(tuple(each.tobytes() for each in tables), []).append(task)
    return [", ".join(each) for each in names.values() if len(each) > 1]


def _automaton(task: str) -> DFA | None:
    try:
        return zoo.make(task)
    except ValueError:  # mined by another version
        return None


# --- §6 -----------------------------------------------------------------------------------------------------------


def intervention(rows: Sequence[Row]) -> Table | None:
    """Policies in which an auxiliary may have installed the state."""
    wanted = Wanted(rows)
    cells = [wanted.cell(task, STATE, "intervention") for task in tasks_of("intervention")]
    shown = [wanted.cell("mod_5", replace(EMISSION, beta=value), "beta") for value in targets.BETAS if value]
    shown += [wanted.cell(task, replace(EMISSION, beta=1.0), "mined_emission") for task in tasks_of("mined_emission")]
    if not there(cells):
        return None
    lines = []
    for found in (*cells, *(each for each in shown if there([each]))):
        recovery = found.mean("recovery")
        installed = UNDEFINED if recovery is None else yes(recovery >= RECOVERED)
        lines.append((
            found.task, _auxiliary(found), seeds(found, "recovery"), mixed(found) if found.mixed else installed,
            *(seeds(found, f"intervention{of}") for of in ("", "_random", "_shuffled")),
            number(found.mean("intervention_examples"), digits=0),
        ))  # fmt: skip
    success, random = (
        "–".join(map(number, ends)) for ends in (targets.INTERVENTION_SUCCESS, targets.INTERVENTION_RANDOM)
    )
    lines.append(("the paper, seven policies", "", "", "", success, random, "", ""))
    return Table(
        "intervention",
        "§6 Edits along the probe's directions",
        "How often the greedy action becomes optimal for the state that the features were moved to, beside moves of the same "
        f"length in random directions and along a probe of shuffled labels. *installed*: recovery of at least .5. {NOTATION}",
        ("task", "auxiliary", "recovery", "installed", "success", "random", "shuffled", "examples"),
        tuple(lines),
        tuple(note for note in wanted.notes() if "+experiment=intervention" in note or note.startswith("mixed")),
    )


def _auxiliary(found: Cell) -> str:
    return found.arm.auxiliary + (f", β = {found.arm.beta:g}" if found.arm.beta else "")


# --- Appendix B ---------------------------------------------------------------------------------------------------

_STEPS = (1, 2, 3, 5, 8, 16)


def credit() -> Table:
    """Δ after r random steps, exactly; no runs are needed."""
    horizon, p_control = setting()
    counter = " ".join(f"{number(value, digits=3)} (r = {r})" for r, value in targets.DELTA_COUNTER.items())
    stays = f"{number(targets.DELTA_NO_THREE_ZEROS)} (r = 16)"
    theirs = {
        "parity": "0 from r = 1", "mod_3": counter, "mod_5": counter, "mod_7": counter, "mod_9": counter, "mod_11": counter,
        "workflow_api": "1.0 throughout", "no_three_zeros": stays, "workflow_reconcile": "decays like a counter",
    }  # fmt: skip
    lines = []
    for task in targets.SUITE:
        dfa = zoo.make(task)
        rate = proposition_2_bound(dfa, horizon).rate
        influence = state_influence(dfa, max(_STEPS))
        lines.append((task, yes(dfa.is_permutation()), *_profile(influence), small(rate), theirs.get(task, "")))
    reconcile = zoo.make("workflow_reconcile")
    holding = np.tile(np.eye(reconcile.n_symbols)[reconcile.alphabet.index("hold")], (reconcile.n_states, 1))
    for name, influence, theirs_too in (
        ("parity, replaying policy", replaying_influence(max(_STEPS), p_control), "stays Θ(1)"),
        (
            "workflow_reconcile, holding",
            state_influence(reconcile, max(_STEPS), holding, p_control),
            "its hold avoids the decay",
        ),
    ):
        lines.append((name, "yes", *_profile(influence), "", theirs_too))
    untrained = np.max([network_influence("parity", 5, seed) for seed in range(NETWORKS)], axis=0)
    lines.append(("parity, untrained GRU", "yes", *_profile(untrained), "", "state-blind: 0"))
    return Table(
        "credit",
        "Appendix B How long the state matters",
        "Δ_r: by how much the chance of acceptance still depends on the present state with r steps to go, exact. Symbols are "
        f"uniformly random, but in the last three rows, where a step is the agent's with probability {number(p_control)}: one "
        "policy undoes the random symbols that it has seen, one holds, one is the protocol's before training (every history "
        f"of six steps, the largest Δ over them and over {NETWORKS} seeds). *λ*: the rate per step that Proposition 2 "
        "promises over the horizon, from its best block length; 1: none.",
        ("task", "permutation", *(f"Δ_{r}" for r in _STEPS), "λ", "paper"),
        tuple(lines),
    )


def _profile(influence: NDArray[np.float64]) -> list[str]:
    return [small(float(influence[r - 1])) if r <= len(influence) else UNDEFINED for r in _STEPS]


def proposition_1() -> Table:
    """Both sides of Proposition 1, exactly; no runs are needed."""
    bounds = ("symbol_influence", "state_influence", "mean_state_influence")
    lines = [
        (each.policies, ", ".join(each.automata), str(each.steps),
         *(_ratio(float(each.ratios(bound).max()), each.exceeded(bound)) for bound in bounds))
        for each in families()
    ]  # fmt: skip
    return Table(
        "proposition_1",
        "Appendix B What bounds the credit of a step",
        "‖E[R ∇log π(a|h)]‖ / (Δ · E‖∇log π(a|h)‖), the largest over the steps of all policies; the proposition says at most 1. "
        "Where it is above 1: at how many steps. Exact, every history enumerated, networks with the gradient to all weights. "
        "Three readings of Δ. *symbol*: how much the chance of acceptance hangs on the step's symbol, after the history where "
        "it does so most (½ bounds it always). *state, history held*: how much it hangs on the state just after the step, what "
        "was seen being held (1 bounds it always in permutation automata; elsewhere where no later choice reads the step's "
        "symbol). *state, as written*: the same, averaged over what leads to a state (1 bounds it where no later choice reads "
        "any symbol).",
        ("policies", "automata", "steps", "symbol", "state, history held", "state, as written"),
        tuple(lines),
    )


def _ratio(largest: float, exceeded: int) -> str:
    return number(largest) + f" (above 1 at {exceeded})" * bool(exceeded)
