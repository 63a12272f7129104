"""A stack against its learners, one by one: the same numbers, whatever is stacked with what."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from rlstate.automata import DFA, zoo
from rlstate.control import EmissionChannel, Task
from rlstate.learning import kernels
from rlstate.learning.objectives import Algorithm, Auxiliary
from rlstate.learning.stack import Stack, _Chance, obstacle, shape
from rlstate.learning.trainer import Learner
from rlstate.learning.unrolled import Unrolled

PPO = Algorithm(batch=10, minibatches=4, adam_eps=1e-5)  # 4 does not divide 10: minibatches of two sizes
ENCODERS = {
    "gru": {"name": "gru", "hidden": 12},
    "lstm": {"name": "lstm", "hidden": 12},
    "window_mlp": {"name": "window_mlp", "hidden": 12, "window": 3},
    "transformer": {"name": "transformer", "hidden": 8, "layers": 1, "heads": 2},
}


@pytest.fixture(autouse=True)
def plain_and_no_fallback() -> Iterator[None]:
    """Learners on the path that is the definition; and an operation that vmap would do run by run is an error."""
    torch._C._functorch._set_vmap_fallback_enabled(False)
    with kernels.using("plain"):
        yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


def learners(
    names: tuple[str, ...] = ("mod_3", "mod_5", "parity"),
    encoder: str = "gru",
    algorithm: Algorithm = PPO,
    auxiliary: Auxiliary | None = None,
    shaping: str = "none",
    beta: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> list[Learner]:
    def task(dfa: DFA, name: str) -> Task:
        return Task(name, dfa, 5, emission=EmissionChannel.of(dfa, beta, "identity"))

    return [
        Learner(task(zoo.make(name), name), seed, ENCODERS[encoder], algorithm, auxiliary, shaping, dtype=dtype)
        for seed, name in enumerate(names)
    ]


def weights(learner: Learner) -> Tensor:
    return torch.cat([each.detach().flatten() for each in learner.policy.parameters()])


def alone(runs: list[Learner], iterations: int) -> list[dict[str, float]]:
    """Advance each by itself; the sums of its figures."""
    sums: list[dict[str, float]] = []
    for run in runs:
        total: dict[str, float] = {}
        for _ in range(iterations):
            for name, figure in run.iterate().items():
                total[name] = total.get(name, 0.0) + figure
        sums.append(total)
    return sums


def together(runs: list[Learner], iterations: int, workers: int = 0) -> list[tuple[dict[str, float], bool]]:
    stack = Stack(runs, runs[0].iteration + iterations, "cpu", workers)
    for _ in range(iterations):
        stack.iterate()
    return stack.store()


SETTINGS = {
    **{f"{encoder}, ppo": {"encoder": encoder} for encoder in ENCODERS},
    **{f"{encoder}, a2c": {"encoder": encoder, "algorithm": Algorithm("a2c", batch=10)} for encoder in ("gru", "lstm")},
    "one minibatch": {"algorithm": Algorithm(batch=10, adam_eps=1e-5)},
    "broadcast": {"algorithm": Algorithm(batch=10, credit="broadcast", minibatches=2, adam_eps=1e-5)},
    "not normalized": {"algorithm": Algorithm(batch=10, normalize=False, adam_eps=1e-5)},
    "state auxiliary": {"auxiliary": Auxiliary("state"), "names": ("mod_3", "mod_3")},
    "emission auxiliary": {"auxiliary": Auxiliary("emission", 0.5)},
    "emission auxiliary, a channel": {"auxiliary": Auxiliary("emission"), "beta": 0.4, "names": ("mod_5", "mod_5")},
    "shaping": {"shaping": "oracle"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_stack_is_its_learners(setting):
    runs, same = learners(**SETTINGS[setting]), learners(**SETTINGS[setting])
    figures, stored = alone(runs, 4), together(same, 4)
    for run, twin, figure, (total, diverged) in zip(runs, same, figures, stored, strict=True):
        torch.testing.assert_close(weights(twin), weights(run), rtol=0.0, atol=1e-10)
        assert total == pytest.approx(figure, abs=1e-9)
        assert not diverged
        assert twin.iteration == run.iteration == 4
        for name, moment in run.optimizer.state_dict()["state"].items():
            for key, value in moment.items():
                torch.testing.assert_close(twin.optimizer.state_dict()["state"][name][key], value, rtol=0.0, atol=1e-10)


def test_learners_go_on_from_where_a_stack_left_them_and_stacks_from_learners():
    expected, runs = learners(), learners()
    alone(expected, 6)
    alone(runs, 2)
    together(runs, 2)
    alone(runs, 2)
    for run, other in zip(runs, expected, strict=True):
        torch.testing.assert_close(weights(run), weights(other), rtol=0.0, atol=1e-10)


def test_company_makes_no_difference():
    """Other runs, their number, and tables padded to a larger automaton's."""
    small = learners(("mod_3", "parity"))[:1]
    together(small, 4)
    large = learners(("mod_3", "mod_11", "ends_with_101", "mod_5"))
    together(large, 4)
    torch.testing.assert_close(weights(small[0]), weights(large[0]), rtol=0.0, atol=1e-10)


