"""The hidden automaton under partial control, as a Gymnasium environment and its vector form (paper §3).

At step t the agent sees the last emitted symbol, whether it controls this step, the clock, and whatever the emission
channel leaks; it names a symbol, which counts only where it is in control; the only reward is 1 at the end of an
episode that ends in an accepting state. The end is a termination: the horizon is part of the task, and the clock shows
it. An observation is built by `ObservationLayout.encode` from (symbol, flag, steps remaining, colour): the state
reaches it through the colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.random import Generator
from numpy.typing import NDArray

from rlstate.automata import DFA, zoo
from rlstate.control import checks
from rlstate.control.draws import Draws, Stream, draw
from rlstate.control.emissions import BLANK, EmissionChannel, ObservationLayout


class _PartialControl:
    """What the two environments share: the validated task, its spaces, and where an episode's chance comes from."""

    def _configure(
        self,
        task: str | DFA,
        horizon: int,
        p_control: float,
        beta: float,
        colouring: str | Sequence[int] | NDArray,
        clock_horizon: int | None,
        reveal_state: bool,
    ) -> None:
        self.dfa = _automaton(task)
        check_setting(self.dfa, horizon, p_control)
        self.horizon, self.p_control = int(horizon), float(p_control)
        n_symbols = self.dfa.n_symbols
        self.channel = EmissionChannel.of(self.dfa, beta, colouring)
        clock_horizon = self.horizon if clock_horizon is None else checks.count("clock_horizon", clock_horizon)
        self.layout = ObservationLayout(n_symbols, self.channel.n_colours, clock_horizon)
        self.reveal_state = bool(reveal_state)
        self._observation_space = spaces.Box(0.0, 1.0, (self.layout.width,), np.float32)
        self._action_space = spaces.Discrete(n_symbols)

    def _episode_draws(self, rng: Generator, batch: int, options: dict[str, Any] | None = None) -> Draws:
        """The draws in ``options["draws"]``, checked, or fresh ones from the environment's own generator."""
        draws = None if options is None else options.get("draws")
        n_symbols = self.layout.n_symbols
        if draws is None:
            seed = int(rng.integers(2**63))
            return draw(seed, Stream.ENVIRONMENT, 0, self.horizon, batch, n_symbols, self.p_control, self.channel.beta)
        if not isinstance(draws, Draws):
            raise ValueError(f"options['draws'] is a {type(draws).__name__}: pass what rlstate.control.draw returns.")
        if (draws.horizon, draws.batch) != (self.horizon, batch):
            raise ValueError(
                f"options['draws'] holds {draws.batch} episodes of {draws.horizon} steps, but this environment runs "
                f"{batch} of {self.horizon}; draw with the same horizon and batch."
            )
        if draws.random_symbol.min() < 0 or draws.random_symbol.max() >= n_symbols:
            raise ValueError(
                f"options['draws'] holds symbols up to {draws.random_symbol.max()}, but this automaton has "
                f"{n_symbols}; draw with its n_symbols."
            )
        return draws


def check_setting(dfa: DFA, horizon: int, p_control: float) -> None:
    """Raise ValueError for a horizon below 1, a `p_control` outside [0, 1], or where no word of length `horizon` is
    accepted: the optimal value is then 0, and `val_n` has no meaning.
    """
    checks.probability("p_control", p_control)
    checks.accepted_horizon(dfa, checks.count("horizon", horizon))


def _automaton(task: str | DFA) -> DFA:
    if isinstance(task, str):
        return zoo.make(task)  # says which names it knows
    if isinstance(task, DFA):
        return task
    raise ValueError(f"task is a {type(task).__name__}: give the name of a task of the zoo, such as 'mod_5', or a DFA.")


