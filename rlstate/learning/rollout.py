"""Whole episodes: a policy plays a task, all `B` episodes at once, from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlstate.control import Draws
from rlstate.control.task import Task
from rlstate.learning import kernels
from rlstate.learning.encoders import recurrent_cell
from rlstate.learning.policy import Policy


@dataclass
class Rollout:
    """`B` episodes of `T` steps. States are for the experimenter: no observation carries them.

    `log_probs` are of the emitted symbol and mean something at controllable steps only, where it is the agent's choice.
    """

    observations: Tensor  # float[T, B, I]
    controllable: Tensor  # bool[T, B]
    symbols: Tensor  # int[T, B]   emitted at t: the agent's where controllable, uniform elsewhere
    states: Tensor  # int[T + 1, B]   q_0 … q_T
    colours: Tensor  # int[T, B]   what the channel leaked at t; -1 is a blank
    accepted: Tensor  # float[B]   the terminal reward
    features: Tensor  # float[T, B, F]
    logits: Tensor  # float[T, B, A]
    values: Tensor  # float[T, B]
    log_probs: Tensor  # float[T, B]


@torch.no_grad()
def rollout(policy: Policy, task: Task, draws: Draws, *, greedy: bool = False, mute: bool = False) -> Rollout:
    """Play one batch of episodes.

    Args:
        draws: every random number that is used; the horizon and the batch size are theirs.
        greedy: take the most probable symbol at controllable steps instead of sampling.
        mute: blank the emission channel (the policy's own reliance on it is then visible).
    """
    world = _World(task, draws, next(policy.parameters()), mute)
    played = kernels.play(recurrent_cell(policy.encoder), policy, world, greedy)
    features, logits, values = _play(policy, world, greedy) if played is None else played
    log_probs = logits.log_softmax(-1).gather(-1, world.symbols[..., None])[..., 0]
    return Rollout(**world.record(), features=features, logits=logits, values=values, log_probs=log_probs)


def _play(policy: Policy, world: _World, greedy: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The loop of a rollout: observe, choose where the step is the agent's, emit. Features, logits and values, [T, B, ...]."""
    features, logits, values = [], [], []
    carry = None
    for t in range(world.steps):
        world.observe(t)
        h, carry = policy.step(world.observations, t, carry)
        heads = policy.heads(h)
        choice = heads.logits.argmax(-1) if greedy else _sample(heads.logits, world.choice[t])
        world.emit(t, torch.where(world.controllable[t], choice, world.random_symbol[t]))
        features.append(h)
        logits.append(heads.logits)
        values.append(heads.values)
    return torch.stack(features), torch.stack(logits), torch.stack(values)


@dataclass
class Play:
    """Episodes in which nobody chooses: every symbol uniform. The fields are those of `Rollout`."""

    observations: Tensor
    controllable: Tensor
    symbols: Tensor
    states: Tensor
    colours: Tensor
    accepted: Tensor


@torch.no_grad()
def random_play(task: Task, draws: Draws, like: Tensor) -> Play:
    """Uniform random play, for supervised capacity; `like` gives the device and the floating-point type."""
    world = _World(task, draws, like, mute=False)
    for t in range(world.steps):
        world.observe(t)
        world.emit(t, world.random_symbol[t])
    return Play(**world.record())


class _World:
    """The automata of a batch, on the policy's device; the numpy environment's twin (they are tested against each other)."""

    def __init__(self, task: Task, draws: Draws, like: Tensor, mute: bool):
        device, dtype = like.device, like.dtype
        layout, channel = task.layout, task.channel
        self.steps, batch = draws.controllable.shape
        self.controllable = torch.from_numpy(draws.controllable).to(device).contiguous()
        self.random_symbol = torch.from_numpy(draws.random_symbol).to(device).contiguous()
        self.choice = torch.from_numpy(draws.choice).to(device).contiguous()
        self.transitions = torch.from_numpy(task.dfa.transitions.astype("int64").ravel()).to(device)
        self._accepting = torch.from_numpy(task.dfa.accepting.copy()).to(device, dtype)
        self.symbol_at = layout.symbol.start
        self.n_symbols = task.dfa.n_symbols
        self.observations = torch.zeros(self.steps, batch, layout.width, device=device, dtype=dtype)
        self.observations[..., layout.controllable] = self.controllable.to(dtype)
        remaining = torch.arange(self.steps, 0, -1, device=device, dtype=dtype)
        self.observations[..., layout.clock] = (remaining.clamp(max=task.horizon) / task.horizon)[:, None]
        self.observations[0, :, self.symbol_at + task.dfa.n_symbols] = 1.0  # "none yet"
        self.symbols = torch.empty(self.steps, batch, dtype=torch.int64, device=device)
        self.states = torch.empty(self.steps + 1, batch, dtype=torch.int64, device=device)
        self.states[0] = task.dfa.start
        self.colours = torch.full((self.steps, batch), -1, dtype=torch.int64, device=device)
        self.leak = self.colouring = None
        self.colour_at = layout.colour.start
        if channel.n_colours > 0 and not mute:
            self.leak = torch.from_numpy(draws.leak).to(device).contiguous()
            self.colouring = torch.from_numpy(channel.colouring.copy()).to(device)

    def observe(self, t: int) -> None:
        """Complete the observation of step `t` with what is known only now: the last emission."""
        if t:
            self.observations[t].scatter_(1, self.symbol_at + self.symbols[t - 1][:, None], 1.0)
        if self.leak is not None and self.colouring is not None:
            shown = self.leak[t].to(self.observations.dtype)[:, None]
            colour = self.colouring[self.states[t]]
            self.observations[t].scatter_(1, self.colour_at + colour[:, None], shown)
            self.colours[t] = torch.where(self.leak[t], colour, -1)

    def emit(self, t: int, symbols: Tensor) -> None:
        self.symbols[t] = symbols
        self.states[t + 1] = self.transitions[self.states[t] * self.n_symbols + symbols]

    def record(self) -> dict[str, Tensor]:
        return dict(
            observations=self.observations,
            controllable=self.controllable,
            symbols=self.symbols,
            states=self.states,
            colours=self.colours,
            accepted=self._accepting[self.states[-1]],
        )


def _sample(logits: Tensor, uniform: Tensor) -> Tensor:
    """Inverse-CDF sampling: one recorded uniform number an episode, so a rollout is a function of its draws."""
    cumulative = logits.softmax(-1).cumsum(-1)
    # Rounding can leave the last cumulative value below 1; the clamp gives that sliver to the last symbol.
    return (uniform[:, None] >= cumulative).sum(-1).clamp(max=logits.shape[-1] - 1)
