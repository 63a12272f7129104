"""From a trained policy to its figures: how well it plays, whether its state can be read, whether it is used, the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rlstate.control import Stream, is_diagnostic, score
from rlstate.learning.evaluation import evaluate
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import Rollout, rollout
from rlstate.learning.trainer import new_policy
from rlstate.plan import RunPlan
from rlstate.probes.causal import interventional_probe
from rlstate.probes.controls import probe_suite
from rlstate.probes.linear import linear_probe, to_numpy
from rlstate.probes.verdict import Thresholds, learned_nothing, seed_averaged, verdict


def measure(policy: Policy, plan: RunPlan, capacity: Mapping[str, Any] | None) -> dict[str, Any]:
    """Everything `result.json` says of a trained policy. `capacity` is the encoder's, by `supervised_capacity`."""
    task, seed, config = plan.task, plan.seed, plan.config
    episodes = config["evaluation"]["episodes"]
    greedy = evaluate(policy, task, seed, episodes=episodes)
    ood = evaluate(policy, task, seed, episodes=episodes, ood=True)
    sampled = evaluate(policy, task, seed, episodes=episodes, greedy=False)
    muted = evaluate(policy, task, seed, episodes=episodes, mute=True) if task.channel.n_colours else None

    played = probe_rollout(policy, plan)
    probe = linear_probe(played.features, played.states[:-1], seed)
    untrained = new_policy(task, seed, plan.encoder, plan.auxiliary).to(plan.device)
    suite = probe_suite(played, probe_rollout(policy, plan, greedy=False), task, untrained, seed, main=probe)
    del suite["main"]  # it stands under `probe`
    if muted is not None:  # what is left of the state where nothing leaks
        silent = probe_rollout(policy, plan, mute=True)
        suite["muted"] = linear_probe(silent.features, silent.states[:-1], seed).summary()
    intervention = interventional_probe(policy, played, task, probe, seed) if config["probe"]["intervention"] else None

    reached = None if capacity is None else min(capacity["accuracy"], capacity["ood_accuracy"])
    saturated = None if reached is None else reached >= plan.thresholds.capacity
    idle = learned_nothing(greedy.gain, greedy.gain_se)
    diagnostic = is_diagnostic(task.dfa, task.horizon, task.p_control)
    untrained_recovery = suite["untrained"]["recovery"]
    decision = verdict(probe.recovery, greedy.val_n, idle, saturated, plan.thresholds, diagnostic, untrained_recovery)
    notes = [*decision.notes, *probe.notes]
    if not diagnostic:
        notes.append("not diagnostic: random play is (nearly) optimal at T or at 4T, so success says nothing here")
    if muted is not None:
        val_n = "undefined" if muted.val_n is None else f"{muted.val_n:.3f}"
        notes.append(
            f"the emission channel gives the state away with probability {task.channel.beta:g}; muted, val_n is {val_n}"
        )
    return {
        "val_n": greedy.val_n,
        "val_n_se": greedy.val_n_se,
        "gain": greedy.gain,
        "gain_se": greedy.gain_se,
        "ood_n": ood.val_n,
        "ood_n_se": ood.val_n_se,
        "probe_gap": probe.gap,
        "probe_gap_se": probe.gap_se,
        "probe_balanced": probe.balanced,
        "recovery": probe.recovery,
        "recovery_balanced": probe.recovery_balanced,
        "untrained_recovery": untrained_recovery,
        "selectivity": suite["selectivity"],
        "capacity_accuracy": reached,
        "capacity_saturated": saturated,
        "intervention_success": None if intervention is None else intervention.success,
        "intervention_control": None if intervention is None else intervention.random,
        "verdict": str(decision),
        "notes": notes,
        "diagnostic": diagnostic,
        "thresholds": asdict(plan.thresholds),
        "evaluation": {
            "greedy": greedy.summary(),
            "ood": ood.summary(),
            "sampled": sampled.summary(),
            "muted": None if muted is None else muted.summary(),
        },
        "oracle": oracle_values(plan),
        "probe": probe.summary(),
        "controls": suite,
        "intervention": None if intervention is None else intervention.summary(),
        "capacity": None if capacity is None else dict(capacity),
    }


def judged(result: Mapping[str, Any], thresholds: Thresholds) -> dict[str, Any]:
    """A result with the verdict that `thresholds` and today's rule give its figures: both can change after a run.

    A result of a version that had no `recovery` keeps the verdict that it has.
    """
    reached = result.get("capacity_accuracy")
    figures = {
        **result,
        "untrained_recovery": result.get("controls", {}).get("untrained", {}).get("recovery"),
        "capacity_saturated": None if reached is None else reached >= thresholds.capacity,
    }
    if "recovery" not in result:
        return {**figures, "thresholds": asdict(thresholds)}
    return {**figures, "verdict": str(seed_averaged([figures], thresholds)), "thresholds": asdict(thresholds)}


def probe_rollout(policy: Policy, plan: RunPlan, greedy: bool = True, mute: bool = False) -> Rollout:
    """The episodes that are probed, on a stream of their own."""
    draws = plan.task.draw(plan.seed, Stream.PROBE, 1 if greedy else 2, plan.config["probe"]["episodes"])
    return rollout(policy, plan.task, draws, greedy=greedy, mute=mute)


def oracle_values(plan: RunPlan) -> dict[str, float]:
    task = plan.task
    return {
        "optimal": task.oracle.optimal,
        "random": task.oracle.random,
        "full_control": task.oracle.full_control,
        "leverage": task.oracle.leverage,
        "score": score(task.dfa, task.horizon, task.p_control),
        "ood_optimal": task.ood_oracle.optimal,
        "ood_random": task.ood_oracle.random,
    }


def rollout_arrays(played: Rollout) -> dict[str, np.ndarray]:
    """What `export=rollouts` writes: arrays [T, B, ...], `states` [T + 1, B], −1 where an action or a colour is not one."""
    controllable, symbols = to_numpy(played.controllable), to_numpy(played.symbols)
    rewards = np.zeros(symbols.shape, np.float32)
    rewards[-1] = to_numpy(played.accepted)
    return {
        "symbols": symbols,
        "states": to_numpy(played.states),
        "controllable": controllable,
        "actions": np.where(controllable, symbols, -1),
        "rewards": rewards,
        "features": to_numpy(played.features),
        "observations": to_numpy(played.observations),
        "colours": to_numpy(played.colours),
    }
