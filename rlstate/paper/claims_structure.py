"""The claims of §5.4 and §5.6, §6 and Appendix B: which tasks are hard, what is hard in real code, whether the state is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rlstate.automata import zoo
from rlstate.paper import targets
from rlstate.paper.rules import (
    EMISSION,
    NEAR_CHANCE_GAP,
    NEAR_OPTIMAL,
    PPO,
    RECOVERED,
    STATE,
    Claim,
    MissingRuns,
    Runs,
    Test,
    UndefinedFigure,
    at_least,
    at_most,
    below,
    correlated,
    difference,
    worst,
)
from rlstate.statistics import spearman

HARD = targets.HARD_BENEFIT
COUNTERS = tuple(f"mod_{k}" for k in targets.COUNTERS)
LABEL_FREE = replace(EMISSION, beta=1.0)
INTERVENED = ("parity", "mod_3", "mod_5", "mod_7", "mod_9", "mod_11", "mod_5_hold", "workflow_reconcile", "mined_div7")
POINTS = tuple(task for task in targets.SUITE if task != "contains_0010")  # of Figure 2: the diagnostic ones


# --- §5.4 ---------------------------------------------------------------------------------------------------------


def recovered_fraction(runs: Runs, task: str) -> float:
    """PPO's gap over the privileged auxiliary's, means over seeds (Table 2's last column)."""
    ceiling = runs.mean("probe_gap", task, STATE)
    if ceiling <= 0:
        raise UndefinedFigure(f"the state auxiliary's gap on {task} is {ceiling:+.3f}: there is nothing to divide by")
    return runs.mean("probe_gap", task, PPO) / ceiling


def _fraction(task: str, sign: str, bound: float) -> Test:
    def apply(runs: Runs) -> tuple[bool, str]:
        found = recovered_fraction(runs, task)
        return found >= bound if sign == "≥" else found <= bound, f"{found:.2f}"

    return Test(f"{task}: PPO's gap / the state auxiliary's {sign} {bound:.2f}", apply)


def _fraction_falls(runs: Runs) -> tuple[bool, str]:
    runs.require(COUNTERS, PPO, STATE)
    fractions = [recovered_fraction(runs, task) for task in COUNTERS]
    found = spearman(targets.COUNTERS, fractions)
    return (
        found.rho <= -0.5,
        f"{correlated(found)} ({', '.join(f'{each:.2f}' for each in fractions)})",
    )


def _planning_gap(task: str) -> tuple[Test, ...]:
    return at_least("recovery", task, PPO, RECOVERED), below("val_n", task, PPO, NEAR_OPTIMAL)


def _reward_gap_and_probe_gap(runs: Runs, figure: str = "val_n") -> list[tuple[float, float, str]]:
    """For each task of Figure 2: the behavioural figure, the probe gap, the name; without those whose gap is undefined."""
    runs.require(POINTS, PPO)
    points = []
    for task in POINTS:
        found = runs.cell(task, PPO)
        val_n, ood_n, gap = (found.mean(name) for name in ("val_n", "ood_n", "probe_gap"))
        if val_n is not None and ood_n is not None and gap is not None:
            points.append((1 - val_n if figure == "val_n" else val_n - ood_n, gap, task))
    return points


def _weakly_correlated(figure: str) -> Callable[[Runs], tuple[bool, str]]:
    def apply(runs: Runs) -> tuple[bool, str]:
        points = _reward_gap_and_probe_gap(runs, figure)
        found = spearman([behaviour for behaviour, _, _ in points], [gap for _, gap, _ in points])
        return abs(found.rho) < 0.5, correlated(found)

    return apply


def _span(runs: Runs) -> tuple[bool, str]:
    points = _reward_gap_and_probe_gap(runs)
    visible = sorted((gap, task) for short, gap, task in points if short >= targets.VISIBLY_SUBOPTIMAL)
    if len(visible) < 2:
        return False, f"{len(visible)} tasks have a reward gap of at least {targets.VISIBLY_SUBOPTIMAL}"
    (low, lowest), (high, highest) = visible[0], visible[-1]
    return high - low >= 0.40, f"{len(visible)} tasks, from {low:+.3f} ({lowest}) to {high:+.3f} ({highest})"


def _helped(task: str) -> Test:
    return difference("val_n", task, STATE, PPO, "≥", HARD)


def _not_helped(task: str) -> Test:
    return difference("val_n", task, STATE, PPO, "<", HARD)


SCALING = (
    Claim(
        "recovered_fraction_falls", "§5.4, Table 2",
        "As the counter grows sparse reward recovers a smaller share of the state that can be recovered.",
        "GRU, PPO, five seeds; share = mean gap of PPO / mean gap with the state auxiliary: ≥ .80 at k = 2 and 3, ≤ "
        ".50 at k = 11 (the paper: .83, .99, .31), Spearman of k and the share ≤ −.5 over the six k (−.77).",
        (
            _fraction("mod_2", "≥", 0.80), _fraction("mod_3", "≥", 0.80), _fraction("mod_11", "≤", 0.50),
            Test("Spearman(k, share) ≤ −0.5", _fraction_falls),
        ),
        ("table2",),
    ),
    Claim(
        "auxiliary_benefit_grows", "§5.4, Table 2",
        "As the counter grows a signal that tells the state is worth more reward.",
        "GRU, PPO, val_n with − without the state auxiliary, mean of five paired seeds: ≤ .05 at k = 2 and 3, ≥ "
        f"{HARD:.2f} at k = 5, 7, 9 and 11.",
        (
            *(difference("val_n", task, STATE, PPO, "≤", 0.05) for task in COUNTERS[:2]),
            *(_helped(task) for task in COUNTERS[2:]),
        ),
        ("table2",),
    ),
    Claim(
        "workflows_solved", "§5.4",
        "Sparse PPO solves the workflow shapes: reach-commit stages, a long latch, a quota, a reconciliation with a "
        "hold.",
        f"GRU, PPO, mean of five seeds on each of the four: val_n ≥ {NEAR_OPTIMAL}, and the state auxiliary adds less "
        f"than {HARD:.2f}.",
        tuple(test for task in targets.WORKFLOWS for test in (at_least("val_n", task, PPO, NEAR_OPTIMAL), _not_helped(task))),
        ("suite",),
    ),
    Claim(
        "falsified_predictors", "§5.4, §5.5",
        "Neither the number of states nor distance nor terminal invariance makes a task hard.",
        f"GRU, PPO, val_n with − without the state auxiliary, mean of five paired seeds. State count: ≥ {HARD:.2f} on "
        "parity (2 states), less on no_three_zeros (4). Distance: less on workflow_latch. Terminal invariance: less "
        f"on workflow_reconcile, but ≥ {HARD:.2f} on mod_5, with as many states.",
        (
            _helped("parity"), _not_helped("no_three_zeros"), _not_helped("workflow_latch"),
            _not_helped("workflow_reconcile"), _helped("mod_5"),
        ),
        ("suite",),
    ),
    Claim(
        "planning_gap", "§5.4",
        "On ends_with_1000 the agent has the state and does not turn it into reward: a planning gap.",
        f"GRU, PPO, mean of five seeds: recovery ≥ {RECOVERED} and val_n < {NEAR_OPTIMAL} (the paper: gap +.62, val_n "
        ".41).",
        _planning_gap("ends_with_1000"),
        ("suite",),
    ),
    Claim(
        "perception_gap", "§5.4",
        "On mined_ean reward falls visibly short, and the probe is at chance: a perception gap.",
        f"GRU, PPO, mean of five seeds: gap ≤ {NEAR_CHANCE_GAP:.2f}, recovery < {RECOVERED}, val_n ≤ .75 (the paper: "
        "+.03, reward gap .82). The paper elsewhere calls it a case of high reward without state; its figures say "
        "otherwise.",
        (
            at_most("probe_gap", "mined_ean", PPO, NEAR_CHANCE_GAP), below("recovery", "mined_ean", PPO, RECOVERED),
            at_most("val_n", "mined_ean", PPO, 1 - targets.VISIBLY_SUBOPTIMAL),
        ),
        ("suite",),
    ),
    Claim(
        "behaviour_does_not_separate", "§5.4, Appendix C, Figure 2",
        "Neither the reward gap nor the drop at 4T tells whether the state is there.",
        "GRU, PPO, means of five seeds, over the suite's diagnostic tasks: |Spearman| with the probe gap < .5, of 1 "
        "− val_n and of val_n − val_n at 4T (the paper: −.29, −.25); among tasks with 1 − val_n ≥ .25 the probe gaps "
        "span at least .40 (.62).",
        (
            Test("|Spearman(reward gap, probe gap)| < 0.5", _weakly_correlated("val_n")),
            Test("|Spearman(drop at 4T, probe gap)| < 0.5", _weakly_correlated("ood_n")),
            Test("visibly suboptimal tasks: probe gaps span ≥ 0.40", _span),
        ),
        ("suite",),
    ),
)  # fmt: skip


# --- §5.6 and §6 --------------------------------------------------------------------------------------------------


def _no_permutation(_: Runs) -> tuple[bool, str]:
    try:
        found = [task for task in targets.LOGS if zoo.make(task).is_permutation()]
    except ValueError as error:
        raise MissingRuns(f"the automata mined from event logs are not all in the zoo: {error}") from error
    return not found, f"permutation automata: {', '.join(found) or 'none'}"


def _all_learnable(runs: Runs) -> tuple[bool, str]:
    runs.require(targets.LOGS, PPO)
    reached = [(runs.mean("val_n", task, PPO), task) for task in targets.LOGS]
    return min(reached)[0] >= NEAR_OPTIMAL, worst(reached)


def _all_recovered(runs: Runs) -> tuple[bool, str]:
    runs.require(targets.LOGS, PPO)
    reached = [(recovery, task) for task in targets.LOGS
               if (recovery := runs.cell(task, PPO).mean("recovery")) is not None]  # fmt: skip
    if not reached:
        raise UndefinedFigure("recovery is undefined on all of them")
    return min(reached)[0] >= RECOVERED, f"{worst(reached)}, defined on {len(reached)} of {len(targets.LOGS)}"


def _interventions(runs: Runs) -> list[tuple[float, float, str]]:
    """Success, that of random directions, and the task, of those in which the auxiliary installed the state."""
    runs.require(INTERVENED, STATE)
    found = []
    for task in INTERVENED:
        each = runs.cell(task, STATE)
        recovery, success, random = (each.mean(name) for name in ("recovery", "intervention", "intervention_random"))
        if recovery is not None and recovery >= RECOVERED and success is not None and random is not None:
            found.append((success, random, task))
    if not found:
        raise UndefinedFigure("the auxiliary installed the state nowhere, or no state could be intervened on")
    return found


def _installed(runs: Runs) -> tuple[bool, str]:
    tasks = [task for _, _, task in _interventions(runs)]
    return len(tasks) >= 5, f"{len(tasks)}: {', '.join(tasks)}"


def _each_above_random(runs: Runs) -> tuple[bool, str]:
    margins = [(success - random, task) for success, random, task in _interventions(runs)]
    return min(margins)[0] >= 0.10, worst(margins)


def _ranges_apart(runs: Runs) -> tuple[bool, str]:
    successes, randoms, _ = zip(*_interventions(runs))
    text = f"{min(successes):.2f}–{max(successes):.2f} against {min(randoms):.2f}–{max(randoms):.2f}"
    return min(successes) > max(randoms), text


MINED = (
    Claim(
        "mined_div7_partial", "§5.6",
        "mined_div7, the hard counter in real code, shows mod_7's gap: sparse PPO has the state and the reward only "
        "in part.",
        f"GRU, PPO on mined_div7, mean of five seeds: val_n < {NEAR_OPTIMAL} (the paper: .65), and the gap ≤ .75 of "
        "the state auxiliary's (.61 on mod_7).",
        (below("val_n", "mined_div7", PPO, NEAR_OPTIMAL), _fraction("mined_div7", "≤", 0.75)),
        ("mined",),
    ),
    Claim(
        "mined_div7_rescued", "§5.6",
        "The privileged auxiliary rescues mined_div7, and so does the label-free one where observations show the state.",
        "GRU, PPO on mined_div7, mean of five seeds: val_n ≥ .90 with the state auxiliary, and with the emission "
        "auxiliary at β = 1.",
        (at_least("val_n", "mined_div7", STATE, 0.90), at_least("val_n", "mined_div7", LABEL_FREE, 0.90)),
        ("mined", "mined_emission"),
    ),
    Claim(
        "event_logs_learnable", "§5.6",
        "Automata mined from real event logs are no permutation automata, and PPO learns them, state and all.",
        "All seven of ours (not the paper's seven), GRU, PPO, mean of five seeds: none is a permutation automaton; "
        f"val_n ≥ {NEAR_OPTIMAL} on each; recovery ≥ {RECOVERED} on each on which it is defined.",
        (
            Test("none is a permutation automaton", _no_permutation),
            Test(f"least val_n ≥ {NEAR_OPTIMAL}", _all_learnable),
            Test(f"least recovery ≥ {RECOVERED}", _all_recovered),
        ),
        ("mined",),
    ),
)  # fmt: skip

USE = (
    Claim(
        "intervention", "§6",
        "Where an auxiliary installed the state it is used: edits along the probe's directions move the action as "
        "the automaton says, random ones of the same length far less often.",
        "GRU, PPO + state auxiliary, means of five seeds, on the tasks of experiment=intervention where recovery ≥ "
        f"{RECOVERED}: at least five of nine; success exceeds the random directions' by at least .10 on each; and the "
        "ranges over tasks do not overlap (the paper: .32–.68 against .00–.21, seven policies).",
        (
            Test("the state is installed on at least 5 of 9 tasks", _installed),
            Test("success − random directions ≥ 0.10 on each", _each_above_random),
            Test("the lowest success > the highest of random directions", _ranges_apart),
        ),
        ("intervention",),
    ),
)  # fmt: skip
