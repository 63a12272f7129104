"""The fused path is the plain path: forward, gradients, rollouts, losses and trajectories; and it can fail to build politely."""

from __future__ import annotations

import copy
import logging
import math
import multiprocessing
import os
import shutil
import subprocess
import sys

import pytest
import torch
from torch import nn

from rlstate.automata import zoo
from rlstate.control import EmissionChannel, Stream, Task
from rlstate.learning import kernels
from rlstate.learning.kernels import build
from rlstate.learning.objectives import Algorithm, Auxiliary
from rlstate.learning.rollout import rollout
from rlstate.learning.trainer import Learner

pytestmark = pytest.mark.skipif(
    build.load_library() is None, reason="there is no C++ compiler here to build the kernels with"
)

CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}


def task(name="mod_5", horizon=6, beta=0.0) -> Task:
    dfa = zoo.make(name)
    return Task(name, dfa, horizon, 0.5, EmissionChannel.identity(dfa, beta))


def cell(name: str, inputs=3, hidden=5, dtype=torch.float64) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return CELLS[name](inputs, hidden).to(dtype)


def noise(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# --- the recurrence ---------------------------------------------------------------------------------------------------


# Widths below, at and beside the vector width; one step; one episode.
SHAPES = [(4, 3, 3, 5), (1, 2, 4, 8), (3, 1, 2, 16), (5, 7, 6, 19), (12, 64, 6, 64), (2, 9, 17, 33)]


@pytest.mark.parametrize(("steps", "batch", "inputs", "hidden"), SHAPES)
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_forward_and_gradients_are_pytorchs(name, steps, batch, inputs, hidden, dtype, tolerance):
    module = cell(name, inputs, hidden, dtype)
    x = (3.0 * noise(steps, batch, inputs, dtype=dtype)).requires_grad_()
    weighting = noise(steps, batch, hidden, seed=1, dtype=dtype)
    found = []
    for fused in (False, True):
        hs = kernels.recurrence(module, x) if fused else module(x)[0]
        found.append([hs, *torch.autograd.grad((hs * weighting).sum(), [x, *module.parameters()])])
    for plain, fast in zip(*found):
        scale = float(plain.detach().abs().max())
        torch.testing.assert_close(fast, plain, rtol=tolerance, atol=tolerance * max(scale, 1.0))


@pytest.mark.parametrize("name", CELLS)
def test_gradcheck(name):
    module = cell(name, 2, 3)
    weights = [p.detach().requires_grad_() for p in module.parameters()]
    x = noise(4, 2, 2).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x, *w: kernels._Recurrence.apply(name == "lstm", x, *w), (x, *weights), eps=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_and_huge_inputs(name, dtype):
    """tanh near 0 keeps its relative precision; far out everything saturates and stays finite."""
    module = cell(name, 3, 8, dtype)
    for p in module.parameters():
        nn.init.zeros_(p)
    tiny = torch.finfo(dtype).eps * 16
    with torch.no_grad():
        (module.weight_ih_l0.view(-1, 8, 3)[2]).fill_(1.0)  # the candidate's gate
    for scale in (tiny, 1.0, 1e4, 1e30):
        x = scale * noise(3, 4, 3, dtype=dtype)
        fast, plain = kernels.recurrence(module, x), module(x)[0]
        assert torch.isfinite(fast).all()
        torch.testing.assert_close(fast, plain, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0.0)


@pytest.mark.parametrize("name", CELLS)
def test_nan_and_infinity_survive(name):
    module, x = cell(name, 3, 8, torch.float32), noise(5, 4, 3, dtype=torch.float32)
    x[2, 1, 0] = torch.nan
    fast = kernels.recurrence(module, x)
    assert torch.equal(torch.isnan(fast), torch.isnan(module(x)[0]))
    assert torch.isnan(fast[2:, 1]).all()
    assert torch.isfinite(fast[:, [0, 2, 3]]).all()
    # Flush-to-zero would change every other computation of the process.
    smallest = torch.tensor(torch.finfo(torch.float32).tiny)
    assert float(smallest / 2) > 0.0


def test_what_the_kernels_do_not_know_is_left_to_pytorch():
    x = noise(3, 2, 4)
    for module in (
        nn.GRU(4, 3, num_layers=2),
        nn.GRU(4, 3, bidirectional=True),
        nn.LSTM(4, 3, proj_size=2),
        nn.RNN(4, 3),
    ):
        assert kernels.recurrence(module.double(), x) is None
    assert kernels.recurrence(nn.GRU(4, 3).half(), x.half()) is None
    with kernels.using("plain"):
        assert kernels.recurrence(cell("gru", 4), x) is None


# --- rollouts and losses ----------------------------------------------------------------------------------------------


def learner(encoder="gru", name="ppo", beta=0.0, auxiliary="none", dtype=torch.float64, **algorithm) -> Learner:
    return Learner(
        task("mined_ean", beta=beta), 3, {"name": encoder, "hidden": 12},
        Algorithm(name=name, **{"batch": 24, "adam_eps": 1e-5, **algorithm}), Auxiliary(auxiliary), dtype=dtype,
    )  # fmt: skip


@pytest.mark.parametrize("encoder", CELLS)
@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize(("beta", "mute"), [(0.0, False), (0.5, False), (0.5, True)])
def test_rollouts_are_the_plain_ones(encoder, greedy, beta, mute):
    run = learner(encoder, beta=beta)
    draws = run.task.draw(0, Stream.TRAIN, 0, 300, 13)
    with kernels.using("fused"):
        fast = rollout(run.policy, run.task, draws, greedy=greedy, mute=mute)
    with kernels.using("plain"):
        plain = rollout(run.policy, run.task, draws, greedy=greedy, mute=mute)
    for name, value in vars(plain).items():
        torch.testing.assert_close(getattr(fast, name), value, rtol=1e-12, atol=1e-12)


AUXILIARIES = [("none", 0.0), ("state", 0.0), ("emission", 0.0), ("emission", 0.5)]


@pytest.mark.parametrize("encoder", CELLS)
@pytest.mark.parametrize("name", ["ppo", "a2c"])
@pytest.mark.parametrize(("auxiliary", "beta"), AUXILIARIES)
@pytest.mark.parametrize("clipped", [False, True])
def test_an_update_is_the_gradient(encoder, name, auxiliary, beta, clipped):
    """With a huge epsilon Adam's first step is the gradient times the learning rate over epsilon."""
    batch, episodes = None, torch.tensor([5, 0, 17, 3, 11])
    found = []
    for mode in ("fused", "plain"):
        run = learner(
            encoder, name, beta, auxiliary, learning_rate=1e8, adam_eps=1e8, max_grad_norm=0.01 if clipped else 1e9
        )
        with torch.no_grad():
            run.policy.policy_head.weight *= 10.0
        if batch is None:
            batch = run.credit(rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 0, 24)))
            batch.log_probs += 0.5 * noise(*batch.log_probs.shape)  # so that some ratios are clipped, on both sides
        before = [parameter.detach().clone() for parameter in run.policy.parameters()]
        with kernels.using(mode):
            figures = run.update(batch, [episodes])
        found.append([before - after.detach() for before, after in zip(before, run.policy.parameters())])
        found[-1].append(torch.tensor(list(figures.values()), dtype=torch.float64))
    assert len(found[0]) == len(found[1])
    for fast, plain in zip(*found):
        assert plain.abs().max() > 0.0
        torch.testing.assert_close(fast, plain, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("encoder", CELLS)
@pytest.mark.parametrize(("name", "minibatches"), [("ppo", 1), ("ppo", 3), ("a2c", 1)])
@pytest.mark.parametrize(("auxiliary", "beta"), AUXILIARIES)
def test_a_hundred_iterations_on_recorded_rollouts(encoder, name, minibatches, auxiliary, beta):
    """In float64 both paths stay together when they are trained on the same episodes, and leave the same state behind."""
    settings = {"beta": beta, "auxiliary": auxiliary, "batch": 8, "epochs": 2, "minibatches": minibatches}
    runs = {mode: learner(encoder, name, **settings) for mode in ("fused", "plain")}
    recorder = learner(encoder, name, **settings)
    for iteration in range(100):
        batch = recorder.credit(
            rollout(recorder.policy, recorder.task, recorder.task.draw(0, Stream.TRAIN, iteration, 8))
        )
        for mode, run in runs.items():
            run.iteration = iteration
            with kernels.using(mode):
                run.update(batch, run.minibatches())
    for fast, plain in zip(runs["fused"].policy.parameters(), runs["plain"].policy.parameters()):
        torch.testing.assert_close(fast, plain, rtol=1e-7, atol=1e-9)
    fast, plain = (runs[mode].optimizer.state_dict()["state"] for mode in ("fused", "plain"))
    for parameter, state in plain.items():
        for key, value in state.items():
            torch.testing.assert_close(fast[parameter][key], value, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("mode", ["fused", "plain"])
def test_a_gradient_that_is_not_finite_changes_nothing(mode):
    run = learner("gru", dtype=torch.float32)
    with kernels.using(mode):
        run.iterate()
        batch = run.credit(rollout(run.policy, run.task, run.task.draw(0, Stream.TRAIN, 1, 24)))
        batch.targets[2, 1] = torch.inf
        before = copy.deepcopy(run.state_dict())
        assert not math.isfinite(run.update(batch, [None])["grad_norm"])
    for key in ("policy", "optimizer"):
        for old, new in zip(_leaves(before[key]), _leaves(run.state_dict()[key]), strict=True):
            assert torch.equal(torch.as_tensor(old), torch.as_tensor(new))


def _leaves(tree):
    if isinstance(tree, (dict, list, tuple)):
        return [leaf for each in (tree.values() if isinstance(tree, dict) else tree) for leaf in _leaves(each)]
    return [] if tree is None else [tree]


@pytest.mark.parametrize("encoder", CELLS)
def test_five_updates_in_float32(encoder):
    weights = []
    for mode in ("fused", "plain"):
        run = learner(encoder, dtype=torch.float32, batch=64)
        with kernels.using(mode):
            for _ in range(5):
                run.iterate()
        weights.append(torch.cat([p.detach().flatten() for p in run.policy.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CELLS)
def test_sums_have_one_order(name):
    """Results depend on shapes alone: not on the process's threads, nor on where the arrays lie in memory."""
    module, found = cell(name, 6, 64, torch.float32), []
    for threads, offset in ((1, 0), (2, 0), (1, 1)):
        torch.set_num_threads(threads)
        x = torch.empty(12 * 64 * 6 + offset)[offset:].view(12, 64, 6).copy_(noise(12, 64, 6, dtype=torch.float32))
        hs = kernels.recurrence(module, x)
        found.append(
            torch.cat([g.flatten() for g in torch.autograd.grad(hs.square().sum(), list(module.parameters()))])
        )
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


# --- building ---------------------------------------------------------------------------------------------------------


def in_a_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import logging; logging.basicConfig()\n{code}"],
        capture_output=True, text=True, env={**os.environ, **environment}, timeout=300,
    )  # fmt: skip


def test_a_compiler_that_fails_leaves_the_plain_path_and_one_warning(tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "this does not compile" >&2\nexit 1\n')
    compiler.chmod(0o755)
    code = (
        "import torch; from rlstate.learning import kernels; from torch import nn\n"
        "x = torch.zeros(2, 2, 3)\n"
        "print([kernels.recurrence(nn.GRU(3, 4), x) for _ in range(3)])\n"
    )
    done = in_a_new_process(code, CXX=str(compiler), RLSTATE_CACHE=str(tmp_path / "cache"), RLSTATE_KERNELS="auto")
    assert done.stdout.strip() == "[None, None, None]"
    assert done.stderr.count("could not be built") == 1
    assert "this does not compile" in done.stderr
    assert "set CXX" in done.stderr
    assert not list((tmp_path / "cache").glob("*.so"))


def test_forcing_what_cannot_be_had_is_an_error(monkeypatch):
    monkeypatch.setattr(kernels, "load_library", lambda: None)
    with pytest.raises(RuntimeError, match="cannot be built"), kernels.using("fused"):
        pass
    with pytest.raises(ValueError, match="'fast' is unknown"), kernels.using("fast"):
        pass


def _build(cache: str) -> str:
    os.environ["RLSTATE_CACHE"] = cache
    build.load_library.cache_clear()
    return str(build._built(os.environ.get("CXX") or shutil.which("g++") or "c++"))


def test_processes_that_build_at_once_do_not_disturb_each_other(tmp_path):
    with multiprocessing.get_context("fork").Pool(3) as pool:
        paths = pool.map(_build, [str(tmp_path)] * 3)
    assert len(set(paths)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [os.path.basename(paths[0])]


def test_the_choice_is_logged_once(caplog, monkeypatch):
    monkeypatch.setattr(kernels, "_announced", False)
    with caplog.at_level(logging.INFO, "rlstate"):
        for _ in range(3):
            kernels.recurrence(cell("gru"), noise(2, 2, 3))
    assert caplog.text.count("kernels: fused") == 1
