"""The interventional probe: does the policy *consult* the decoded state? (paper §4, §6; docs/definitions.md)

At a controlled step in state q, move the features that the policy head reads from q towards q′, where every symbol that is
optimal in q is wrong in q′ and costs something, and see whether the greedy action becomes one that the oracle calls optimal
in q′. A probe alone cannot tell a state the policy uses from a copy it ignores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rlstate.control import Oracle, Stream, generator
from rlstate.control.task import Task
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import Rollout
from rlstate.probes.linear import ProbeResult, fit_weights, to_numpy

ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Sizes of an edit, in units of (RMS norm of the centred features / mean norm of the directions)."""

MIN_ACTION_GAP = 0.01

NO_EXAMPLES = "no controlled step has a target state whose optimal symbols are all wrong in the true one"
NO_DIRECTION = "the probe has no direction: its weights are 0"
"""Why an intervention is undefined."""


@dataclass(frozen=True)
class Intervention:
    """Success rates over edits (episode, step, target state) of the test episodes; None where there are no examples.

    `success`: the greedy action after the edit is optimal in q′. `baseline`: the same without an edit (α = 0).
    `random`: edits of the same length, example by example, along random directions, each example's drawn anew.
    `shuffled`: the same along the directions of a probe trained on shuffled labels.
    The `usual_` figures count the policy's own majority greedy action in q′ at that step as success instead, over the
    `usual_examples` whose q′ it visits then.
    `by_alpha`: success on the development episodes, where α was chosen. Standard errors are clustered by episode.
    """

    success: float | None = None
    success_se: float | None = None
    baseline: float | None = None
    random: float | None = None
    random_se: float | None = None
    shuffled: float | None = None
    usual_success: float | None = None
    usual_baseline: float | None = None
    usual_random: float | None = None
    alpha: float | None = None
    by_alpha: dict[str, float] = field(default_factory=dict)
    examples: int = 0
    episodes: int = 0
    usual_examples: int = 0
    notes: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """JSON-able."""
        return {**asdict(self), "notes": list(self.notes)}


