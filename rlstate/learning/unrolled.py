"""Recurrent cells as the operations they are made of: what PyTorch's own kernels compute, in a form that `torch.func` can map."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from rlstate.learning.encoders import recurrent_cell
from rlstate.learning.policy import Policy


class Unrolled(nn.Module):
    """A GRU or LSTM cell as the operations it is made of; PyTorch's own kernels have no run axis."""

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    def __init__(self, cell: nn.Module):
        super().__init__()
        self.lstm = isinstance(cell, nn.LSTM)
        for name, parameter in cell.named_parameters():  # the same names, in the same order
            self.register_parameter(name, parameter)

    def forward(self, x: Tensor, carry: Any = None) -> tuple[Tensor, Any]:
        """x float[T, B, I] → hidden states float[T, B, H], and what the next step needs."""
        inputs = nn.functional.linear(x, self.weight_ih_l0, self.bias_ih_l0)
        if carry is None:
            zero = inputs.new_zeros(inputs.shape[1], self.weight_hh_l0.shape[1])
            carry = (zero, zero) if self.lstm else zero
        hidden = []
        # `unbind`, and `split` below: their gradients are one operation, an index's is an array of the full size.
        for step in inputs.unbind():
            h = carry[0] if self.lstm else carry
            recurrent = nn.functional.linear(h, self.weight_hh_l0, self.bias_hh_l0)
            carry = self._lstm(step + recurrent, carry[1]) if self.lstm else self._gru(step, recurrent, h)
            hidden.append(carry[0] if self.lstm else carry)
        return torch.stack(hidden), carry

    @staticmethod
    def _gru(x: Tensor, recurrent: Tensor, h: Tensor) -> Tensor:
        width = h.shape[-1]
        gates, candidate = x.split((2 * width, width), dim=-1)
        recurrent_gates, recurrent_candidate = recurrent.split((2 * width, width), dim=-1)
        reset, update = (gates + recurrent_gates).sigmoid().split(width, dim=-1)
        candidate = (candidate + reset * recurrent_candidate).tanh()
        return candidate + update * (h - candidate)

    @staticmethod
    def _lstm(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = gates.chunk(4, dim=-1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


def unrolled(policy: Policy) -> Policy:
    """A copy whose GRU or LSTM is `Unrolled`, with parameters of the same names; of any other encoder a plain copy."""
    policy = copy.deepcopy(policy)
    cell = recurrent_cell(policy.encoder)
    if cell is not None:
        policy.encoder.cell = Unrolled(cell)
    return policy
