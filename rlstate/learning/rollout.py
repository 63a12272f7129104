"""Whole episodes: a policy plays a task, all `B` episodes at once, from the first step to the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from rlstate.control import Draws, ObservationLayout
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
    like = next(policy.parameters())
    world = World(task.layout, Tables.of(task, like), Chance.of(draws, like.device), mute)
    return play(policy, world, greedy)


@torch.no_grad()
def play(policy: Policy, world: World, greedy: bool = False) -> Rollout:
    """The rollout of a world whose episodes have not begun."""
    played = kernels.play(recurrent_cell(policy.encoder), policy, world, greedy)
    features, logits, values = _play(policy, world, greedy) if played is None else played
    log_probs = logits.log_softmax(-1).gather(-1, world.symbols[..., None])[..., 0]
    return Rollout(**world.record(), features=features, logits=logits, values=values, log_probs=log_probs)


def _play(policy: Policy, world: World, greedy: bool) -> tuple[Tensor, Tensor, Tensor]:
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
    world = World(task.layout, Tables.of(task, like), Chance.of(draws, like.device))
    for t in range(world.steps):
        world.observe(t)
        world.emit(t, world.random_symbol[t])
    return Play(**world.record())


class Tables(NamedTuple):
    """An automaton on a device, as a step reads it. Rows may be padded: no state leads to them."""

    transitions: Tensor  # int[Q · A]
    start: Tensor  # int[]
    accepting: Tensor  # float[Q]
    colouring: Tensor  # int[Q]

    @classmethod
    def of(cls, task: Task, like: Tensor) -> Tables:
        """Those of a task; `like` gives the device and the floating-point type."""
        dfa, device = task.dfa, like.device
        return cls(
            torch.from_numpy(dfa.transitions.astype("int64").ravel()).to(device),
            torch.tensor(dfa.start).to(device),
            torch.from_numpy(dfa.accepting.copy()).to(device, like.dtype),
            torch.from_numpy(task.channel.colouring.copy()).to(device),
        )


class Chance(NamedTuple):
    """`Draws` on a device; the fields are its own."""

    controllable: Tensor
    random_symbol: Tensor
    choice: Tensor
    leak: Tensor

    @classmethod
    def of(cls, draws: Draws, device: torch.device) -> Chance:
        return cls(*(torch.from_numpy(getattr(draws, name)).to(device).contiguous() for name in cls._fields))


class World:
    """The automata of a batch, on the policy's device; the numpy environment's twin (they are tested against each other).

    Every array is made from one that was given, so a world can be mapped over runs (`torch.func.vmap`).

    Args:
        mute: blank the emission channel.
    """

    def __init__(self, layout: ObservationLayout, tables: Tables, chance: Chance, mute: bool = False):
        self.steps, batch = chance.controllable.shape
        self.controllable, self.random_symbol, self.choice, leak = chance
        self.transitions, start, self._accepting, colouring = tables
        self.n_symbols, self.symbol_at, self.colour_at = layout.n_symbols, layout.symbol.start, layout.colour.start
        self._n_colours = layout.n_colours
        integers, dtype = self.random_symbol, self._accepting.dtype
        self.observations = self.choice.new_zeros(self.steps, batch, layout.width, dtype=dtype)
        self.observations[..., layout.controllable] = self.controllable.to(dtype)
        remaining = torch.arange(self.steps, 0, -1, device=integers.device, dtype=dtype)
        clock = remaining.clamp(max=layout.clock_horizon) / layout.clock_horizon
        self.observations[..., layout.clock] = clock[:, None]
        self.observations[0, :, self.symbol_at + layout.none_yet] = 1.0
        self.symbols = torch.empty_like(integers)
        self.states = integers.new_empty(self.steps + 1, batch)
        self.states[0] = start
        self.colours = torch.full_like(integers, -1)
        talks = self._n_colours > 0 and not mute
        self.leak: Tensor | None = leak if talks else None
        self.colouring: Tensor | None = colouring if talks else None

    def observe(self, t: int) -> None:
        """Complete the observation of step `t` with what is known only now: the last emission."""
        if t:
            self._show(t, self.symbol_at, self.n_symbols, self.symbols[t - 1])
        if self.leak is not None and self.colouring is not None:
            self.colours[t] = torch.where(self.leak[t], self.colouring[self.states[t]], -1)
            self._show(t, self.colour_at, self._n_colours, self.colours[t])

    def _show(self, t: int, start: int, width: int, which: Tensor) -> None:
        """Write which int[B] as one-hot columns; −1 is none of them."""
        columns = torch.arange(width, device=which.device)
        self.observations[t, :, start : start + width] = (which[:, None] == columns).to(self.observations.dtype)

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
