"""What is minimized: A2C, PPO, and the auxiliaries. One function each, on plain tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from rlstate.control.task import Task
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import Rollout


def finite(key: str, value: Any) -> None:
    """Raises ValueError, naming the key, for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{key} is {value!r}; it must be a finite number")


@dataclass(frozen=True)
class Algorithm:
    """How a policy is trained. `conf/algorithm/*.yaml` holds the same fields; docs/definitions.md has the two credit schemes.

    `credit="discounted"`: reward-to-go under A2C, GAE(λ) under PPO. `credit="broadcast"`: the episode's return at every
    step, γ = 1; under PPO the advantage is G₀ − V (γ = λ = 1).
    """

    name: str = "ppo"  # ppo | a2c
    credit: str = "discounted"  # discounted | broadcast
    batch: int = 64  # episodes an iteration
    learning_rate: float = 3e-3  # Adam
    gamma: float = 0.99
    entropy: float = 0.01  # weight of the entropy bonus, over controllable steps
    value: float = 0.5  # weight of the value loss (mean squared error, over all steps)
    max_grad_norm: float = 0.5  # the gradients of all heads and the encoder are clipped together
    adam_eps: float = 1e-8
    # PPO only
    gae_lambda: float = 0.95
    clip: float = 0.2
    epochs: int = 4
    minibatches: int = 1  # an epoch, split by episode
    normalize: bool = True  # advantages, over the controllable steps of the batch

    def __post_init__(self) -> None:
        if self.name not in ("ppo", "a2c"):
            raise ValueError(f"unknown algorithm {self.name!r}; known are ppo and a2c")
        if self.credit not in ("discounted", "broadcast"):
            raise ValueError(f"algorithm.credit is {self.credit!r}; it must be discounted or broadcast")
        for name in ("batch", "epochs", "minibatches"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"algorithm.{name} is {value!r}; it must be a whole number of at least 1")
        for name in ("learning_rate", "gamma", "entropy", "value", "max_grad_norm", "adam_eps", "gae_lambda", "clip"):
            finite(f"algorithm.{name}", getattr(self, name))
        if self.minibatches > self.batch:
            raise ValueError(
                f"algorithm.minibatches is {self.minibatches}, more than the {self.batch} episodes of a batch; "
                "minibatches are split by episode"
            )
        for name in ("gamma", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"algorithm.{name} is {getattr(self, name)}; it must lie in [0, 1]")
        for name in ("learning_rate", "max_grad_norm", "adam_eps", "clip"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"algorithm.{name} is {getattr(self, name)}; it must be above 0")

    @property
    def discount(self) -> float:
        """γ as the credit scheme uses it."""
        return 1.0 if self.credit == "broadcast" else self.gamma


@dataclass(frozen=True)
class Auxiliary:
    """An extra loss on the features. `state` is privileged (predict q_t), `emission` label-free (predict what is shown next)."""

    name: str = "none"  # none | state | emission
    weight: float = 1.0

    def __post_init__(self) -> None:
        finite("auxiliary.weight", self.weight)
        if self.name not in ("none", "state", "emission"):
            raise ValueError(f"unknown auxiliary {self.name!r}; known are none, state and emission")
        if self.weight < 0.0:
            raise ValueError(f"auxiliary.weight is {self.weight}; it must not be negative")

    def outputs(self, task: Task) -> int:
        """The width of the auxiliary's linear head."""
        if self.name == "state":
            return task.dfa.n_states
        if self.name == "emission":
            colours = task.channel.n_colours
            return task.dfa.n_symbols + (colours + 1 if colours else 0)  # + 1: the blank
        return 0


class Target(NamedTuple):
    """What some columns of the auxiliary's head are to predict."""

    columns: range
    labels: Tensor  # int[T, B]
    weights: Tensor  # float[T, B]; the loss is the mean over steps, weighted so


