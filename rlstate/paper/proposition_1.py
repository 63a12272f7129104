"""The policies on which Proposition 1 of the paper is checked (Appendix B): sampled ones, networks, and two made to break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from rlstate.automata import DFA, zoo
from rlstate.control.contributions import Contributions, contributions, histories
from rlstate.control.emissions import ObservationLayout
from rlstate.learning.encoders import make_encoder, recurrent_cell
from rlstate.learning.policy import Policy, build_policy
from rlstate.paper.rules import setting

PERMUTATION = ("parity", "mod_3", "mod_5")
OTHERS = ("ends_with_101", "no_three_zeros")
STEPS = 4  # of an episode: 4^4 histories
SAMPLED, NETWORKS = 20, 3  # policies of each kind
UNITS = 64  # of the protocol's GRU
SMALLER, WEIGHTS = 16, 5.0  # units of one whose weights are so many times larger: its choices hang on what it has seen

BLIND = "a distribution for each step"  # whatever was seen

Choices = list[NDArray[np.float64]]
_ZERO = 1e-12  # less is rounding


@dataclass(frozen=True)
class Family:
    """Policies of one kind on some automata: what `contributions` finds of each."""

    policies: str
    automata: tuple[str, ...]
    found: tuple[Contributions, ...]

    @property
    def steps(self) -> int:
        return sum(len(each.gradient) for each in self.found)

    def ratios(self, bound: str) -> NDArray[np.float64]:
        """gradient / (bound · score) at every step of every policy; 0 where the gradient is 0, ∞ where only the bound is."""
        gradient, score, by = (
            np.concatenate([getattr(each, name) for each in self.found]) for name in ("gradient", "score", bound)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = gradient / np.where(by > _ZERO, by * score, 0.0)
        return np.where(gradient > _ZERO, ratio, 0.0)

    def exceeded(self, bound: str) -> int:
        """At how many steps gradient ≤ bound · score does not hold."""
        return int((self.ratios(bound) > 1 + 1e-9).sum())

    def idle(self) -> NDArray[np.float64]:
        """The gradients of the steps whose symbol makes no difference after any history."""
        return np.concatenate([each.gradient[each.symbol_influence < _ZERO] for each in self.found])


@cache
def families() -> tuple[Family, ...]:
    """Every `Family`, at the protocol's `p_control`."""
    rng = np.random.default_rng(0)
    made = []
    for automata in (PERMUTATION, OTHERS):
        kinds: tuple[tuple[str, Callable[[], Iterator[tuple]]], ...] = (
            (BLIND, lambda: ((_blind(rng), None) for _ in range(SAMPLED))),
            ("a distribution for each history", lambda: ((_table(rng), None) for _ in range(SAMPLED))),
            ("GRU, untrained", lambda: (network(seed, UNITS) for seed in range(NETWORKS))),
            (
                f"GRU of {SMALLER} units, weights {WEIGHTS:g} times as large",
                lambda: (network(seed, SMALLER, WEIGHTS) for seed in range(NETWORKS)),
            ),
        )
        for name, policies in kinds:
            found = [_of(zoo.make(task), *policy) for task in automata for policy in policies()]
            made.append(Family(name, automata, tuple(found)))
    repeating = _then(lambda symbols: symbols[:, 0], 3)
    copying = _then(lambda symbols: symbols[:, -1], 2)
    return (
        *made,
        Family("uniform, but the last of 3 steps repeats the first", ("parity",), (_of(zoo.make("parity"), repeating),)),
        Family("uniform, but the last of 2 steps repeats the first", ("ends_with_1",), (_of(zoo.make("ends_with_1"), copying),)),
    )  # fmt: skip


def network_influence(task: str, steps: int, seed: int) -> NDArray[np.float64]:
    """Δ_r, r = 1..steps, of an untrained GRU on a task of two symbols, with what was seen held: float64[steps]."""
    policy = _network(seed, steps + 1, UNITS)
    choices = [_logits(policy, t, steps + 1).detach().softmax(-1).numpy() for t in range(steps + 1)]
    return _of(zoo.make(task), choices).state_influence[-2::-1]


def _of(dfa: DFA, choices: Choices, scores: Choices | None = None) -> Contributions:
    return contributions(dfa, choices, scores, setting()[1])


# --- policies, all over two symbols -------------------------------------------------------------------------------


def _blind(rng: np.random.Generator) -> Choices:
    """A distribution for each step, whatever was seen."""
    return [np.tile(_softmax(2 * rng.standard_normal(2)), (4**t, 1)) for t in range(STEPS)]


def _table(rng: np.random.Generator) -> Choices:
    """A distribution for each history."""
    return [_softmax(2 * rng.standard_normal((4**t, 2))) for t in range(STEPS)]


def _then(last: Callable[[NDArray[np.int64]], NDArray[np.int64]], steps: int) -> Choices:
    """Uniform, and at the last step the symbol that `last` says of those seen."""
    return [*(np.full((4**t, 2), 0.5) for t in range(steps - 1)), np.eye(2)[last(histories(steps - 1, 2)[1])]]


@cache
def network(seed: int, units: int, scale: float = 1.0) -> tuple[Choices, Choices]:
    """Choices of an untrained GRU, its weights times `scale`, for `STEPS` steps, and their scores to all weights."""
    policy = _network(seed, STEPS, units, scale)
    weights = [*policy.encoder.parameters(), *policy.policy_head.parameters()]
    choices, scores = [], []
    for t in range(STEPS):
        logits = _logits(policy, t, STEPS)
        # With two symbols ∇log π(a|h) = (1 − π(a|h)) ∇(z_a − z_b), and one vector tells both.
        difference = torch.stack([
            torch.cat([part.ravel() for part in torch.autograd.grad(z[1] - z[0], weights, retain_graph=True)])
            for z in logits
        ]).numpy()  # fmt: skip
        chosen = logits.detach().softmax(-1).numpy()
        choices.append(chosen)
        scores.append(np.stack([-chosen[:, 1:] * difference, chosen[:, :1] * difference], 1))
    return choices, scores


def _network(seed: int, horizon: int, units: int, scale: float = 1.0) -> Policy:
    layout = ObservationLayout(2, 0, horizon)
    policy = build_policy(lambda: make_encoder("gru", layout.width, hidden=units), 2, 0, seed, torch.float64)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.mul_(scale)
    return policy


def _logits(policy: Policy, t: int, horizon: int) -> torch.Tensor:
    """float[N, A] at step `t`, the agent's, after each of `histories(t, 2)`."""
    controlled, symbols = histories(t, 2)
    layout = ObservationLayout(2, 0, horizon)
    last = np.column_stack([np.full(len(symbols), layout.none_yet), symbols])
    flags = np.column_stack([controlled, np.ones(len(symbols), bool)])
    observations = layout.encode(last.T, flags.T, horizon - np.arange(t + 1)[:, None])
    cell = recurrent_cell(policy.encoder)
    assert cell is not None
    return policy.policy_head(
        cell(torch.from_numpy(observations).double())[0][-1]
    )  # PyTorch's own path: nothing to build


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
