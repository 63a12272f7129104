"""The claims of §5.3 and Table 4: what auxiliaries add, and the two ways out, observations that carry the state and a hold."""

from __future__ import annotations

from dataclasses import replace

from rlstate.paper import targets
from rlstate.paper.rules import (
    A2C,
    EMISSION,
    INERT_GAP,
    INERT_VAL_N,
    NEAR_OPTIMAL,
    PPO,
    STATE,
    SUBSTANTIAL_RULE,
    Claim,
    Runs,
    Test,
    UndefinedFigure,
    at_least,
    below,
    difference,
    inert,
    signed,
    substantial,
    word,
)
from rlstate.paper.select import Arm
from rlstate.statistics import paired_difference

TASKS = ("parity", "mod_3")
LEAKING = {beta: replace(EMISSION, beta=beta) for beta in targets.BETAS}

# --- §5.3 ---------------------------------------------------------------------------------------------------------

AUXILIARIES = (
    Claim(
        "state_auxiliary_inert", "§5.3",
        "Where PPO recovers the state by itself the privileged auxiliary adds next to nothing.",
        f"GRU, PPO, with − without the state auxiliary, mean of five paired seeds on mod_2 and mod_3: val_n changes by at most "
        f"{INERT_VAL_N}, the gap by at most {INERT_GAP}.",
        tuple(inert(task, STATE, PPO) for task in ("mod_2", "mod_3")),
        ("table2",),
    ),
    Claim(
        "state_auxiliary_helps", "§5.3",
        "Where the base learner fails the privileged auxiliary adds much: under A2C, and under PPO on large counters.",
        f"GRU, with − without the state auxiliary: {SUBSTANTIAL_RULE}, of the gap, under A2C × discounted on parity "
        "and on mod_3, and under PPO on mod_7, mod_9 and mod_11.",
        (
            *(substantial("probe_gap", task, replace(A2C, auxiliary="state"), A2C) for task in TASKS),
            *(substantial("probe_gap", f"mod_{k}", STATE, PPO) for k in (7, 9, 11)),
        ),
        ("auxiliary", "table2"),
    ),
    Claim(
        "emission_auxiliary_vacuous", "§5.3",
        "Where observations say nothing of the state (β = 0) the label-free auxiliary adds nothing, neither state "
        "nor reward.",
        "GRU, PPO, β = 0, with − without the emission auxiliary, mean of five paired seeds on parity, mod_3 and mod_5: "
        "gap and val_n rise by less than .05. (They may fall.)",
        tuple(difference(figure, task, EMISSION, PPO, "<", 0.05)
              for task in (*TASKS, "mod_5") for figure in ("probe_gap", "val_n")),
        ("auxiliary",),
    ),
    Claim(
        "beta_threshold", "§5.3",
        "At β = .1 already the label-free auxiliary recovers the state of mod_5 and rescues its reward.",
        f"GRU, PPO + emission auxiliary on mod_5, mean of five seeds: at β = .1 gap ≥ .40 and val_n ≥ {NEAR_OPTIMAL} "
        "(the paper: +.47, .93), at β = 0 both below.",
        (
            at_least("probe_gap", "mod_5", LEAKING[0.1], 0.40), at_least("val_n", "mod_5", LEAKING[0.1], NEAR_OPTIMAL),
            below("probe_gap", "mod_5", EMISSION, 0.40), below("val_n", "mod_5", EMISSION, NEAR_OPTIMAL),
        ),
        ("beta",),
    ),
    Claim(
        "beta_saturates", "§5.3",
        "On mod_5 observations that say more than at β = .1 add little under the label-free auxiliary: a threshold, "
        "not a graded response.",
        "GRU, PPO + emission auxiliary on mod_5, mean of five paired seeds: β = .25, .5 and 1 gain less than .05 "
        "over β = .1, in gap and in val_n.",
        tuple(difference(figure, "mod_5", LEAKING[beta], LEAKING[0.1], "<", 0.05)
              for beta in (0.25, 0.5, 1.0) for figure in ("probe_gap", "val_n")),
        ("beta",),
    ),
    Claim(
        "beta_controls", "§5.3",
        "On mod_5 at β = .1 it is the label-free auxiliary that installs the state, and the state outlasts the "
        "channel (controls of ours).",
        "GRU, PPO on mod_5 at β = .1, five seeds: the auxiliary raises the gap substantially over PPO at the same β, "
        "and with the channel muted the gap is still at least .20, half of the threshold's.",
        (
            substantial("probe_gap", "mod_5", LEAKING[0.1], Arm(beta=0.1)),
            at_least("muted_gap", "mod_5", LEAKING[0.1], 0.20),
        ),
        ("beta",),
    ),
)  # fmt: skip


# --- Table 4 ------------------------------------------------------------------------------------------------------


def _hold_raises(figure: str, by: float) -> Test:
    def apply(runs: Runs) -> tuple[bool, str]:
        held, plain = (runs.cell(task, PPO).values(figure) for task in ("mod_5_hold", "mod_5"))
        found = paired_difference(held, plain)
        if not found.n:
            raise UndefinedFigure(f"{word(figure)} of mod_5 or of mod_5_hold is undefined in every seed")
        return found.value >= by, signed(found)

    return Test(f"{PPO}, {word(figure)}: mod_5_hold − mod_5 ≥ {by:.2f}", apply)


def _hold_steadies(figure: str) -> Test:
    def apply(runs: Runs) -> tuple[bool, str]:
        held, plain = (runs.cell(task, PPO).sd(figure) for task in ("mod_5_hold", "mod_5"))
        if held is None or plain is None:
            raise UndefinedFigure(f"{word(figure)} of mod_5 or of mod_5_hold is defined in fewer than two seeds")
        return held <= plain / 2, f"{held:.3f} against {plain:.3f}"

    return Test(f"{PPO}: SD of {word(figure)} over seeds on mod_5_hold ≤ half of mod_5's", apply)


TABLE_4 = (
    Claim(
        "hold_fixes_mod_5", "Appendix D, Table 4",
        "A symbol that holds the state lifts mod_5's reward and state, and makes the seeds agree.",
        "GRU, PPO, five seeds, mod_5_hold − mod_5: val_n by at least .10 and gap by at least .05 in the mean (the "
        "paper: +.39, +.10), and the seeds' standard deviation of either at most half (.09 of .22, .04 of .18).",
        (
            _hold_raises("val_n", 0.10), _hold_raises("probe_gap", 0.05),
            _hold_steadies("val_n"), _hold_steadies("probe_gap"),
        ),
        ("table4",),
    ),
    Claim(
        "observability_fixes_mod_5", "Appendix D, Table 4",
        "Observations that carry a little of the state (β = .1) lift mod_5's reward and state to near what can be had.",
        "GRU, PPO + emission auxiliary on mod_5, five paired seeds: from β = 0 to β = .1 val_n and gap are raised "
        f"substantially ({SUBSTANTIAL_RULE}), and the gap to within .05 of PPO + state auxiliary's at β = 0.",
        (
            substantial("val_n", "mod_5", LEAKING[0.1], EMISSION), substantial("probe_gap", "mod_5", LEAKING[0.1], EMISSION),
            difference("probe_gap", "mod_5", LEAKING[0.1], STATE, "≥", -0.05),
        ),
        ("beta", "table2"),
    ),
)  # fmt: skip
