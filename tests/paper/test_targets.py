"""The paper's figures agree with each other where they must, and its task lists with the configuration."""

from __future__ import annotations

import pytest

from rlstate.automata import zoo
from rlstate.paper import targets
from rlstate.paper.claims_structure import INTERVENED
from rlstate.statistics import wilson
from rlstate.train import compose


def tasks(experiment: str) -> set[str]:
    return set(compose([f"+experiment={experiment}"])["tasks"])


def test_the_task_lists_are_those_of_the_experiments():
    assert set(targets.SUITE) == tasks("suite") == tasks("capacity")
    assert len(targets.SUITE) == 18
    assert {f"mod_{k}" for k in targets.COUNTERS} == tasks("table2")
    assert set(targets.LOGS) == {task for task in tasks("mined") if task.startswith("mined_log_")}
    assert set(INTERVENED) == tasks("intervention")


def test_the_designed_tasks_are_the_labelled_ones_of_the_zoo():
    labelled = {name for name in zoo.names() if zoo.describe(name).label} - {"mined_div7", "mined_ean"}
    assert set(targets.DESIGNED) == labelled
    assert len(targets.DESIGNED) == 15
    assert set(targets.HARD) == {name for name in labelled if zoo.describe(name).label == "hard"}


def test_table_3_adds_up():
    table = targets.TABLE3
    for line in table.values():
        assert line.n == line.perception + line.planning + line.solved
    for i in range(4):
        assert table["permutation"][i] == table["hard"][i] + table["easy_perm"][i]
    assert (table["permutation"].perception, table["permutation"].n) == targets.HELDOUT_PRECISION
    gaps = table["permutation"].perception + table["non-permutation"].perception
    assert (table["permutation"].perception, gaps) == targets.HELDOUT_RECALL
    assert (table["hard"].perception, gaps) == targets.HELDOUT_CONJUNCTION_RECALL
    interval = wilson(*targets.HELDOUT_PRECISION)
    assert interval[1:] == pytest.approx(targets.HELDOUT_PRECISION_INTERVAL, abs=0.005)


def test_hard_tasks_have_the_benefit_of_the_label():
    for k, benefit in targets.TABLE2_BENEFIT.items():
        assert (benefit >= targets.HARD_BENEFIT) == (f"mod_{k}" in targets.HARD)
    assert targets.TABLE1_GAP.keys() == targets.TABLE1_VAL_N.keys()
