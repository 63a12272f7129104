"""Encoders: the history of observations → the features that every head and every probe reads.

An encoder is an ordinary `nn.Module` with one obligation::

    forward(observations float[T, B, I]) -> features float[T, B, F]      causal, h₀ = 0, `out_features = F`

Episodes all last exactly `T` steps, so there are no masks, no padding and no carried-over hidden states. Features at step `t`
may depend on observations 0…t only; `check_encoder` tests that once, before anything is trained.

Optionally an encoder also has::

    step(observation float[B, I], carry or None) -> (features float[B, F], carry)

which gives the same features one step at a time. Without it a rollout re-reads the prefix at every step: right, but slower.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rlstate.learning import kernels


class GRU(nn.Module):
    """Gated recurrent unit (Cho et al., 2014), PyTorch's own kernel over the whole episode."""

    def __init__(self, input_size: int, hidden: int = 64):
        super().__init__()
        self.cell: nn.Module = nn.GRU(input_size, hidden)
        self.out_features = hidden

    def forward(self, observations: Tensor) -> Tensor:
        fused = kernels.recurrence(self.cell, observations)
        return self.cell(observations)[0] if fused is None else fused

    def step(self, observation: Tensor, carry: Any = None) -> tuple[Tensor, Any]:
        features, carry = self.cell(observation[None], carry)
        return features[0], carry


