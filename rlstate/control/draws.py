"""The randomness of a batch of episodes as plain arrays.

The environment, its vector form and the torch rollout read the same `Draws`, so what happens in an episode depends on
(seed, stream, iteration) alone, and never on what a run is batched with. Nothing global is seeded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from rlstate.control import checks


class Stream(IntEnum):
    """What random numbers are for; streams of one seed never overlap. Results depend on these numbers: only append."""

    TRAIN = 0
    EVALUATION = 1
    OOD = 2
    PROBE = 3
    CAPACITY = 4
    INTERVENTION = 5
    MINIBATCH = 6
    INIT = 7
    BOOTSTRAP = 8
    CONTROL = 9
    ENVIRONMENT = 10


@dataclass(frozen=True, eq=False)
class Draws:
    """All the chance in B episodes of T steps.

    controllable: bool[T, B], whether the agent chooses the symbol of step t.
    random_symbol: int64[T, B], the symbol of step t where it does not.
    choice: float32[T, B], uniform in [0, 1): what a policy samples its action with.
    leak: bool[T, B], whether the observation at t carries the colour of ``q_t``.
    """

    controllable: NDArray[np.bool_]
    random_symbol: NDArray[np.int64]
    choice: NDArray[np.float32]
    leak: NDArray[np.bool_]

    @property
    def horizon(self) -> int:
        return self.controllable.shape[0]

    @property
    def batch(self) -> int:
        return self.controllable.shape[1]

    def episodes(self, index: Any) -> Draws:
        """The draws of some of the episodes; `index` is a slice or an array over the batch, so that B stays an axis."""
        return Draws(
            self.controllable[:, index], self.random_symbol[:, index], self.choice[:, index], self.leak[:, index]
        )


def _sequence(seed: int, *key: int) -> SeedSequence:
    # SeedSequence splits larger integers into several words, which would let two different keys coincide.
    if not 0 <= seed < 2**128:
        raise ValueError(f"seed={seed} is out of range: give an integer from 0 to 2**128 - 1.")
    if any(not 0 <= part < 2**32 for part in key):
        raise ValueError(f"stream and iteration {key[:2]} are out of range: give integers from 0 to 2**32 - 1.")
    return SeedSequence(entropy=int(seed), spawn_key=tuple(map(int, key)))


def generator(seed: int, stream: int, iteration: int = 0) -> Generator:
    """A generator of its own for every (seed, stream, iteration); raises ValueError for negative numbers."""
    return Generator(Philox(_sequence(seed, stream, iteration)))


def draw(
    seed: int,
    stream: int,
    iteration: int,
    horizon: int,
    batch: int,
    n_symbols: int,
    p_control: float,
    beta: float,
) -> Draws:
    """`Draws` of `batch` episodes of `horizon` steps, a function of its arguments alone.

    Each array has a generator of its own, filled step by step: `p_control`, `beta` and `n_symbols` change only the
    array they govern (`controllable` and `leak` by threshold), and a longer horizon only appends steps.
    Raises ValueError for a horizon, batch or number of symbols below 1 and probabilities outside [0, 1].
    """
    shape = (checks.count("horizon", horizon), checks.count("batch", batch))
    n_symbols = checks.count("n_symbols", n_symbols)
    p_control, beta = checks.probability("p_control", p_control), checks.probability("beta", beta)

    def child(array: int) -> Generator:
        return Generator(Philox(_sequence(seed, stream, iteration, array)))

    return Draws(
        controllable=child(0).random(shape) < p_control,
        random_symbol=child(1).integers(0, n_symbols, shape),
        choice=child(2).random(shape, dtype=np.float32),
        leak=child(3).random(shape) < beta if beta > 0 else np.zeros(shape, bool),
    )