@torch.no_grad()
def interventional_probe(
    policy: Policy,
    rollout: Rollout,
    task: Task,
    probe: ProbeResult,
    seed: int,
    *,
    alphas: Sequence[float] = ALPHAS,
    random_draws: int = 5,
    max_examples: int = 20_000,
) -> Intervention:
    """Edit the features of `rollout`, the one that `probe` was fitted on, and watch the greedy action.

    A probe's direction w_k lives in standardized space: moving there by α(w_{q′} − w_q) moves the features by
    α σ ⊙ (w_{q′} − w_q), σ being the probe's scale. That displacement is what is added; the controls put random numbers
    (`random_draws` times) or a shuffled-label probe's difference in the place of w_{q′} − w_q, and are rescaled to the same
    length, example by example.

    Examples are all (controlled step in q, target q′) with q, q′ among the probe's classes, A*(r, q) ∩ A*(r, q′) = ∅ and an
    action gap of q′ above .01, at the same steps remaining r = T − t; a random `max_examples` of them if there are more.
    α maximizes success on the development episodes (the smallest of equals); all other figures are of the test episodes.

    Raises:
        ValueError: the probe was split by row, or was fitted on other episodes than the rollout's.
    """
    steps, n_episodes = rollout.symbols.shape
    if probe.split is None:
        raise ValueError("the probe was split by row; the intervention needs one of linear_probe, split by episode.")
    if sum(map(len, probe.split)) != n_episodes or len(probe.mean) != rollout.features.shape[-1]:
        raise ValueError(
            f"the probe was fitted on {sum(map(len, probe.split))} episodes and {len(probe.mean)} features, but the rollout "
            f"has {n_episodes} and {rollout.features.shape[-1]}; give the rollout that the probe was fitted on."
        )
    rng = generator(seed, Stream.INTERVENTION)
    features, states = to_numpy(rollout.features).astype(np.float64), to_numpy(rollout.states)[:-1]
    controllable = to_numpy(rollout.controllable)
    optimal, eligible = _targets(task, steps, probe.classes)
    development, test = (
        _examples(controllable, states, eligible, probe.classes, part, max_examples, rng)
        for part in (probe.split.development, probe.split.test)
    )
    if not len(development.t) or not len(test.t):
        return Intervention(notes=(NO_EXAMPLES,))

    def displacements(weights: NDArray[np.float64], examples: _Examples) -> NDArray[np.float64]:
        return (weights[examples.target] - weights[examples.source]) * probe.scale

    typical = np.linalg.norm(displacements(probe.weights, development), axis=1).mean()
    if typical == 0.0:
        return Intervention(notes=(NO_DIRECTION,))
    centred = features[:, probe.split.train] - probe.mean
    unit = float(np.sqrt((centred**2).sum(-1).mean()) / typical)

    def actions(examples: _Examples, displacement: NDArray[np.float64]) -> NDArray[np.int64]:
        edited = features[examples.t, examples.episode] + displacement
        return to_numpy(policy.heads(torch.as_tensor(edited).to(rollout.features)).logits.argmax(-1))

    def hits(examples: _Examples, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        return optimal[examples.t, examples.target, chosen]

    along = displacements(probe.weights, development)
    by_alpha = {a: float(hits(development, actions(development, a * unit * along)).mean()) for a in (0.0, *alphas)}
    alpha = max(sorted(alphas), key=by_alpha.__getitem__)

    edit = alpha * unit * displacements(probe.weights, test)
    length = np.linalg.norm(edit, axis=1)

    def control(other: NDArray[np.float64]) -> NDArray[np.int64]:
        """The actions after displacements float[n, F] in other directions, each as long as the probe's own."""
        norm = np.linalg.norm(other, axis=1)
        return actions(test, other * np.divide(length, norm, out=np.zeros_like(norm), where=norm > 0.0)[:, None])

    # In standardized space, as the probe's are; a feature that is constant has no part in the probe's directions either.
    spread = probe.scale * (probe.weights != 0.0).any(0)
    randomly = [control(rng.standard_normal(edit.shape) * spread) for _ in range(random_draws)]
    permuted = rng.permutation(states.ravel()).reshape(states.shape)
    shuffled = control(displacements(fit_weights(features, permuted, probe), test))
    edited = actions(test, edit)

    greedy = to_numpy(policy.heads(rollout.features).logits.argmax(-1))
    unedited = greedy[test.t, test.episode]
    usual = _usual_actions(greedy, controllable, states, probe.classes, optimal.shape[-1])[test.t, test.target]
    visited = usual >= 0

    def usually(chosen: NDArray[np.int64]) -> float | None:
        return float((chosen == usual)[visited].mean()) if visited.any() else None

    random_hits = np.mean([hits(test, chosen) for chosen in randomly], axis=0) if randomly else None
    usual_hits = [rate for rate in map(usually, randomly) if rate is not None]
    return Intervention(
        success=float(hits(test, edited).mean()),
        success_se=_clustered_se(hits(test, edited), test.episode),
        baseline=float(hits(test, unedited).mean()),
        random=None if random_hits is None else float(random_hits.mean()),
        random_se=None if random_hits is None else _clustered_se(random_hits, test.episode),
        shuffled=float(hits(test, shuffled).mean()),
        usual_success=usually(edited),
        usual_baseline=usually(unedited),
        usual_random=float(np.mean(usual_hits)) if usual_hits else None,
        alpha=float(alpha),
        by_alpha={f"{a:g}": rate for a, rate in by_alpha.items()},
        examples=len(test.t),
        episodes=len(np.unique(test.episode)),
        usual_examples=int(visited.sum()),
    )


class _Examples(NamedTuple):
    """Edits, int[n] each: the step and episode of one, and the classes (indices into the probe's) it moves between."""

    t: NDArray[np.int64]
    episode: NDArray[np.int64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]


def _targets(task: Task, steps: int, classes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[T, K, A], the optimal symbols of each class at each step, and bool[T, K, K], whether (q, q′) makes an example."""
    oracle = task.oracle if steps == task.horizon else Oracle(task.dfa, steps, task.p_control)
    remaining = np.arange(steps, 0, -1)[:, None]
    optimal = oracle.optimal_actions(remaining, classes[None])
    counts = optimal.astype(np.float64)
    disjoint = counts @ counts.transpose(0, 2, 1) == 0.0
    matters = oracle.action_gap(remaining, classes[None]) > MIN_ACTION_GAP
    return optimal, disjoint & matters[:, None, :]


def _examples(
    controllable: NDArray[np.bool_],
    states: NDArray[np.int64],
    eligible: NDArray[np.bool_],
    classes: NDArray[np.int64],
    episodes: NDArray[np.int64],
    most: int,
    rng: np.random.Generator,
) -> _Examples:
    usable = controllable[:, episodes] & np.isin(states[:, episodes], classes)
    t, column = np.nonzero(usable)
    episode = episodes[column]
    source = np.searchsorted(classes, states[t, episode])
    row, target = np.nonzero(eligible[t, source])
    if len(row) > most:
        kept = np.sort(rng.choice(len(row), most, replace=False))
        row, target = row[kept], target[kept]
    return _Examples(t[row], episode[row], source[row], target)


def _usual_actions(
    greedy: NDArray[np.int64],
    controllable: NDArray[np.bool_],
    states: NDArray[np.int64],
    classes: NDArray[np.int64],
    n_symbols: int,
) -> NDArray[np.int64]:
    """int[T, K]: the commonest greedy action at controlled steps in each class, by step; −1 where there are none."""
    t, episode = np.nonzero(controllable & np.isin(states, classes))
    counts = np.zeros((len(states), len(classes), n_symbols), np.int64)
    np.add.at(counts, (t, np.searchsorted(classes, states[t, episode]), greedy[t, episode]), 1)
    return np.where(counts.any(-1), counts.argmax(-1), -1)


def _clustered_se(hits: NDArray, episode: NDArray[np.int64]) -> float | None:
    """Standard error of the mean of hits [n], episodes being independent."""
    clusters, index = np.unique(episode, return_inverse=True)
    if len(clusters) < 2:
        return None
    residual = np.bincount(index, hits - hits.mean())
    return float(np.sqrt(len(clusters) / (len(clusters) - 1) * (residual**2).sum()) / len(hits))
