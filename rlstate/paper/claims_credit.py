"""The claims of Appendix B, all exact: what bounds a step's credit, how random play makes the state's influence vanish."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlstate.automata import zoo
from rlstate.control import state_influence
from rlstate.control.credit import replaying_influence
from rlstate.paper import proposition_1, targets
from rlstate.paper.proposition_1 import Family, families
from rlstate.paper.rules import Claim, Runs, Test, setting


def _influence(task: str, steps: int = 64) -> np.ndarray:
    """Δ after r = 1, 2, … uniformly random steps."""
    return state_influence(zoo.make(task), steps)


def _parity_collapses(_: Runs) -> tuple[bool, str]:
    influence = _influence("parity")
    return bool((influence == 0).all()), f"Δ = {influence.max():g}"


def _counter_decays(_: Runs) -> tuple[bool, str]:
    influence = _influence("mod_11", 5)
    held = all(abs(influence[r - 1] - 0.5**r) < 1e-12 for r in targets.DELTA_COUNTER)
    return held, "Δ = " + ", ".join(f"{influence[r - 1]:g}" for r in targets.DELTA_COUNTER)


def _replaying(_: Runs) -> tuple[bool, str]:
    p_control = setting()[1]
    influence = replaying_influence(64, p_control)
    return bool(np.allclose(influence, p_control)), f"Δ = {influence.min():g} … {influence.max():g}"


def _absorbing_stays(_: Runs) -> tuple[bool, str]:
    influence = _influence("workflow_api")
    return bool((influence == 1).all()), f"Δ = {influence.min():g} … {influence.max():g}"


def _no_three_zeros_stays(_: Runs) -> tuple[bool, str]:
    after = _influence("no_three_zeros", 16)[-1]
    return abs(after - targets.DELTA_NO_THREE_ZEROS) <= 0.01, f"Δ = {after:.4f}"


def _bounded(bound: str, picks: Callable[[Family], bool]) -> Callable[[Runs], tuple[bool, str]]:
    """Whether Proposition 1 holds at every step of the families that `picks` picks, with `bound` for Δ."""

    def apply(_: Runs) -> tuple[bool, str]:
        these = [family for family in families() if picks(family)]
        exceeded, steps = sum(each.exceeded(bound) for each in these), sum(each.steps for each in these)
        largest = max(float(each.ratios(bound).max()) for each in these)
        told = "∞" if np.isinf(largest) else f"{largest:.2f}"
        return not exceeded, f"exceeded at {exceeded} of {steps} steps, the largest ratio {told}"

    return apply


def _blind(family: Family) -> bool:
    return family.policies == proposition_1.BLIND


def _permutation(family: Family) -> bool:
    return all(zoo.make(task).is_permutation() for task in family.automata)


def _idle_steps(_: Runs) -> tuple[bool, str]:
    idle = np.concatenate([family.idle() for family in families()])
    return bool(len(idle) and idle.max() < 1e-13), f"at {len(idle)} such steps at most {idle.max(initial=0):.0e}"


def _reconcile(policy: bool) -> float:
    dfa = zoo.make("workflow_reconcile")
    hold = np.tile(np.eye(3)[2], (dfa.n_states, 1))
    return float(state_influence(dfa, 16, hold if policy else None, setting()[1])[-1])


CLAIMS = (
    Claim(
        "credit_is_bounded", "Appendix B",
        "Whatever the policy, what a step adds to the policy gradient is at most the state's influence just after it times "
        "the size of the step's score; nothing where acceptance does not depend on its symbol (Proposition 1).",
        "Exact, every history of an episode of 2 to 4 steps: ‖E[R ∇log π]‖ ≤ Δ_t · E‖∇log π‖ at every step, with Δ_t as it "
        "is written, of sampled state-blind policies, and of policies that choose by what they have seen (tables, networks, "
        "two made to break it); in permutation automata with Δ_t for what was seen held, as in the replaying policy's; and "
        "0 at every step whose symbol makes no difference after any history.",
        (
            Test("state-blind policies", _bounded("mean_state_influence", _blind)),
            Test("policies that choose by what they have seen",
                 _bounded("mean_state_influence", lambda family: not _blind(family))),
            Test("permutation automata, any policy, what was seen held", _bounded("state_influence", _permutation)),
            Test("0 where the symbol makes no difference", _idle_steps),
        ),
    ),
    Claim(
        "influence_vanishes", "Appendix B",
        "In a permutation automaton random play makes the state's influence on the outcome vanish: on parity at "
        "once, on counters by half with every step. A policy that replays the random symbols keeps it, but has to "
        "track them first.",
        "Exact: Δ after random steps is 0 from the first on parity, and 1/2, 1/4, 1/8, 1/32 after 1, 2, 3, 5 on "
        "mod_11; under the replaying policy on parity it is p_control at every distance up to 64.",
        (
            Test("parity: Δ = 0 from one random step on", _parity_collapses),
            Test("mod_11: Δ = 2^−r at r = 1, 2, 3, 5", _counter_decays),
            Test("parity, replaying policy: Δ = p_control", _replaying),
        ),
    ),
    Claim(
        "influence_persists", "Appendix B",
        "Where acceptance or rejection absorbs, the state's influence on the outcome does not vanish under random play.",
        "Exact: Δ = 1 on workflow_api after up to 64 random steps; .30 ± .01 on no_three_zeros after 16.",
        (
            Test("workflow_api: Δ = 1", _absorbing_stays),
            Test("no_three_zeros: |Δ − 0.30| ≤ 0.01 after 16 random steps", _no_three_zeros_stays),
        ),
    ),
    Claim(
        "hold_avoids_decay", "Appendix B",
        "workflow_reconcile loses its state's influence on the outcome under random play like a counter, and its hold "
        "avoids that.",
        "Exact, after 16 steps: Δ < .01 under random play; if the agent's steps hold and the others are random, at "
        "least a hundred times as much, and of order one: ≥ .25.",
        (
            Test("random play: Δ < 0.01", lambda _: (_reconcile(False) < 0.01, f"Δ = {_reconcile(False):.2g}")),
            Test("holding: Δ ≥ 100 times as much",
                 lambda _: (_reconcile(True) >= 100 * _reconcile(False), f"Δ = {_reconcile(True):.3f}")),
            Test("holding: Δ ≥ 0.25", lambda _: (_reconcile(True) >= 0.25, f"Δ = {_reconcile(True):.3f}")),
        ),
    ),
)  # fmt: skip
