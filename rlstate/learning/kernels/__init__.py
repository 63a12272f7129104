"""The one place that knows there is a fast path: fused kernels for what GRU and LSTM runs on a CPU spend their time on.

Three functions stand in for plain PyTorch where they can, and answer None where they cannot: `recurrence` for a whole
sequence, `play` for a rollout's loop, `update` for gradient steps from the loss to Adam. The plain path beside each call is
the definition; `tests/learning/test_kernels.py` holds the two together.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rlstate.learning.kernels.build import load_library

if TYPE_CHECKING:
    from rlstate.learning.policy import Policy

log = logging.getLogger("rlstate")

MODES = ("auto", "fused", "plain")
_SUFFIX = {torch.float32: "f32", torch.float64: "f64"}
_mode = os.environ.get("RLSTATE_KERNELS", "auto")  # what `auto` stands for, until `using` says otherwise
_announced = False


@contextlib.contextmanager
def using(mode: str) -> Iterator[None]:
    """Which path training takes: `auto` (fused where possible), `fused` (an error where it cannot be built) or `plain`.

    Raises:
        ValueError: another mode.
        RuntimeError: `fused`, and the kernels cannot be built.
    """
    global _mode
    if mode not in MODES:
        raise ValueError(f"kernels={mode!r} is unknown; it can be {', '.join(MODES)}")
    if mode == "fused" and not available():
        raise RuntimeError("kernels=fused, but the kernels cannot be built here; use kernels=auto or kernels=plain")
    before = _mode
    if mode != "auto":
        _mode = mode
    try:
        yield
    finally:
        _mode = before


def available() -> bool:
    """Whether the kernels are, or can be, built here."""
    return load_library() is not None


def active(device: str) -> bool:
    """Whether GRU and LSTM runs on `device` take the fused path as things stand."""
    return _mode != "plain" and device == "cpu" and available()


def recurrence(cell: Any, x: Tensor) -> Tensor | None:
    """Hidden states float[T, B, H] of a single-layer `nn.GRU` or `nn.LSTM` over x float[T, B, I], from h₀ = 0."""
    if not _applies(cell, x):
        return None
    return _Recurrence.apply(
        isinstance(cell, nn.LSTM), x, cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0
    )


def play(cell: Any, policy: Policy, world: Any, greedy: bool) -> tuple[Tensor, Tensor, Tensor] | None:
    """The rollout of `world` (see `rollout.py`) by a policy whose encoder is `cell`: features, logits, values, [T, B, ...]."""
    if not _applies(cell, world.observations):
        return None
    x = world.observations
    steps, batch, inputs = x.shape
    hidden, n_symbols = cell.hidden_size, world.n_symbols
    features, logits = x.new_empty(steps, batch, hidden), x.new_empty(steps, batch, n_symbols)
    values = x.new_empty(steps, batch)
    weights = [cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0]
    heads = [policy.policy_head.weight, policy.policy_head.bias, policy.value_head.weight, policy.value_head.bias]
    _call(
        "play", x.dtype, isinstance(cell, nn.LSTM), steps, batch, inputs, hidden, n_symbols, greedy, *weights, *heads,
        world.transitions, world.controllable, world.random_symbol, world.choice, world.leak, world.colouring,
        world.colour_at, x, world.symbols, world.states, world.colours, features, logits, values,
    )  # fmt: skip
    return features, logits, values


def update(
    cell: Any,
    policy: Policy,
    optimizer: torch.optim.Adam,
    batch: Any,
    minibatches: list[Tensor | None],
    algorithm: Any,
    weight: float,
) -> dict[str, float] | None:
    """A gradient step on each of the minibatches, as `Learner.update` defines it, and the figures of the last.

    `weight` is the auxiliary's. All steps are one call: what Python needs between two of them is a third of their time.
    """
    if not _applies(cell, batch.observations):
        return None
    x = batch.observations.contiguous()
    steps, n_episodes, inputs = x.shape
    heads = [
        policy.policy_head,
        policy.value_head,
        *([policy.auxiliary_head] if policy.auxiliary_head is not None else []),
    ]
    weights = [cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0]
    weights += [tensor for head in heads for tensor in (head.weight, head.bias)]
    states = [adam_state(optimizer, tensor) for tensor in weights]
    settings = optimizer.param_groups[0]
    real = ctypes.c_float if x.dtype == torch.float32 else ctypes.c_double
    reals = (algorithm.clip, algorithm.value, algorithm.entropy, weight, algorithm.max_grad_norm, settings["lr"],
             *settings["betas"], settings["eps"])  # fmt: skip
    labels = [target.labels.contiguous() for target in batch.auxiliary]
    label_weights = [target.weights.contiguous() for target in batch.auxiliary]
    columns = [number for target in batch.auxiliary for number in (target.columns.start, len(target.columns))]
    if minibatches[0] is None:
        episodes, sizes = None, [n_episodes] * len(minibatches)
    else:
        episodes, sizes = torch.cat(minibatches), [len(each) for each in minibatches]  # type: ignore[arg-type]
    terms = x.new_empty(5)
    _call(
        "update", x.dtype, isinstance(cell, nn.LSTM), algorithm.name == "ppo", steps, n_episodes, inputs, cell.hidden_size,
        policy.policy_head.out_features, 0 if policy.auxiliary_head is None else policy.auxiliary_head.out_features,
        len(minibatches), episodes, (ctypes.c_int * len(sizes))(*sizes), *map(real, reals), _addresses(weights),
        *(_addresses([state[key] for state in states]) for key in ("exp_avg", "exp_avg_sq", "step")),
        x, batch.symbols.contiguous(), batch.controllable.contiguous(), batch.log_probs.contiguous(),
        batch.advantages.contiguous(), batch.targets.contiguous(), len(labels), (ctypes.c_int * len(columns))(*columns),
        _addresses(labels), _addresses(label_weights), terms,
    )  # fmt: skip
    names = ("policy_loss", "value_loss", "entropy", "auxiliary_loss", "grad_norm")
    figures = dict(zip(names, terms.tolist()))
    if policy.auxiliary_head is None:
        del figures["auxiliary_loss"]
    return figures


def adam_state(optimizer: torch.optim.Adam, parameter: Tensor) -> dict[str, Tensor]:
    """Adam's own state of a parameter, made as Adam makes it at the first step."""
    state = optimizer.state[parameter]
    if not state:
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
    return state


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, lstm: bool, x: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor) -> Tensor:
        x = x.contiguous()
        steps, batch, inputs = x.shape
        hidden = w_hh.shape[1]
        tape = _Buffer(x, steps * batch * (6 if lstm else 4) * hidden)
        hs = x.new_empty(steps, batch, hidden)
        _call("forward", x.dtype, lstm, steps, batch, inputs, hidden, x, w_ih, w_hh, b_ih, b_hh, tape.tensor, hs)
        ctx.lstm, ctx.tape = lstm, tape
        ctx.save_for_backward(x, w_ih, w_hh, b_ih, b_hh, hs)
        return hs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dhs: Tensor) -> tuple[Tensor | None, ...]:
        x, w_ih, w_hh, b_ih, b_hh, hs = ctx.saved_tensors
        steps, batch, inputs = x.shape
        hidden = w_hh.shape[1]
        gates = w_hh.shape[0]
        dw_ih, dw_hh = x.new_zeros(inputs, gates), x.new_zeros(hidden, gates)
        db_ih, db_hh = torch.zeros_like(b_ih), torch.zeros_like(b_hh)
        dx = torch.zeros_like(x) if ctx.needs_input_grad[1] else None
        _call(
            "backward", x.dtype, ctx.lstm, steps, batch, inputs, hidden, x, w_ih, w_hh, b_ih, b_hh, ctx.tape.tensor, hs,
            dhs.contiguous(), dw_ih, dw_hh, db_ih, db_hh, dx,
        )  # fmt: skip
        return None, dx, dw_ih.t(), dw_hh.t(), db_ih, db_hh