class PartialControlDFAEnv(_PartialControl, gymnasium.Env):
    """One episode at a time; ``gymnasium.make("rlstate/PartialControlDFA-v0", task="mod_5", horizon=12)``.

    task: a name of the zoo or a `DFA`. horizon: T, the length of every episode. p_control: the probability that a step
    is the agent's. beta, colouring: the emission channel (`EmissionChannel.of`). clock_horizon: what the clock counts
    from (default `horizon`; give the training horizon when running at 4T). reveal_state: also report
    ``info["state"]``, the state *after* the step (at a reset: the start state), for the experimenter.

    Observations are float32[`layout.width`], actions symbol indices. ``info["symbol"]`` is the symbol that was emitted.
    The last observation of an episode has the clock at 0, is not controllable and carries no colour.
    ``reset(options={"draws": draws})`` plays an episode of given chance: `Draws` with batch 1.
    Raises ValueError for a task, horizon, probability or colouring that makes no sense, and for an action that is not
    a symbol; gymnasium.error.ResetNeeded for a step after the end.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium reads it from the class

    def __init__(
        self,
        task: str | DFA = "mod_5",
        horizon: int = 12,
        p_control: float = 0.5,
        beta: float = 0.0,
        colouring: str | Sequence[int] | NDArray = "identity",
        clock_horizon: int | None = None,
        reveal_state: bool = False,
    ) -> None:
        self._configure(task, horizon, p_control, beta, colouring, clock_horizon, reveal_state)
        self.observation_space = self._observation_space
        self.action_space = self._action_space
        self._t = self.horizon  # nothing to step through before the first reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode; see the class for ``options["draws"]``."""
        super().reset(seed=seed)
        draws = self._episode_draws(self.np_random, 1, options)
        # Python scalars: a step of one episode is faster without numpy.
        self._controllable: list[bool] = draws.controllable[:, 0].tolist()
        self._random_symbol: list[int] = draws.random_symbol[:, 0].tolist()
        self._leak: list[bool] = draws.leak[:, 0].tolist()
        self._t = 0
        self._state = int(self.dfa.start)
        self._symbol = self.layout.none_yet
        return self._observe(), {"state": self._state} if self.reveal_state else {}

    def step(self, action: int | np.integer) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Emit one symbol: `action` where the step is controllable, the environment's own otherwise."""
        if self._t >= self.horizon:
            raise ResetNeeded(f"The episode of {self.horizon} steps is over (or has not begun): call reset().")
        if not self.action_space.contains(action):
            raise ValueError(
                f"Action {action!r} is not a symbol: give an integer from 0 to {self.layout.n_symbols - 1}."
            )
        self._symbol = int(action) if self._controllable[self._t] else self._random_symbol[self._t]
        self._state = int(self.dfa.transitions[self._state, self._symbol])
        self._t += 1
        terminated = self._t == self.horizon
        reward = float(terminated and bool(self.dfa.accepting[self._state]))
        info = {"symbol": self._symbol}
        if self.reveal_state:
            info["state"] = self._state
        return self._observe(), reward, terminated, False, info

    def get_state(self) -> int:
        """The true state ``q_t``, for the experimenter: it never reaches an observation."""
        if not hasattr(self, "_state"):
            raise ResetNeeded("There is no episode yet: call reset().")
        return self._state

    def _observe(self) -> NDArray[np.float32]:
        if self._t == self.horizon:
            return self.layout.encode(self._symbol, False, 0)
        colour = self.channel.colouring[self._state] if self._leak[self._t] else BLANK
        return self.layout.encode(self._symbol, self._controllable[self._t], self.horizon - self._t, colour)