def test_random_numbers_prepared_by_processes_are_the_same():
    here, ahead = learners(shaping="oracle"), learners(shaping="oracle")  # shaping has asked the oracle
    pickle.loads(pickle.dumps(_Chance(ahead)))  # as processes that are not forked get it
    together(here, 3)
    together(ahead, 3, workers=2)
    for run, other in zip(here, ahead, strict=True):
        assert torch.equal(weights(run), weights(other))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_an_iteration_never_asks_the_host(encoder):
    """PyTorch's meta device has no numbers: reading one, or meeting a tensor of another device, is an error."""
    stack = Stack(learners(encoder=encoder, dtype=torch.float32), 2, "meta")
    stack.iterate()
    stack.iterate()
    assert stack.iteration == 2


def test_a_run_that_diverges_changes_no_other_and_keeps_its_weights():
    expected, runs = learners(), learners()
    alone(expected[:2], 4)
    with torch.no_grad():
        runs[2].policy.policy_head.bias.fill_(float("inf"))
    before = weights(runs[2])
    stored = together(runs, 4)
    assert [diverged for _, diverged in stored] == [False, False, True]
    for run, other in zip(runs[:2], expected[:2], strict=True):
        torch.testing.assert_close(weights(run), weights(other), rtol=0.0, atol=1e-10)
    assert torch.equal(weights(runs[2]), before)
    assert [run.iteration for run in runs] == [4, 4, 0]
    assert int(runs[2].optimizer.state_dict()["state"][0]["step"]) == 0


def test_runs_of_other_shapes_or_iterations_are_refused():
    two_and_three_symbols = learners(("mod_3", "mod_5_hold"))
    assert len({shape(each.task, each.auxiliary) for each in two_and_three_symbols}) == 2
    with pytest.raises(ValueError, match="share their shapes"):
        Stack(two_and_three_symbols, 1, "cpu")
    ahead = learners()
    ahead[0].iterate()
    with pytest.raises(ValueError, match="at the same iteration"):
        Stack(ahead, 2, "cpu")


class _Mine(nn.Module):
    """An encoder that a stack can take, unless it is told to do what a stack cannot."""

    def __init__(self, inputs: int, habit: str = ""):
        super().__init__()
        self.layer, self.habit, self.out_features = nn.Linear(inputs, 6), habit, 6
        if habit == "buffer":
            self.register_buffer("scale", torch.rand(6))
        if habit == "recurrent":
            self.cell = nn.RNN(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x)
        if self.habit == "asks":
            h = h * (2.0 if float(h.detach().abs().sum()) >= 0.0 else 1.0)
        return self.cell(h)[0] if self.habit == "recurrent" else h


@pytest.mark.parametrize(
    ("habit", "says"), [("", None), ("asks", "item"), ("buffer", "buffers"), ("recurrent", "no run axis")]
)
def test_what_stands_in_the_way_of_stacking_is_said_beforehand(habit, says):
    encoder = {"name": f"{__name__}._Mine", "habit": habit}
    learner = Learner(Task("mod_3", zoo.make("mod_3"), 5), 0, encoder, PPO)
    reason = obstacle(learner)
    assert (reason is None) if says is None else (says in reason)
    if says is None:
        twin = Learner(learner.task, 0, encoder, PPO)
        alone([learner], 2)
        together([twin], 2)
        torch.testing.assert_close(weights(twin), weights(learner))


@pytest.mark.parametrize("cell", [nn.GRU(3, 5).double(), nn.LSTM(3, 5).double()])
def test_unrolled_cells_are_pytorchs(cell):
    x = torch.randn(7, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mine, carry = Unrolled(cell)(x)
    torch.testing.assert_close(mine, cell(x)[0])
    first, carry = Unrolled(cell)(x[:3])  # and a step at a time
    rest, _ = Unrolled(cell)(x[3:], carry)
    torch.testing.assert_close(torch.cat([first, rest]), mine)
