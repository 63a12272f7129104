"""The environments: Gymnasium's contract, the oracle's values, and one dynamics in two forms."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from rlstate.automata import DFA, zoo
from rlstate.control import Oracle, PartialControlDFAEnv, PartialControlDFAVectorEnv, Stream, draw

pytestmark = pytest.mark.filterwarnings("error")


def play(env: PartialControlDFAVectorEnv, policy, seed: int = 0):
    """Total reward of one batch of episodes; `policy(t, states, observations)` gives the actions."""
    observations, _ = env.reset(seed=seed)
    total = np.zeros(env.num_envs)
    for t in range(env.horizon):
        observations, rewards, terminations, truncations, _ = env.step(policy(t, env.get_state(), observations))
        assert terminations.all() == terminations.any() == (t == env.horizon - 1)
        assert not truncations.any()
        assert t == env.horizon - 1 or not rewards.any()
        total += rewards
    return total


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"task": "mined_ean", "beta": 0.5},
        {"task": "parity", "beta": 1.0, "colouring": "acceptance", "reveal_state": True},
    ],
)
def test_gymnasium_accepts_it_without_warnings(settings):
    env = gymnasium.make("rlstate/PartialControlDFA-v0", **settings)
    check_env(env.unwrapped)
    env.reset(seed=0)
    for _ in range(11):
        assert env.step(0)[2:4] == (False, False)
    assert env.step(0)[2:4] == (True, False)  # through Gymnasium's wrappers too: terminated, never truncated


@pytest.mark.parametrize("p_control", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("task", ["parity", "mod_3", "mod_5_hold", "ends_with_101"])
def test_optimal_and_random_play_earn_what_the_oracle_says(task, p_control):
    horizon, n = 9, 20_000
    env = PartialControlDFAVectorEnv(n, task, horizon, p_control)
    oracle = Oracle(env.dfa, horizon, p_control)
    rng = np.random.default_rng(1)

    def optimal(t, states, _):
        best = oracle.optimal_actions(horizon - t, states)
        return (rng.random(best.shape) * best).argmax(1)  # any optimal symbol will do

    def random(t, states, _):
        return rng.integers(0, env.dfa.n_symbols, n)

    for policy, value in [(optimal, oracle.optimal), (random, oracle.random)]:
        earned = play(env, policy, seed=5)
        assert set(np.unique(earned)) <= {0.0, 1.0}
        assert abs(earned.mean() - value) <= 4.5 * np.sqrt(value * (1 - value) / n) + 1e-9
    if p_control == 1:
        assert play(env, optimal).min() == oracle.full_control == 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"task": "workflow_reconcile", "beta": 0.4, "horizon": 7, "clock_horizon": 3, "reveal_state": True},
        {"task": "mined_ean", "beta": 1.0, "colouring": "acceptance", "p_control": 0.2},
    ],
)
def test_single_and_vector_agree_exactly_on_the_same_draws(settings):
    n = 25
    many, one = PartialControlDFAVectorEnv(n, **settings), PartialControlDFAEnv(**settings)
    assert one.observation_space == many.single_observation_space
    assert one.action_space == many.single_action_space
    draws = draw(4, Stream.TRAIN, 0, one.horizon, n, one.layout.n_symbols, one.p_control, one.channel.beta)
    actions = np.random.default_rng(0).integers(0, one.layout.n_symbols, (one.horizon, n))
    first, infos = many.reset(options={"draws": draws})
    batch = [(first, infos)]
    batch += [many.step(a) for a in actions]
    for i in range(n):
        observation, info = one.reset(options={"draws": draws.episodes([i])})
        np.testing.assert_array_equal(observation, first[i])
        for t in range(one.horizon):
            observation, reward, terminated, truncated, info = one.step(actions[t, i])
            observations, rewards, terminations, truncations, infos = batch[t + 1]
            last = t == one.horizon - 1
            np.testing.assert_array_equal(observation, infos["final_obs"][i] if last else observations[i])
            assert (reward, terminated, truncated) == (rewards[i], terminations[i], truncations[i])
            assert info["symbol"] == infos["symbol"][i]
            assert info["symbol"] == (actions[t, i] if draws.controllable[t, i] else draws.random_symbol[t, i])
            final = infos["final_info"] if last else infos
            assert ("state" in info) == ("state" in final) == one.reveal_state
            if one.reveal_state:
                assert info["state"] == final["state"][i] == one.get_state()
        word = [batch[t + 1][4]["symbol"][i] for t in range(one.horizon)]
        assert reward == float(one.dfa.accepts(word))
        assert one.get_state() == one.dfa.run(word)


def test_episodes_end_together_and_begin_again_without_a_dummy_transition():
    env = PartialControlDFAVectorEnv(50, "mod_5", 4, reveal_state=True)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    env.reset(seed=0)
    for _ in range(3):
        for t in range(4):
            observations, _, terminations, _, infos = env.step(env.action_space.sample())
            assert observations in env.observation_space
            assert terminations.all() == ("final_obs" in infos) == (t == 3)
        clock, none_yet = env.layout.clock, env.layout.none_yet
        assert (observations[:, clock] == 1).all()
        assert (observations[:, none_yet] == 1).all()
        assert (infos["state"] == env.dfa.start).all()
        ended = np.stack(infos["final_obs"])
        assert (ended[:, clock] == 0).all()
        assert not ended[:, env.layout.controllable].any()
        assert (ended.argmax(1) == infos["symbol"]).all()
        assert infos["final_info"]["state"].std() > 0


def test_the_next_episodes_are_new_ones():
    env = PartialControlDFAVectorEnv(200, "parity", 1)
    first, _ = env.reset(seed=0)
    second = env.step(np.zeros(200, int))[0]
    assert (first != second).any()


def test_seeding():
    def episode(env, seed):
        observations = [env.reset(seed=seed)[0]]
        return np.stack(observations + [env.step(env.action_space.sample() * 0)[0] for _ in range(30)])

    single = PartialControlDFAEnv(horizon=30)
    np.testing.assert_array_equal(episode(single, 3), episode(PartialControlDFAEnv(horizon=30), 3))
    assert (episode(single, 3) != episode(single, 4)).any()
    assert (episode(single, None) != episode(single, None)).any()
    many = PartialControlDFAVectorEnv(5, horizon=31)
    np.testing.assert_array_equal(episode(many, 3), episode(PartialControlDFAVectorEnv(5, horizon=31), 3))
    assert (episode(many, 3) != episode(many, 4)).any()
    assert len(np.unique(episode(many, 3).transpose(1, 0, 2), axis=0)) == 5  # five different episodes


@pytest.mark.parametrize("vector", [False, True])
def test_the_state_never_reaches_the_observation(vector):
    """Machines that differ in everything but their alphabet show the same observations on the same draws."""
    shown = []
    actions = np.random.default_rng(0).integers(0, 2, (20, 8))
    draws = draw(1, Stream.TRAIN, 0, 20, 8, 2, 0.5, 0.0)
    parity = zoo.make("parity")
    flipped = DFA(parity.transitions, parity.accepting, start=1)
    for task in (parity, flipped, parity.complement(), zoo.make("mod_5"), zoo.make("ends_with_101")):
        if vector:
            env = PartialControlDFAVectorEnv(8, task, 20)
            observations = [env.reset(options={"draws": draws})[0]]
            steps = [env.step(a) for a in actions]
            observations += [s[0] for s in steps[:-1]]
            shown.append(np.stack(observations))
            assert set(steps[0][4]) == {"symbol", "_symbol"}
        else:
            env = PartialControlDFAEnv(task, 20)
            observations, info = env.reset(options={"draws": draws.episodes([0])})
            assert info == {}
            steps = [env.step(a) for a in actions[:, 0]]
            shown.append(np.stack([observations] + [s[0] for s in steps]))
            assert {key for s in steps for key in s[4]} == {"symbol"}
    for other in shown[1:]:
        np.testing.assert_array_equal(shown[0], other)


@pytest.mark.parametrize("colouring", ["identity", "acceptance", [2, 0, 1, 1, 0]])
def test_leaks_have_the_right_frequency_and_colour(colouring):
    n, horizon, beta = 2000, 10, 0.3
    env = PartialControlDFAVectorEnv(n, "mod_5", horizon, beta=beta, colouring=colouring)
    colours = np.array({"identity": [0, 1, 2, 3, 4], "acceptance": [1, 0, 0, 0, 0]}.get(str(colouring), colouring))
    observations, _ = env.reset(seed=0)
    leaks = 0
    for _ in range(horizon):
        colour = observations[:, env.layout.colour]
        assert set(np.unique(colour.sum(1))) <= {0.0, 1.0}
        leaked = colour.any(1)
        leaks += leaked.sum()
        np.testing.assert_array_equal(colour.argmax(1)[leaked], colours[env.get_state()][leaked])
        observations, *_, infos = env.step(env.action_space.sample())
    assert not np.stack(infos["final_obs"])[:, env.layout.colour].any()
    assert abs(leaks / (n * horizon) - beta) < 5 * np.sqrt(beta * (1 - beta) / (n * horizon))


def test_a_muted_channel_keeps_its_place():
    env = PartialControlDFAVectorEnv(64, "mod_5", 6, beta=1.0)
    draws = draw(0, Stream.EVALUATION, 0, 6, 64, 2, 0.5, beta=0.0)
    observations, _ = env.reset(options={"draws": draws})
    assert observations.shape[1] == env.layout.width == 2 + 3 + 5
    for _ in range(5):
        assert not observations[:, env.layout.colour].any()
        observations = env.step(env.action_space.sample())[0]


def test_the_last_steps_of_a_long_episode_look_as_in_training():
    shown = {}
    for horizon in (12, 48):
        env = PartialControlDFAEnv("parity", horizon, clock_horizon=12)
        observations = [env.reset(seed=0)[0]] + [env.step(0)[0] for _ in range(horizon)]
        shown[horizon] = np.stack(observations)[:, env.layout.clock]
    np.testing.assert_array_equal(shown[48][-13:], shown[12])
    assert (shown[48][:-12] == 1).all()


def test_observations_are_not_reused():
    env = PartialControlDFAVectorEnv(4, "mod_5", 5)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second = env.step(np.zeros(4, int))[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)
    state = env.get_state()
    state[:] = 99
    assert (env.get_state() < 5).all()


ODD_LENGTH = DFA([[1, 1], [0, 0]], [False, True])
UNREACHABLE = DFA([[0, 0], [1, 1]], [False, True])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"horizon": 0}, "horizon=0 .* at least 1"),
        ({"horizon": 2.5}, "horizon=2.5"),
        ({"p_control": 1.01}, "p_control=1.01 is not a probability"),
        ({"beta": -0.1}, "beta=-0.1 is not a probability"),
        ({"clock_horizon": 0}, "clock_horizon=0"),
        ({"colouring": [0, 1], "beta": 0.5}, "2 colours but the automaton has 5 states"),
        ({"task": 5}, "task is a int.*'mod_5'.*DFA"),
        ({"task": "no_such_task"}, "no_such_task"),
        ({"task": "mod_1"}, "1"),
        ({"task": UNREACHABLE}, "cannot be reached .* val_n has no meaning"),
        ({"task": ODD_LENGTH, "horizon": 4}, "no word of length exactly horizon=4"),
    ],
)
def test_bad_settings_are_named(settings, sentence):
    for make in (PartialControlDFAEnv, PartialControlDFAVectorEnv):
        with pytest.raises(ValueError, match=sentence):
            make(**settings)


def test_a_task_that_needs_its_length_is_fine_at_that_length():
    assert play(PartialControlDFAVectorEnv(3, ODD_LENGTH, 5), lambda t, states, _: states * 0).tolist() == [1, 1, 1]


def test_bad_use_is_named():
    env = PartialControlDFAEnv("mod_5", 2)
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step(0)
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.get_state()
    env.reset(seed=0)
    for action in (2, -1, 0.5, None):
        with pytest.raises(ValueError, match=r"not a symbol: give an integer from 0 to 1"):
            env.step(action)
    env.step(np.int64(1))
    env.step(np.array(1))
    with pytest.raises(ResetNeeded, match="episode of 2 steps is over"):
        env.step(0)

    many = PartialControlDFAVectorEnv(3, "mod_5", 2)
    with pytest.raises(ValueError, match="num_envs=0"):
        PartialControlDFAVectorEnv(0)
    for use in (many.get_state, lambda: many.step(np.zeros(3, int))):
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            use()
    with pytest.raises(ValueError, match="reset_mask"):
        many.reset(options={"reset_mask": np.array([True, False, True])})
    with pytest.raises(ValueError, match="one integer"):
        many.reset(seed=[1, 2, 3])
    many.reset()
    for actions, sentence in [
        (np.zeros(2, int), r"shape \(2,\)"),
        (np.zeros(3), "float64"),
        (np.array([0, 1, 2]), "from 0 to 2"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            many.step(actions)


def test_draws_that_do_not_fit_are_named():
    env = PartialControlDFAEnv("mod_5", 4)
    for draws, sentence in [
        (draw(0, 0, 0, 5, 1, 2, 0.5, 0.0), "1 episodes of 5 steps"),
        (draw(0, 0, 0, 4, 2, 2, 0.5, 0.0), "2 episodes of 4 steps"),
        (draw(0, 0, 0, 4, 1, 99, 0.5, 0.0), "has 2"),
        ({"controllable": True}, "is a dict"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            env.reset(options={"draws": draws})
