"""What a probe's gap must be compared with before it means that the *agent* represents the state (docs/definitions.md).

Each control is the same probe with one thing replaced: the labels (a control task, an unrelated automaton, the oracle's
quotient), the network (untrained), or the features (the input alone).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlstate.automata import DFA
from rlstate.automata.sampling import random_dfa
from rlstate.control import Stream, generator
from rlstate.control.task import Task
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import Rollout
from rlstate.probes.linear import ProbeResult, linear_probe, row_split_probe, to_numpy

MAX_SUFFIXES = 64
"""A control type is (timestep, last w symbols) with the largest w ≥ 1 whose A^w is at most this."""

_LABELS, _AUTOMATON = 0, 1  # iterations of Stream.CONTROL; the automata take 1, 2, …
_TRIES = 50


def probe_suite(
    rollout: Rollout,
    sampled_rollout: Rollout | None,
    task: Task,
    untrained_policy: Policy,
    seed: int,
    *,
    main: ProbeResult | None = None,
    last_k: int = 4,
) -> dict[str, Any]:
    """The probe of a rollout (greedy) and all its controls; JSON-able, each entry a `ProbeResult.summary()`.

    Keys: main, sampled (the same probe on `sampled_rollout`; None without one), control_task, selectivity (accuracy of the
    state less that of the control task: Hewitt & Liang, 2019), selectivity_gap (the same difference between the gaps over
    each one's own majority class, None where either is undefined), untrained, input, input_last_k, random_dfa (None with
    `random_dfa_note` where there is no suitable automaton), quotient, quotient_classes, row_split (what the paper's earlier
    split by row would have said; never the probe's figure).

    `main` may be given where it has been computed: `linear_probe(rollout.features, rollout.states[:-1], seed)`.
    """
    features, symbols = to_numpy(rollout.features), to_numpy(rollout.symbols)
    observations, states = to_numpy(rollout.observations), to_numpy(rollout.states)[:-1]
    n_symbols = task.dfa.n_symbols
    if main is None:
        main = linear_probe(features, states, seed)

    control = linear_probe(features, control_labels(symbols, states, n_symbols, seed), seed)
    figures: dict[str, Any] = {
        "main": main.summary(),
        "sampled": None,
        "control_task": control.summary(),
        "selectivity": main.accuracy - control.accuracy,
        "selectivity_gap": None if main.gap is None or control.gap is None else main.gap - control.gap,
        "untrained": linear_probe(encoded(untrained_policy, rollout.observations), states, seed).summary(),
        "input": linear_probe(observations, states, seed).summary(),
        "input_last_k": linear_probe(
            np.concatenate([last_symbols(symbols, n_symbols, last_k), observations], -1), states, seed
        ).summary(),
    }
    if sampled_rollout is not None:
        sampled = linear_probe(sampled_rollout.features, sampled_rollout.states[:-1], seed)
        figures["sampled"] = sampled.summary()

    automaton, other_states, note = unrelated_automaton(task.dfa, symbols, states, seed)
    figures["random_dfa"] = None if automaton is None else linear_probe(features, other_states, seed).summary()
    figures["random_dfa_note"] = note

    quotient = task.oracle.quotient()
    figures["quotient_classes"] = int(quotient.max()) + 1
    if figures["quotient_classes"] == task.dfa.n_states:
        figures["quotient"] = figures["main"]
    else:
        figures["quotient"] = linear_probe(features, quotient[states], seed).summary()
    figures["row_split"] = row_split_probe(features, states, seed).summary()
    return figures


def control_labels(symbols: NDArray, states: NDArray, n_symbols: int, seed: int) -> NDArray[np.int64]:
    """int[T, B]: a Hewitt–Liang (2019) control task: every *type* has a random label, the same wherever it occurs.

    Labels are drawn from the marginal distribution of `states` int[T, B]. A type is (t, the last w symbols before t): with
    words as types, as in the original, a small alphabet would have two types and a control task that anything solves.
    A probe that does well here memorizes what it is shown; `symbols` int[T, B] are those emitted at t.
    """
    steps, episodes = symbols.shape
    width = max(1, int(np.log(MAX_SUFFIXES) / np.log(n_symbols) + 1e-9)) if n_symbols > 1 else 1
    base = n_symbols + 1  # the last digit is "none yet"
    suffix = np.zeros((steps, episodes), np.int64)
    for lag in range(1, width + 1):
        suffix = suffix * base + _lagged(symbols, lag, n_symbols)
    types = np.arange(steps)[:, None] * base**width + suffix
    distinct, index = np.unique(types, return_inverse=True)
    labels, counts = np.unique(states, return_counts=True)
    drawn = generator(seed, Stream.CONTROL, _LABELS).choice(labels, size=len(distinct), p=counts / counts.sum())
    return drawn[index].reshape(steps, episodes)


def last_symbols(symbols: NDArray, n_symbols: int, k: int) -> NDArray[np.float32]:
    """float32[T, B, k (A + 1)]: one-hots of the k symbols before step t, most recent first; the last place is "none yet"."""
    lags = [_lagged(symbols, lag, n_symbols) for lag in range(1, k + 1)]
    return np.concatenate([np.eye(n_symbols + 1, dtype=np.float32)[lag] for lag in lags], axis=-1)


def _lagged(symbols: NDArray, lag: int, none_yet: int) -> NDArray[np.int64]:
    """int[T, B]: the symbol emitted `lag` steps before t."""
    lagged = np.full(symbols.shape, none_yet, np.int64)
    lagged[lag:] = symbols[: max(0, len(symbols) - lag)]
    return lagged


@torch.no_grad()
def encoded(policy: Policy, observations: torch.Tensor) -> torch.Tensor:
    """float[T, B, F]: the features a policy has on given observations, whoever played."""
    like = next(policy.parameters())
    return policy.encoder(observations.to(like))


def unrelated_automaton(
    dfa: DFA, symbols: NDArray, states: NDArray, seed: int
) -> tuple[DFA | None, NDArray[np.int64], str | None]:
    """A random DFA with the same Q and A, and the states int[T, B] it has when driven by the same symbols.

    Redrawn until it is a control: its majority class has less than .9 of the rows, and its state is not a function of the
    task's own on these rollouts (with two states a random automaton often *is* the task's). After 50 draws: None and why.
    """
    for attempt in range(_TRIES):
        key = int(generator(seed, Stream.CONTROL, _AUTOMATON + attempt).integers(2**31))
        try:
            other = random_dfa(dfa.n_states, dfa.n_symbols, key, minimal=True)
        except ValueError as error:  # no minimal automaton of this size
            return None, np.zeros_like(states), str(error)
        driven = run_batch(other, symbols)
        majority = np.bincount(driven.ravel()).max() / driven.size
        pairs = np.unique(states * other.n_states + driven)
        if majority < 0.9 and len(pairs) > len(np.unique(states)):
            return other, driven, None
    return (
        None,
        np.zeros_like(states),
        f"none of {_TRIES} random automata with {dfa.n_states} states is unrelated to the task and moves on these rollouts",
    )


def run_batch(dfa: DFA, symbols: NDArray) -> NDArray[np.int64]:
    """int[T, B]: the states q_0 … q_{T−1} of a DFA driven by symbols int[T, B]."""
    states = np.empty(symbols.shape, np.int64)
    states[0] = dfa.start
    for t in range(1, len(symbols)):
        states[t] = dfa.transitions[states[t - 1], symbols[t - 1]]
    return states
