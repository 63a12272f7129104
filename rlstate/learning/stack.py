"""Many runs as one, for a GPU: `Learner.iterate` once more, over a run axis.

A run is a few thousand small operations an iteration, far too little for a GPU. `_Program.iteration` writes one run's iteration
as a function of its weights; `torch.func.vmap` gives every tensor in it a run axis, and a CUDA graph replays the whole of it
without the host. Rollout, credit and objective are those of a single run. `tests/learning/test_stack.py` holds a stack to its
learners, one by one.

Runs of a stack share a configuration and the shapes of their weights. Their automata may differ: tables are padded to the
largest, weights never.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, Dataset

from rlstate.control import Stream
from rlstate.control.task import Task
from rlstate.learning import kernels
from rlstate.learning.objectives import Auxiliary, Batch, objective
from rlstate.learning.policy import Policy
from rlstate.learning.rollout import Chance, Tables, World, play
from rlstate.learning.trainer import Learner, credit, minibatches, shuffled
from rlstate.learning.unrolled import unrolled

log = logging.getLogger("rlstate")

WARM_UP = 3  # iterations before the graph is captured: libraries choose their algorithms and workspaces in them


def shape(task: Task, auxiliary: Auxiliary) -> tuple[int, ...]:
    """What runs must share, beside their configuration, to be stacked: symbols, colours, and the auxiliary head's width."""
    return task.layout.n_symbols, task.layout.n_colours, auxiliary.outputs(task)


def obstacle(learner: Learner) -> str | None:
    """Why runs like `learner` cannot be stacked; None where they can. Tried on PyTorch's meta device, which computes nothing.

    What fails there would fail in a stack: an operation without a run axis, one that asks for a number on the host, a tensor
    that an encoder keeps on a device of its own.
    """
    if any(isinstance(each, nn.RNNBase) for each in unrolled(learner.policy).modules()):
        return "PyTorch's recurrent modules have no run axis on a GPU"
    try:
        Stack([learner], learner.iteration + 1, "meta").iterate()
    except Exception as error:  # a user's encoder may do anything
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return None


class State(NamedTuple):
    """Where a run is: its weights as one vector, and Adam's moments of them."""

    weights: Tensor  # float[P]
    mean: Tensor  # float[P]
    square: Tensor  # float[P]
    updates: Tensor  # float[]   gradient steps so far
    iteration: Tensor  # int[]
    diverged: Tensor  # bool[]   a gradient was not finite: nothing changes any more