class PartialControlDFAVectorEnv(_PartialControl, VectorEnv):
    """`num_envs` episodes at once as numpy arrays, one gather in the transition table a step.

    Same arguments, observations and, given the same `Draws`, same episodes as `PartialControlDFAEnv`. All episodes
    end together, after `horizon` steps. The step that ends them also begins the next ones (autoreset mode SAME_STEP),
    so there is no dummy transition: the observation returned is the next episode's first, the last one's is in
    ``infos["final_obs"]``. ``infos["symbol"]`` is int64[num_envs]; with `reveal_state` ``infos["state"]`` is that of
    the returned observation and ``infos["final_info"]["state"]`` the last of the episode that ended.
    """

    def __init__(
        self,
        num_envs: int = 1,
        task: str | DFA = "mod_5",
        horizon: int = 12,
        p_control: float = 0.5,
        beta: float = 0.0,
        colouring: str | Sequence[int] | NDArray = "identity",
        clock_horizon: int | None = None,
        reveal_state: bool = False,
    ) -> None:
        self.num_envs = checks.count("num_envs", num_envs)
        self._configure(task, horizon, p_control, beta, colouring, clock_horizon, reveal_state)
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = self._observation_space
        self.single_action_space = self._action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._draws: Draws | None = None  # until the first reset
        self._states: NDArray[np.int64]
        self._symbols: NDArray[np.int64]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start `num_envs` episodes; ``options={"draws": draws}`` gives their chance, with batch `num_envs`.

        Raises ValueError for several seeds (one seed keys the whole batch) and for a partial reset.
        """
        if not (seed is None or isinstance(seed, int | np.integer)):
            raise ValueError(f"seed={seed!r}: give one integer, which seeds all {self.num_envs} episodes, or None.")
        if options is not None and "reset_mask" in options:
            raise ValueError("options['reset_mask'] is not supported: all episodes begin and end together.")
        super().reset(seed=None if seed is None else int(seed))
        return self._begin(self._episode_draws(self.np_random, self.num_envs, options))

    def step(self, actions: NDArray[np.integer]) -> tuple[NDArray, NDArray, NDArray, NDArray, dict[str, Any]]:
        """One step of every episode; `actions` is int[num_envs]."""
        if self._draws is None:
            raise ResetNeeded("There are no episodes yet: call reset().")
        actions = np.asarray(actions)
        n_symbols = self.layout.n_symbols
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(
                f"Actions of shape {actions.shape} and type {actions.dtype} were given: give {self.num_envs} integers."
            )
        if actions.min() < 0 or actions.max() >= n_symbols:
            raise ValueError(
                f"Actions from {actions.min()} to {actions.max()} are not all symbols: give integers from 0 to "
                f"{n_symbols - 1}."
            )
        t = self._t
        self._symbols = np.where(self._draws.controllable[t], actions, self._draws.random_symbol[t])
        self._states = self.dfa.transitions[self._states, self._symbols]
        self._t += 1
        ends = self._t == self.horizon
        rewards = self.dfa.accepting[self._states].astype(np.float64) if ends else np.zeros(self.num_envs)
        observations = self._observe()
        symbol = {"symbol": self._symbols.copy()}
        infos = self._masked(symbol | self._revealed())
        if ends:
            final_obs = np.empty(self.num_envs, object)
            final_obs[:] = list(observations)
            final = {"final_obs": final_obs, "final_info": infos}
            observations, infos = self._begin(self._episode_draws(self.np_random, self.num_envs))
            # The emitted symbol belongs to the transition just made, not to the episode that begins.
            infos |= self._masked(final | symbol)
        terminations = np.full(self.num_envs, ends)
        return observations, rewards, terminations, np.zeros(self.num_envs, bool), infos

    def get_state(self) -> NDArray[np.int64]:
        """int64[num_envs]: the true states of the current observations, for the experimenter."""
        if self._draws is None:
            raise ResetNeeded("There are no episodes yet: call reset().")
        return self._states.astype(np.int64)

    def _begin(self, draws: Draws) -> tuple[NDArray[np.float32], dict[str, Any]]:
        self._draws = draws
        self._t = 0
        self._states = np.full(self.num_envs, self.dfa.start)
        self._symbols = np.full(self.num_envs, self.layout.none_yet)
        return self._observe(), self._masked(self._revealed())

    def _observe(self) -> NDArray[np.float32]:
        t = self._t
        if t == self.horizon:
            return self.layout.encode(self._symbols, False, 0)
        assert self._draws is not None
        colours = self.channel.colour(self._states, self._draws.leak[t])
        return self.layout.encode(self._symbols, self._draws.controllable[t], self.horizon - t, colours)

    def _revealed(self) -> dict[str, Any]:
        return {"state": self.get_state()} if self.reveal_state else {}

    def _masked(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Gymnasium's convention: beside every key a mask of the episodes that have it, here all of them."""
        return infos | {f"_{key}": np.ones(self.num_envs, bool) for key in infos}