class LSTM(GRU):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997). The features are `h`; the cell state stays inside."""

    def __init__(self, input_size: int, hidden: int = 64):
        nn.Module.__init__(self)
        self.cell = nn.LSTM(input_size, hidden)
        self.out_features = hidden


def recurrent_cell(encoder: nn.Module) -> nn.Module | None:
    """The cell whose hidden states are the features, which the fused kernels ask for; None for any other encoder.

    Exactly these two classes: a user's subclass may do something else with its cell.
    """
    return encoder.cell if isinstance(encoder, GRU) and type(encoder) in (GRU, LSTM) else None


def trains_fused(encoder: nn.Module, device: str) -> bool:
    """Whether the fused kernels train this encoder on that device, as things stand."""
    return kernels.active(device) and recurrent_cell(encoder) is not None


class WindowMLP(nn.Module):
    """Two-layer perceptron on the last `window` observations (zeros before the episode begins): bounded memory by design."""

    def __init__(self, input_size: int, hidden: int = 64, window: int = 8):
        super().__init__()
        if window < 1:
            raise ValueError(f"encoder.window is {window}; a window-MLP needs to see at least 1 observation")
        self.window = window
        self.layers = nn.Sequential(
            nn.Linear(window * input_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.out_features = hidden

    def forward(self, observations: Tensor) -> Tensor:
        padded = F.pad(observations, (0, 0, 0, 0, self.window - 1, 0))
        windows = padded.unfold(0, self.window, 1)  # [T, B, I, window]
        return self.layers(windows.flatten(-2))

    def step(self, observation: Tensor, carry: Any = None) -> tuple[Tensor, Any]:
        if carry is None:
            carry = observation.new_zeros(*observation.shape, self.window)
        carry = torch.cat([carry[..., 1:], observation[..., None]], dim=-1)
        return self.layers(carry.flatten(-2)), carry


class Transformer(nn.Module):
    """Causal pre-norm transformer over the full prefix, with sinusoidal positions (Vaswani et al., 2017).

    Sinusoids rather than learned positions: they are defined at every step, so the same network can be run at 4T.
    """

    def __init__(self, input_size: int, hidden: int = 64, layers: int = 2, heads: int = 4):
        super().__init__()
        if hidden % heads or hidden % 2:
            raise ValueError(f"encoder.hidden is {hidden}; it must be even and a multiple of encoder.heads ({heads})")
        self.embed = nn.Linear(input_size, hidden)
        self.blocks = nn.ModuleList(_Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.out_features = hidden

    def forward(self, observations: Tensor) -> Tensor:
        x = self.embed(observations) + _sinusoids(0, len(observations), self.out_features, observations)[:, None]
        x = x.transpose(0, 1)  # attention wants [B, T, ·]
        for block in self.blocks:
            x, _ = block(x, None)
        return self.norm(x).transpose(0, 1)

    def step(self, observation: Tensor, carry: Any = None) -> tuple[Tensor, Any]:
        t, past = carry or (0, [None] * len(self.blocks))
        x = (self.embed(observation) + _sinusoids(t, 1, self.out_features, observation))[:, None]
        present = []
        for block, keys_values in zip(self.blocks, past):
            x, keys_values = block(x, keys_values)
            present.append(keys_values)
        return self.norm(x[:, 0]), (t + 1, present)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """`past` are the keys and values of the steps before; without it `x` is a whole episode and is masked causally."""
        batch, steps, width = x.shape
        heads = self.qkv(self.attention_norm(x)).view(batch, steps, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, steps, width))
        return x + self.mlp(self.mlp_norm(x)), (key, value)


def _sinusoids(start: int, steps: int, width: int, like: Tensor) -> Tensor:
    position = torch.arange(start, start + steps, device=like.device, dtype=like.dtype)[:, None]
    frequency = torch.exp(
        torch.arange(0, width, 2, device=like.device, dtype=like.dtype) * (-math.log(10_000.0) / width)
    )
    return torch.stack([torch.sin(position * frequency), torch.cos(position * frequency)], dim=-1).flatten(-2)


ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "gru": GRU,
    "lstm": LSTM,
    "window_mlp": WindowMLP,
    "transformer": Transformer,
}


def make_encoder(name: str, input_size: int, **parameters: Any) -> nn.Module:
    """The encoder called `name`: one of `ENCODERS`, or a dotted path to your own class or factory.

    A user's own is called as `factory(input_size, **parameters)`; see the module docstring for what it must be.

    Raises:
        ValueError: an unknown name, a path that cannot be imported, or a module that is not a causal encoder.
    """
    if name in ENCODERS:
        return ENCODERS[name](input_size, **parameters)
    if "." not in name:
        raise ValueError(
            f"unknown encoder {name!r}; known are {', '.join(ENCODERS)}, or the dotted path of your own nn.Module"
        )
    encoder = import_dotted(name, "encoder")(input_size, **parameters)
    check_encoder(encoder, input_size, name)
    return encoder


def import_dotted(path: str, what: str) -> Any:
    """What the dotted path names; raises ValueError, saying `what` was looked for, where it cannot be imported."""
    module, _, attribute = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"cannot import the {what} {path!r} ({error}); is its folder on PYTHONPATH, or the name misspelt?"
        ) from error


def check_encoder(encoder: nn.Module, input_size: int, name: str = "encoder") -> None:
    """Refuse a module that is not an encoder: wrong shapes, or features that look at later observations.

    Raises:
        ValueError: naming what was found and what was expected.
    """
    width = getattr(encoder, "out_features", None)
    if not isinstance(width, int):
        raise ValueError(f"encoder {name!r} has no integer `out_features`; set it to the width of its features")
    like = next(encoder.parameters(), torch.zeros(()))
    steps, batch, half = 6, 3, 3
    # Deterministic, all different: a model that ignores time or the batch would otherwise pass.
    probe = torch.sin(torch.arange(steps * batch * input_size, dtype=torch.float64)).view(steps, batch, input_size)
    probe = probe.to(like)
    with torch.no_grad():
        features = encoder(probe)
        if tuple(features.shape) != (steps, batch, width):
            raise ValueError(
                f"encoder {name!r} maps [T, B, I] = [{steps}, {batch}, {input_size}] to {list(features.shape)}; "
                f"expected [T, B, out_features] = [{steps}, {batch}, {width}]"
            )
        if not torch.equal(features, encoder(probe)):
            raise ValueError(
                f"encoder {name!r} gives other features for the same observations each time; leave out dropout and the like: "
                "rollouts and updates must agree"
            )
        changed = probe.clone()
        changed[half:] += 1.0
        if not torch.allclose(features[:half], encoder(changed)[:half], atol=1e-5):
            raise ValueError(
                f"encoder {name!r} is not causal: its features at step t change with observations after t, "
                "so it would see the future in training and not in a rollout"
            )
        other = probe.clone()
        other[:, 1:] += 1.0
        if not torch.allclose(features[:, :1], encoder(other)[:, :1], atol=1e-5):
            raise ValueError(f"encoder {name!r} mixes episodes: the features of one depend on the others in its batch")
