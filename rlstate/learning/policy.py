"""A policy: an encoder, one policy head, one value head, and the auxiliary's head where there is one. All heads are linear."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

_global_generator = threading.Lock()


class Heads(NamedTuple):
    """What the heads say of features float[..., F]."""

    logits: Tensor  # float[..., A]
    values: Tensor  # float[...]


class Policy(nn.Module):
    """`features = encoder(observations)`; `logits, values = heads(features)`.

    Every head reads the same features, which are also what the probes read: no hidden layer stands between
    "decodable" and "available to the policy".
    """

    def __init__(self, encoder: nn.Module, n_symbols: int, auxiliary_outputs: int = 0):
        super().__init__()
        width = int(encoder.out_features)  # type: ignore[arg-type]
        self.encoder = encoder
        self.policy_head = nn.Linear(width, n_symbols)
        self.value_head = nn.Linear(width, 1)
        self.auxiliary_head = nn.Linear(width, auxiliary_outputs) if auxiliary_outputs else None

    def heads(self, features: Tensor) -> Heads:
        return Heads(self.policy_head(features), self.value_head(features).squeeze(-1))

    def forward(self, observations: Tensor) -> tuple[Tensor, Heads]:
        """observations float[T, B, I] → features float[T, B, F] and what the heads say of them."""
        features = self.encoder(observations)
        return features, self.heads(features)

    def step(self, observations: Tensor, t: int, carry: Any) -> tuple[Tensor, Any]:
        """Features float[B, F] at step `t` of observations float[T, B, I], of which the first t + 1 are filled in."""
        step = getattr(self.encoder, "step", None)
        if step is None:
            return self.encoder(observations[: t + 1])[t], None
        return step(observations[t], carry)


def build_policy(
    make: Callable[[], nn.Module], n_symbols: int, auxiliary_outputs: int, seed: int, dtype: torch.dtype = torch.float32
) -> Policy:
    """A policy with PyTorch's default initial weights, drawn from `seed` alone.

    Modules draw their initial weights from torch's global generator; it is borrowed and given back as it was, by one thread
    at a time.
    """
    with _global_generator, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Policy(make(), n_symbols, auxiliary_outputs).to(dtype)