class _Buffer:
    """Memory for a tape, taken over from one that is gone where there is one.

    A tape is megabytes, and the system zeroes fresh memory page by page: a tenth of an iteration.
    """

    _spare = threading.local()

    def __init__(self, like: Tensor, numel: int):
        spare: list[Tensor] = getattr(self._spare, "tensors", [])
        fitting = (i for i, each in enumerate(spare) if each.numel() == numel and each.dtype == like.dtype)
        index = next(fitting, None)
        self.tensor = like.new_empty(numel) if index is None else spare.pop(index)

    def __del__(self) -> None:
        self._spare.tensors = [self.tensor, *getattr(self._spare, "tensors", [])][:4]


def _usable(x: Tensor) -> bool:
    global _announced
    if _mode == "plain" or x.device.type != "cpu" or x.dtype not in _SUFFIX:
        return False
    usable = load_library() is not None
    if not _announced:
        _announced = True
        log.info("kernels: %s", "fused" if usable else "plain PyTorch")
    return usable


def _applies(cell: Any, x: Tensor) -> bool:
    return (
        isinstance(cell, (nn.GRU, nn.LSTM))
        and (cell.num_layers, cell.bidirectional, cell.bias, cell.batch_first) == (1, False, True, False)
        and getattr(cell, "proj_size", 0) == 0
        and _usable(x)
    )


def _call(name: str, dtype: torch.dtype, *arguments: Any) -> None:
    """Tensors go by address; they stay alive through `arguments` until the call returns."""
    function = getattr(load_library(), f"{name}_{_SUFFIX[dtype]}")
    function(*map(_argument, arguments))


def _argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        assert value.is_contiguous()
        return ctypes.c_void_p(value.data_ptr())
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_int(value) if isinstance(value, int) else value


def _addresses(tensors: list[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    """A C array of pointers; whoever calls keeps the tensors alive."""
    assert all(tensor.is_contiguous() for tensor in tensors)
    return (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
