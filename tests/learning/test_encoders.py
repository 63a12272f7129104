"""What an encoder owes: causality, the same features step by step, and a definition at 4T."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rlstate.learning.encoders import ENCODERS, check_encoder, make_encoder
from rlstate.learning.policy import Policy

T, B, WIDTH = 9, 4, 6


def encoder(name: str) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return make_encoder(name, WIDTH, **({"window": 3} if name == "window_mlp" else {})).double()


def observations(steps: int = T, seed: int = 0) -> torch.Tensor:
    return torch.randn(steps, B, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", ENCODERS)
def test_step_by_step_is_the_whole_sequence(name):
    module, x = encoder(name), observations(4 * T)
    policy, carry, features = Policy(module, 2).double(), None, []
    for t in range(len(x)):
        # What is not yet observed must not matter: a rollout fills it in later.
        partial = torch.cat([x[: t + 1], torch.full_like(x[t + 1 :], torch.nan)])
        h, carry = policy.step(partial, t, carry)
        features.append(h)
    torch.testing.assert_close(torch.stack(features), module(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_are_causal_and_keep_episodes_apart(name):
    check_encoder(encoder(name), WIDTH, name)


@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_reach_every_parameter(name):
    module = encoder(name)
    module(observations()).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in module.parameters())


def test_the_window_forgets_and_nothing_leaks_before_it():
    """ml-agents#3727: a window that still holds the previous episode."""
    module, x = encoder("window_mlp"), observations()
    changed = x.clone()
    changed[:4] += 1.0
    same = (module(x) == module(changed)).all(-1).all(-1)
    assert same.tolist() == [False] * 6 + [True] * 3  # a window of 3 last sees step 3 at step 5


@pytest.mark.parametrize("name", ["gru", "lstm", "transformer"])
def test_the_others_remember_the_first_step(name):
    module, x = encoder(name), observations()
    changed = x.clone()
    changed[0] += 1.0
    assert not torch.allclose(module(x)[-1], module(changed)[-1], atol=1e-9)


class NoStep(nn.Module):
    def __init__(self, input_size: int, width: int = 5):
        super().__init__()
        self.rnn, self.out_features = nn.RNN(input_size, width), width

    def forward(self, x):
        return self.rnn(x)[0]


class Peeks(NoStep):
    def forward(self, x):
        return self.rnn(x.flip(0))[0].flip(0)


class Mixes(NoStep):
    def forward(self, x):
        return self.rnn(x - x.mean(1, keepdim=True))[0]


class BatchFirst(NoStep):
    def forward(self, x):
        return self.rnn(x)[0].transpose(0, 1)


class Drops(NoStep):
    def forward(self, x):
        return nn.functional.dropout(self.rnn(x)[0])


class Nameless(nn.Module):
    def __init__(self, input_size: int):
        super().__init__()
        self.layer = nn.Linear(input_size, 3)

    def forward(self, x):
        return self.layer(x)


def test_a_users_encoder_needs_no_step_method():
    module = NoStep(WIDTH)
    check_encoder(module, WIDTH)
    policy, x, carry = Policy(module, 2), observations().float(), None
    for t in range(T):
        h, carry = policy.step(x, t, carry)
        torch.testing.assert_close(h, module(x)[t])


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        (Peeks, "not causal"),
        (Drops, "dropout"),
        (Mixes, "mixes episodes"),
        (BatchFirst, "expected \\[T, B, out_features\\]"),
        (Nameless, "out_features"),
    ],
)
def test_what_is_not_an_encoder_is_refused(factory, says):
    with pytest.raises(ValueError, match=says):
        check_encoder(factory(WIDTH), WIDTH)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("grru", "unknown encoder 'grru'.*gru, lstm"),
        ("no.such.Encoder", "cannot import"),
        ("torch.nn.NoSuch", "cannot import"),
    ],
)
def test_unknown_encoders(name, says):
    with pytest.raises(ValueError, match=says):
        make_encoder(name, WIDTH)


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [("window_mlp", {"window": 0}, "window"), ("transformer", {"hidden": 10, "heads": 4}, "multiple")],
)
def test_impossible_parameters(name, parameters, says):
    with pytest.raises(ValueError, match=says):
        make_encoder(name, WIDTH, **parameters)
