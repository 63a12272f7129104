"""``rlstate/PartialControlDFA-v0`` in Gymnasium's registry."""

from __future__ import annotations

from gymnasium.envs.registration import register as _register
from gymnasium.envs.registration import registry

ENV_ID = "rlstate/PartialControlDFA-v0"


def register() -> None:
    """Register the environment once; later calls do nothing. Nothing is imported until someone makes one.

    There is no ``max_episode_steps``: the horizon ends an episode by termination, and Gymnasium's time limit would
    report a truncation in its place.
    """
    if ENV_ID not in registry:
        _register(
            id=ENV_ID,
            entry_point="rlstate.control.env:PartialControlDFAEnv",
            vector_entry_point="rlstate.control.env:PartialControlDFAVectorEnv",
        )
