"""The registered name, alone and as a vector, and what importing costs."""

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rlstate.control import Oracle, PartialControlDFAEnv, PartialControlDFAVectorEnv, register

ENV_ID = "rlstate/PartialControlDFA-v0"
ROOT = Path(__file__).resolve().parents[2]


def test_make():
    env = gymnasium.make(ENV_ID, task="mod_5", horizon=12, p_control=0.5, beta=0.0)
    assert isinstance(env.unwrapped, PartialControlDFAEnv)
    assert env.unwrapped.dfa.n_states == 5
    assert gymnasium.spec(ENV_ID).max_episode_steps is None  # a time limit would turn the end into a truncation


def test_make_vec():
    env = gymnasium.make_vec(ENV_ID, num_envs=7, task="mod_3", horizon=5, p_control=0.25, beta=0.5)
    assert isinstance(env, PartialControlDFAVectorEnv)
    assert env.reset(seed=0)[0].shape == (7, 3 + 2 + 3)
    sync = gymnasium.make_vec(ENV_ID, num_envs=2, vectorization_mode="sync", task="mod_3", horizon=5)
    assert sync.reset(seed=0)[0].shape == (2, 5)


def test_gymnasium_wrappers_read_the_returns():
    env = RecordEpisodeStatistics(gymnasium.make_vec(ENV_ID, num_envs=4000, task="parity", horizon=6, p_control=0.5))
    env.reset(seed=0)
    for _ in range(6):
        *_, infos = env.step(env.action_space.sample())
    assert (infos["episode"]["l"] == 6).all()
    assert infos["episode"]["r"].mean() == pytest.approx(Oracle(env.unwrapped.dfa, 6, 0.5).random, abs=0.04)


@pytest.mark.filterwarnings("error")
def test_registering_again_is_silent():
    before = gymnasium.spec(ENV_ID)
    register()
    assert gymnasium.spec(ENV_ID) is before


def test_importing_is_light_and_registers():
    code = (
        "import sys, rlstate, gymnasium; "
        f"assert {ENV_ID!r} in gymnasium.registry; "
        "heavy = {'torch', 'hydra', 'wandb', 'matplotlib', 'sklearn'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


def test_recurrent_ppo_of_stable_baselines_trains_on_it_unchanged():
    sb3_contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed: pip install 'rlstate[sb3]'")
    from stable_baselines3.common.env_checker import check_env as sb3_check_env
    from stable_baselines3.common.env_util import make_vec_env

    settings = {"task": "mod_3", "horizon": 6, "beta": 0.1}
    sb3_check_env(gymnasium.make(ENV_ID, **settings).unwrapped)
    envs = make_vec_env(ENV_ID, n_envs=4, seed=0, env_kwargs=settings)
    model = sb3_contrib.RecurrentPPO("MlpLstmPolicy", envs, n_steps=6, batch_size=24, n_epochs=1, seed=0, device="cpu")
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(24 * 4)
    assert any((value != before[name]).any() for name, value in model.policy.state_dict().items())
    assert all(value.isfinite().all() for value in model.policy.state_dict().values())
    assert {episode["l"] for episode in model.ep_info_buffer} == {6}
