"""What the agent is shown: the emission channel and the layout of an observation.

`ObservationLayout` is the one place that knows what an observation looks like; the environments and the torch rollout
both index through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlstate.control import checks

if TYPE_CHECKING:
    from rlstate.automata import DFA

BLANK = -1
"""The colour of an observation in which the channel is silent."""


@dataclass(frozen=True, eq=False)
class EmissionChannel:
    """With probability `beta` the observation at t carries the colour of ``q_t``, otherwise a blank (paper §5.3).

    colouring: int[Q], the colour of each state, from 0; states may share one.
    beta: probability of a leak. At 0 there is no channel: `n_colours` is 0.
    Raises ValueError for a colouring that is empty, not whole or outside 0..Q-1, or a `beta` outside [0, 1].
    """

    colouring: NDArray[np.int64]
    beta: float = 0.0

    def __post_init__(self) -> None:
        given = np.asarray(self.colouring)
        if given.ndim != 1 or given.size == 0 or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(
                f"A colouring is one whole number for each state, but an array of shape {given.shape} and type "
                f'{given.dtype} was given; pass a list of integers, "identity" or "acceptance".'
            )
        if given.min() < 0 or given.max() >= given.size:
            raise ValueError(
                f"The colours run from {given.min()} to {given.max()}, but {given.size} states take colours from 0 to "
                f"{given.size - 1}; renumber the colours from 0."
            )
        colouring = given.astype(np.int64)
        colouring.setflags(write=False)
        object.__setattr__(self, "colouring", colouring)
        object.__setattr__(self, "beta", checks.probability("beta", self.beta))

    @classmethod
    def identity(cls, dfa: DFA, beta: float) -> EmissionChannel:
        """Every state has a colour of its own: a leak tells the state."""
        return cls(np.arange(dfa.n_states), beta)

    @classmethod
    def of(cls, dfa: DFA, beta: float, colouring: str | Sequence[int] | NDArray = "identity") -> EmissionChannel:
        """The channel that a configuration names: "identity", "acceptance" (0 reject, 1 accept) or a list of Q colours.

        Raises ValueError for an unknown name or a list of the wrong length.
        """
        n_states = dfa.n_states
        if isinstance(colouring, str):
            if colouring == "identity":
                return cls.identity(dfa, beta)
            if colouring == "acceptance":
                # One state cannot carry colour 1, but acceptance says nothing there anyway.
                return cls(np.asarray(dfa.accepting, np.int64) if n_states > 1 else np.zeros(1, np.int64), beta)
            raise ValueError(
                f'There is no colouring {colouring!r}: use "identity", "acceptance" or a list of {n_states} colours.'
            )
        channel = cls(np.asarray(colouring), beta)
        if channel.colouring.size != n_states:
            raise ValueError(
                f"The colouring has {channel.colouring.size} colours but the automaton has {n_states} states; give one "
                "colour for each state."
            )
        return channel

    @property
    def n_colours(self) -> int:
        """The width of the channel in the observation: 0 where `beta` is 0."""
        return int(self.colouring.max()) + 1 if self.beta > 0 else 0

    def colour(self, states: ArrayLike, leak: ArrayLike) -> NDArray[np.int64]:
        """int[...]: the colours of `states` (int[...]) where `leak` (bool[...]) holds, `BLANK` elsewhere."""
        return np.where(leak, self.colouring[np.asarray(states)], BLANK)


@dataclass(frozen=True)
class ObservationLayout:
    """Where each part of an observation lies: ``[symbol one-hot | controllable | clock | colour one-hot]``.

    The symbol's one-hot has a last place for "none yet" (t = 0). The clock is min(steps remaining, clock_horizon) /
    clock_horizon, so that at 4T the last T steps look as in training. A blank colour is all zeros.
    Raises ValueError for no symbols, a negative number of colours or a clock horizon below 1.
    """

    n_symbols: int
    n_colours: int
    clock_horizon: int

    def __post_init__(self) -> None:
        checks.count("n_symbols", self.n_symbols)
        checks.count("clock_horizon", self.clock_horizon)
        if self.n_colours < 0:
            raise ValueError(f"n_colours={self.n_colours} is negative: give 0 for no emission channel, or more.")

    @property
    def none_yet(self) -> int:
        """The index that stands for the symbol before the first one."""
        return self.n_symbols

    @property
    def symbol(self) -> slice:
        return slice(0, self.n_symbols + 1)

    @property
    def controllable(self) -> int:
        return self.n_symbols + 1

    @property
    def clock(self) -> int:
        return self.n_symbols + 2

    @property
    def colour(self) -> slice:
        return slice(self.n_symbols + 3, self.width)

    @property
    def width(self) -> int:
        return self.n_symbols + 3 + self.n_colours

    def clock_value(self, remaining: ArrayLike) -> NDArray[np.float32]:
        """float32[...]: what the clock shows with `remaining` (int[...]) steps to go."""
        return np.minimum(remaining, self.clock_horizon).astype(np.float32) / np.float32(self.clock_horizon)

    def encode(
        self, last_symbol: ArrayLike, controllable: ArrayLike, remaining: ArrayLike, colour: ArrayLike = BLANK
    ) -> NDArray[np.float32]:
        """float32[..., width]: observations from integers and flags, whose shapes broadcast against each other.

        last_symbol: int, `none_yet` at t = 0; controllable: bool; remaining: int; colour: int, `BLANK` for none.
        """
        shape = np.broadcast_shapes(*map(np.shape, (last_symbol, controllable, remaining, colour)))
        observation = np.zeros((*shape, self.width), np.float32)
        observation[..., self.symbol] = np.asarray(last_symbol)[..., None] == np.arange(self.n_symbols + 1)
        observation[..., self.controllable] = controllable
        observation[..., self.clock] = self.clock_value(remaining)
        if self.n_colours:
            observation[..., self.colour] = np.asarray(colour)[..., None] == np.arange(self.n_colours)
        return observation