class Stack:
    """Runs that share a configuration, at the same iteration, trained together.

    Args:
        learners: on the CPU; `store` brings them to where the stack is.
        until: the iteration at which training will end, up to which random numbers are prepared.
        workers: processes that prepare them ahead; 0: this one, when they are needed.

    Raises:
        ValueError: runs that cannot be stacked: other shapes or iterations, or encoders with buffers.
    """

    def __init__(self, learners: Sequence[Learner], until: int, device: str | torch.device, workers: int = 0):
        first = learners[0]
        if len({(shape(each.task, each.auxiliary), each.iteration) for each in learners}) > 1:
            raise ValueError("runs of a stack must share their shapes and be at the same iteration")
        if any(True for _ in first.policy.buffers()):
            raise ValueError(
                "the encoder has buffers, which a stack would share between runs; only parameters are stacked"
            )
        self.learners, self.device, self.iteration = learners, torch.device(device), first.iteration
        self._program = _Program(first)
        self._iterate = vmap(self._program.iteration)
        self._state = State(*(self._stacked(parts) for parts in zip(*map(_state, learners))))
        self._task = _padded([_task_tables(each) for each in learners], self.device)
        self._chance: dict[str, Tensor] = {}
        self._sums: dict[str, Tensor] = {}
        self._graph: torch.cuda.CUDAGraph | None = None
        self._draws = self._prepared(until, workers)
        self._began = first.iteration

    def iterate(self) -> None:
        """One iteration of every run. The host waits for nothing: figures are summed on the device until `store`."""
        for name, drawn in next(self._draws).items():
            if name in self._chance:
                self._chance[name].copy_(drawn, non_blocking=True)
            else:
                self._chance[name] = drawn.to(self.device)
        if self.device.type == "cuda" and self.iteration == self._began + WARM_UP:
            self._graph = self._captured()
        if self._graph is None:
            self._step()
        else:
            self._graph.replay()
        self.iteration += 1

    def store(self) -> list[tuple[dict[str, float], bool]]:
        """Bring the learners to the stack's weights and iteration.

        Returns, for each, the sums of its figures since the last time, and whether it diverged. One that did has stopped:
        its weights and its iteration are those before the update that was not finite.
        """
        state = State(*(each.cpu() for each in self._state))
        sums = {name: total.tolist() for name, total in self._sums.items()}
        for total in self._sums.values():
            total.zero_()
        for r, learner in enumerate(self.learners):
            _restore(learner, State(*(each[r] for each in state)))
        diverged = state.diverged.tolist()
        return [({name: total[r] for name, total in sums.items()}, diverged[r]) for r in range(len(self.learners))]

    def _step(self) -> None:
        with sdpa_kernel(SDPBackend.MATH):  # fused attention has no run axis
            state, figures = self._iterate(self._state, self._task, self._chance)
        for old, new in zip(self._state, state):
            old.copy_(new)
        for name, figure in figures.items():
            if name in self._sums:
                self._sums[name] += figure
            else:
                self._sums[name] = figure.double()  # exact: how training was cut into pieces leaves no trace

    def _captured(self) -> torch.cuda.CUDAGraph | None:
        """`_step` as a graph; capturing computes nothing. None where it cannot be: `_step` itself does the same, slower."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._step()
        except RuntimeError as error:
            log.warning("an iteration could not be captured as a CUDA graph (%s); it runs step by step, slower", error)
            return None
        return graph

    def _stacked(self, tensors: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(tensors)).to(self.device)

    def _prepared(self, until: int, workers: int) -> Iterator[dict[str, Tensor]]:
        return iter(
            DataLoader(
                _Chance(self.learners),
                sampler=range(self.iteration, until),
                batch_size=None,
                num_workers=workers,
                pin_memory=self.device.type == "cuda",
            )
        )


class _Program:
    """What an iteration is made of that no run has to itself: the configuration, and modules without weights of their own."""

    def __init__(self, learner: Learner):
        self.task, self.algorithm, self.auxiliary = learner.task, learner.algorithm, learner.auxiliary
        self.policy = unrolled(learner.policy)
        self.names = [name for name, _ in self.policy.named_parameters()]
        self.shapes = [tuple(parameter.shape) for parameter in self.policy.parameters()]
        self._borrowed = _Borrowed(self.policy)

    def iteration(
        self, state: State, task: dict[str, Tensor], chance: dict[str, Tensor]
    ) -> tuple[State, dict[str, Tensor]]:
        """`Learner.iterate` as a function: play, assign credit, update."""
        algorithm = self.algorithm
        tables = Tables(*(task[name] for name in Tables._fields))
        world = World(self.task.layout, tables, Chance(*(chance[name] for name in Chance._fields)))
        played = self._with(state.weights, play, world)
        batch = credit(played, algorithm, self.auxiliary, self.task, task.get("potential"))

        figures: dict[str, Tensor] = {}
        for episodes in minibatches(chance.get("orders"), algorithm):
            gradient, figures = self._gradient(state.weights, batch.episodes(episodes))
            state, figures["grad_norm"] = self._adam(state, gradient)
        figures["success"] = played.accepted.mean()
        return state._replace(iteration=state.iteration + ~state.diverged), figures

    def _gradient(self, weights: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        def loss(weights: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            return self._with(weights, objective, batch, self.algorithm, self.auxiliary)

        gradient, (_, terms) = grad_and_value(loss, has_aux=True)(weights)
        return gradient, terms

    def _adam(self, state: State, gradient: Tensor) -> tuple[State, Tensor]:
        """Clip and take Adam's step (Kingma & Ba, 2015, algorithm 1); nothing where the norm is not finite. Also the norm."""
        algorithm, (beta1, beta2) = self.algorithm, (0.9, 0.999)
        norm = gradient.norm()
        diverged = state.diverged | ~norm.isfinite()
        gradient = gradient * (algorithm.max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
        updates = state.updates + 1.0
        mean = state.mean + (1.0 - beta1) * (gradient - state.mean)
        square = beta2 * state.square + (1.0 - beta2) * gradient.square()
        size = algorithm.learning_rate / (1.0 - beta1**updates)
        weights = state.weights - size * mean / ((square / (1.0 - beta2**updates)).sqrt() + algorithm.adam_eps)

        def kept(old: Tensor, new: Tensor) -> Tensor:
            return torch.where(diverged, old, new)

        return State(
            kept(state.weights, weights),
            kept(state.mean, mean),
            kept(state.square, square),
            kept(state.updates, updates),
            state.iteration,
            diverged,
        ), norm

    def _with(self, weights: Tensor, function: Any, *arguments: Any) -> Any:
        """function(policy, *arguments), of the policy with these weights float[P]."""
        sizes = [int(np.prod(each)) for each in self.shapes]
        pieces = (piece.view(each) for piece, each in zip(weights.split(sizes), self.shapes))
        named = {f"policy.{name}": piece for name, piece in zip(self.names, pieces)}
        return functional_call(self._borrowed, named, (function, *arguments))


class _Borrowed(nn.Module):
    """Makes any function of a policy one that `functional_call` can call."""

    def __init__(self, policy: Policy):
        super().__init__()
        self.policy = policy

    def forward(self, function: Any, *arguments: Any) -> Any:
        return function(self.policy, *arguments)


class _Chance(Dataset):
    """The random numbers of every run, by iteration: those that each run has alone."""

    def __init__(self, learners: Sequence[Learner]):
        # Tasks anew, without the oracles that they have computed: this goes to other processes.
        self._runs = [(dataclasses.replace(each.task), each.seed, each.algorithm) for each in learners]

    def __getitem__(self, iteration: int) -> dict[str, np.ndarray]:
        drawn = [task.draw(seed, Stream.TRAIN, iteration, algorithm.batch) for task, seed, algorithm in self._runs]
        arrays = {name: np.stack([getattr(each, name) for each in drawn]) for name in Chance._fields}
        orders = [shuffled(seed, iteration, algorithm) for _, seed, algorithm in self._runs]
        if orders[0] is not None:
            arrays["orders"] = torch.stack(orders).numpy()  # type: ignore[arg-type]
        return arrays


def _state(learner: Learner) -> State:
    parameters = list(learner.policy.parameters())
    moments = [kernels.adam_state(learner.optimizer, each) for each in parameters]

    def vector(tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat([each.detach().flatten() for each in tensors])

    return State(
        vector(parameters),
        vector([each["exp_avg"] for each in moments]),
        vector([each["exp_avg_sq"] for each in moments]),
        moments[0]["step"].to(parameters[0].dtype),
        torch.tensor(learner.iteration),
        torch.tensor(False),
    )


@torch.no_grad()
def _restore(learner: Learner, state: State) -> None:
    """The inverse of `_state`."""
    at = 0
    for parameter in learner.policy.parameters():
        piece = slice(at, at := at + parameter.numel())
        moments = kernels.adam_state(learner.optimizer, parameter)
        parameter.copy_(state.weights[piece].view_as(parameter))
        moments["exp_avg"].copy_(state.mean[piece].view_as(parameter))
        moments["exp_avg_sq"].copy_(state.square[piece].view_as(parameter))
        moments["step"].fill_(float(state.updates))
    learner.iteration = int(state.iteration)


def _task_tables(learner: Learner) -> dict[str, Tensor]:
    """An automaton as `iteration` reads it, and the shaping potential where there is one."""
    tables = Tables.of(learner.task, next(learner.policy.parameters()))._asdict()
    return tables | ({} if learner.potential is None else {"potential": learner.potential})


def _padded(tables: Sequence[dict[str, Tensor]], device: torch.device) -> dict[str, Tensor]:
    """Stacked, each padded with zeros to the largest in its last dimension (states, or states × symbols)."""

    def stacked(name: str) -> Tensor:
        width = max(each[name].shape[-1] if each[name].ndim else 0 for each in tables)
        return torch.stack(
            [
                nn.functional.pad(each[name], (0, width - each[name].shape[-1])) if width else each[name]
                for each in tables
            ]
        ).to(device)

    return {name: stacked(name) for name in tables[0]}
