"""One run: a policy that plays whole episodes and learns from them. Read `Learner.iterate` top-down; it is all there is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlstate.control import Stream, generator
from rlstate.control.task import Task
from rlstate.learning import kernels
from rlstate.learning.encoders import make_encoder, recurrent_cell
from rlstate.learning.objectives import Algorithm, Auxiliary, Batch, auxiliary_targets, objective
from rlstate.learning.policy import Policy, build_policy
from rlstate.learning.returns import (
    broadcast,
    gae,
    normalized,
    reward_to_go,
    shaping_potential,
    shaping_rewards,
    terminal_rewards,
)
from rlstate.learning.rollout import Rollout, rollout


class Diverged(RuntimeError):
    """A loss or a gradient stopped being finite. The weights are those before the offending update."""

    def __init__(self, norm: float | str, iteration: int):
        self.norm = norm
        super().__init__(
            f"the gradient's norm is {norm} at iteration {iteration}; a smaller algorithm.learning_rate usually cures it"
        )


class Learner:
    """One (task, seed) training.

    A learner shares nothing with another: its random numbers are keyed by (seed, stream, iteration), its weights are drawn
    from its seed, and its tensors have its own task's sizes. So a run's numbers cannot depend on what trains beside it.

    Args:
        encoder: name or dotted path, and parameters, as `make_encoder` takes them.
        shaping: the potential whose reward is added (`returns.SHAPING`); needs `algorithm.credit == "discounted"`.
    """

    def __init__(
        self,
        task: Task,
        seed: int,
        encoder: dict[str, Any] | None = None,
        algorithm: Algorithm | None = None,
        auxiliary: Auxiliary | None = None,
        shaping: str = "none",
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ):
        self.task, self.seed, self.shaping = task, seed, shaping
        self.algorithm = algorithm or Algorithm()
        self.auxiliary = auxiliary or Auxiliary()
        potential = None if shaping == "none" else shaping_potential(shaping, task.oracle)
        if potential is not None and self.algorithm.credit == "broadcast":
            raise ValueError(
                f"shaping={shaping} with algorithm.credit=broadcast changes nothing: the shaping rewards of an episode add up to "
                "a constant; use algorithm.credit=discounted or shaping=none"
            )
        self.encoder_config = dict(encoder or {"name": "gru", "hidden": 64})
        self.policy = new_policy(task, seed, self.encoder_config, self.auxiliary, dtype).to(device)
        self._parameters = list(self.policy.parameters())
        self.optimizer = torch.optim.Adam(
            self._parameters, lr=self.algorithm.learning_rate, eps=self.algorithm.adam_eps, fused=True
        )
        self.potential = None if potential is None else potential.to(device)
        self.iteration = 0

    def iterate(self) -> dict[str, float]:
        """One iteration: play, assign credit, update. Returns its figures; `success` is the task's own reward, unshaped.

        Raises:
            Diverged: before the weights are touched by a gradient that is not finite.
        """
        algorithm = self.algorithm
        draws = self.task.draw(self.seed, Stream.TRAIN, self.iteration, algorithm.batch)
        played = rollout(self.policy, self.task, draws)
        batch = self.credit(played)

        figures = self.update(batch, self.minibatches())
        if not math.isfinite(figures["grad_norm"]):
            raise Diverged(figures["grad_norm"], self.iteration)
        self.iteration += 1
        return {"success": float(played.accepted.mean()), **figures}

    def update(self, batch: Batch, minibatches: list[Tensor | None]) -> dict[str, float]:
        """A gradient step on each of the minibatches, by their episodes int[b] (None: the whole batch).

        Returns the last step's terms of the loss and the norm of its gradient. A step whose norm is not finite changes
        nothing and is the last.
        """
        cell = recurrent_cell(self.policy.encoder)
        weight = self.auxiliary.weight
        fused = kernels.update(cell, self.policy, self.optimizer, batch, minibatches, self.algorithm, weight)
        if fused is not None:
            return fused
        figures: dict[str, float] = {}
        for episodes in minibatches:
            loss, terms = objective(self.policy, batch.episodes(episodes), self.algorithm, self.auxiliary)
            self.optimizer.zero_grad()
            loss.backward()
            norm = float(nn.utils.clip_grad_norm_(self._parameters, self.algorithm.max_grad_norm))
            figures = {**{name: float(term) for name, term in terms.items()}, "grad_norm": norm}
            if not math.isfinite(norm):
                break
            self.optimizer.step()
        return figures

    def credit(self, played: Rollout) -> Batch:
        """The advantages and value targets of a rollout, by the credit scheme (docs/definitions.md)."""
        return credit(played, self.algorithm, self.auxiliary, self.task, self.potential)

    def minibatches(self) -> list[Tensor | None]:
        """The episodes of each update; None is the whole batch. A2C makes one update, PPO `epochs · minibatches`."""
        orders = shuffled(self.seed, self.iteration, self.algorithm)
        if orders is not None:
            orders = orders.to(next(self.policy.parameters()).device)
        return minibatches(orders, self.algorithm)

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides what comes next. Random streams are keyed by the iteration, so they need no saving."""
        return {
            "iteration": self.iteration,
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.iteration = int(state["iteration"])


@torch.no_grad()
def credit(
    played: Rollout, algorithm: Algorithm, auxiliary: Auxiliary, task: Task, potential: Tensor | None = None
) -> Batch:
    """What an update reads of a rollout. `potential` (`shaping_potential`) shapes the rewards; None: the task's own alone.

    Of `task` only the numbers of its symbols, colours and states are used.
    """
    gamma = algorithm.discount
    rewards = terminal_rewards(played.accepted, len(played.symbols))
    if potential is not None:
        rewards = rewards + shaping_rewards(potential, played.states, gamma).to(rewards.dtype)
    if algorithm.name == "a2c":
        targets = broadcast(rewards) if algorithm.credit == "broadcast" else reward_to_go(rewards, gamma)
        advantages = targets - played.values
    else:
        lam = 1.0 if algorithm.credit == "broadcast" else algorithm.gae_lambda
        advantages = gae(rewards, played.values, gamma, lam)
        targets = advantages + played.values
        if algorithm.normalize:
            advantages = normalized(advantages, played.controllable)
    return Batch(
        observations=played.observations,
        controllable=played.controllable,
        symbols=played.symbols,
        log_probs=played.log_probs,
        advantages=advantages,
        targets=targets,
        auxiliary=auxiliary_targets(auxiliary.name, played, task),
    )


def shuffled(seed: int, iteration: int, algorithm: Algorithm) -> Tensor | None:
    """int[epochs, B]: the order of the episodes in each epoch; None where every update takes the whole batch."""
    if algorithm.name == "a2c" or algorithm.minibatches == 1:
        return None
    shuffle = generator(seed, Stream.MINIBATCH, iteration)
    return torch.from_numpy(np.stack([shuffle.permutation(algorithm.batch) for _ in range(algorithm.epochs)]))


def minibatches(orders: Tensor | None, algorithm: Algorithm) -> list[Tensor | None]:
    """The episodes int[b] of each update, None for the whole batch, given `shuffled`'s orders."""
    if orders is None:
        return [None] * (1 if algorithm.name == "a2c" else algorithm.epochs)
    return [episodes for order in orders.unbind() for episodes in order.tensor_split(algorithm.minibatches)]


def new_policy(
    task: Task, seed: int, encoder: dict[str, Any], auxiliary: Auxiliary, dtype: torch.dtype = torch.float32
) -> Policy:
    """The untrained policy of (task, seed): where a learner starts, and the probes' untrained control."""
    parameters = dict(encoder)
    name = str(parameters.pop("name"))
    key = int(generator(seed, Stream.INIT).integers(2**63))
    return build_policy(
        lambda: make_encoder(name, task.layout.width, **parameters),
        task.dfa.n_symbols,
        auxiliary.outputs(task),
        key,
        dtype,
    )
