"""A task: an automaton with a control setting."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from rlstate.automata import DFA
from rlstate.control.draws import Draws, Stream, draw
from rlstate.control.emissions import EmissionChannel, ObservationLayout
from rlstate.control.env import check_setting
from rlstate.control.oracle import Oracle

PAPER_HORIZON = 16
"""T of the paper's protocol (`conf/experiment/protocol.yaml`): an automaton is looked at for it if no other is named."""


@dataclass(frozen=True)
class Task:
    """A hidden DFA, the horizon it is played for, how often the agent chooses, and what leaks of the state.

    Raises:
        ValueError: a horizon below 1, `p_control` outside [0, 1], or an automaton none of whose accepting states can
            be reached (its optimal value is 0, so a normalized success has no meaning).
    """

    name: str
    dfa: DFA
    horizon: int = 12
    p_control: float = 0.5
    emission: EmissionChannel | None = field(default=None)  # None: nothing leaks (beta = 0)

    def __post_init__(self) -> None:
        check_setting(self.dfa, self.horizon, self.p_control)
        if self.emission is None:
            object.__setattr__(self, "emission", EmissionChannel.identity(self.dfa, 0.0))

    @property
    def channel(self) -> EmissionChannel:
        assert self.emission is not None
        return self.emission

    @cached_property
    def layout(self) -> ObservationLayout:
        """The clock is scaled by the training horizon also when the task is played longer (docs/definitions.md)."""
        return ObservationLayout(self.dfa.n_symbols, self.channel.n_colours, self.horizon)

    @cached_property
    def oracle(self) -> Oracle:
        return Oracle(self.dfa, self.horizon, self.p_control)

    @cached_property
    def ood_oracle(self) -> Oracle:
        """The oracle at 4T, where generalization to longer episodes is measured."""
        return Oracle(self.dfa, 4 * self.horizon, self.p_control)

    def draw(self, seed: int, stream: Stream, iteration: int, batch: int, horizon: int | None = None) -> Draws:
        """The randomness of `batch` episodes, a function of (seed, stream, iteration) and nothing else."""
        steps = self.horizon if horizon is None else horizon
        return draw(seed, stream, iteration, steps, batch, self.dfa.n_symbols, self.p_control, self.channel.beta)