@dataclass
class Batch:
    """What an update reads of a rollout, with the credit each step was given. All [T, B, ...]."""

    observations: Tensor
    controllable: Tensor
    symbols: Tensor
    log_probs: Tensor  # of the policy that played
    advantages: Tensor
    targets: Tensor  # what the value head is trained towards
    auxiliary: list[Target]

    def episodes(self, index: Tensor | None) -> Batch:
        """The minibatch of the episodes in `index` int[b] (None: all): whole episodes, so h₀ = 0 is always right."""
        if index is None:
            return self
        fields = {name: tensor[:, index] for name, tensor in vars(self).items() if name != "auxiliary"}
        auxiliary = [Target(each.columns, each.labels[:, index], each.weights[:, index]) for each in self.auxiliary]
        return Batch(**fields, auxiliary=auxiliary)


def objective(
    policy: Policy, batch: Batch, algorithm: Algorithm, auxiliary: Auxiliary
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of one minibatch and its terms (detached)."""
    features = policy.encoder(batch.observations)
    loss, terms = policy_value_loss(*policy.heads(features), batch, algorithm)
    if policy.auxiliary_head is not None:
        terms["auxiliary_loss"] = auxiliary_loss(policy.auxiliary_head(features), batch.auxiliary)
        loss = loss + auxiliary.weight * terms["auxiliary_loss"]
    return loss, {name: term.detach() for name, term in terms.items()}


def policy_value_loss(
    logits: Tensor, values: Tensor, batch: Batch, algorithm: Algorithm
) -> tuple[Tensor, dict[str, Tensor]]:
    """Policy loss, value loss and entropy bonus of logits float[T, b, A] and values float[T, b]."""
    weights = batch.controllable.to(values.dtype)
    weights = weights / weights.sum().clamp(min=1.0)  # Σ weights · x is the mean over controllable steps

    log_softmax = logits.log_softmax(-1)
    log_probs = log_softmax.gather(-1, batch.symbols[..., None])[..., 0]
    if algorithm.name == "ppo":
        surrogate = ppo_surrogate(log_probs - batch.log_probs, batch.advantages, algorithm.clip)
    else:
        surrogate = log_probs * batch.advantages
    policy_loss = -(weights * surrogate).sum()
    value_loss = (values - batch.targets).square().mean()
    entropy = -(weights * (log_softmax.exp() * log_softmax).sum(-1)).sum()
    loss = policy_loss + algorithm.value * value_loss - algorithm.entropy * entropy
    return loss, {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}


def ppo_surrogate(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """min(ρA, clip(ρ, 1 ± ε)A) (Schulman et al., 2017, eq. 7): no push once the ratio has moved far enough A's way."""
    ratio = log_ratio.exp()
    return torch.minimum(ratio * advantages, ratio.clamp(1.0 - clip, 1.0 + clip) * advantages)


def auxiliary_targets(name: str, played: Rollout, task: Task) -> list[Target]:
    """What the auxiliary's head is to predict of a rollout (paper §5.3).

    `state`: q_t from the features at t. `emission`: the symbol and the colour shown at t + 1; a controlled step's symbol is
    the agent's own action and is left out; a blank is one of the things that can be shown.
    """
    if name == "none":
        return []
    everywhere = torch.ones_like(played.values)
    if name == "state":
        return [Target(range(task.dfa.n_states), played.states[:-1], everywhere)]
    before_last = everywhere.clone()
    before_last[-1] = 0.0  # nothing is shown after it
    n_symbols, n_colours = task.dfa.n_symbols, task.channel.n_colours
    targets = [Target(range(n_symbols), played.symbols, before_last * ~played.controllable)]
    if n_colours:
        shown = torch.cat([played.colours[1:], played.colours[:1]])
        shown = torch.where(shown < 0, n_colours, shown)
        targets.append(Target(range(n_symbols, n_symbols + n_colours + 1), shown, before_last))
    return targets


def auxiliary_loss(predicted: Tensor, targets: list[Target]) -> Tensor:
    """The sum over targets of the cross-entropy of their columns of predicted float[T, B, O]."""
    loss = predicted.new_zeros(())
    for columns, labels, weights in targets:
        logits = predicted[..., columns.start : columns.stop]
        per_step = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        loss = loss + (per_step * weights.flatten()).sum() / weights.sum().clamp(min=1.0)
    return loss
