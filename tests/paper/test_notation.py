"""How a cell of seeds is written."""

from __future__ import annotations

import math

import pytest

from rlstate.paper.notation import Table, number, small, spread

T_975 = {1: 12.706205, 2: 4.302653}  # Student's t by degrees of freedom, from a printed table


def test_a_cell_is_mean_half_width_and_every_seed():
    half = T_975[2] * 0.1 / math.sqrt(3)  # of the standard deviation .1
    assert round(half, 2) == 0.25
    assert spread({2: 0.8, 0: 0.6, 1: 0.7}) == ".70 ±.25 (.60 .70 .80)"
    assert (
        spread({0: 0.05, 1: -0.05}, signed=True)
        == f"+.00 ±{number(T_975[1] * math.sqrt(0.005) / math.sqrt(2))} (+.05 −.05)"
    )


def test_one_seed_has_no_interval():
    assert spread({3: 0.67}) == ".67 (.67)"


def test_an_undefined_figure_is_in_no_mean():
    half = T_975[1] * math.sqrt(0.02) / math.sqrt(2)
    assert spread({0: 0.6, 1: None, 2: 0.8}) == f".70 ±{number(half)} (.60 – .80)"
    assert spread({0: None, 1: 0.4}) == ".40 (– .40)"
    assert spread({0: None, 1: None}) == "– (– –)"
    assert spread({}) == "missing"


def test_numbers():
    assert [number(value) for value in (0.666, 1.0, 0.0, -0.04, -0.001, None, math.nan, math.inf)] == [
        ".67", "1.00", ".00", "−.04", ".00", "–", "–", "∞",
    ]  # fmt: skip
    assert [number(value, signed=True) for value in (0.2, -0.2, -0.001)] == ["+.20", "−.20", "+.00"]


def test_a_table_is_rectangular():
    with pytest.raises(ValueError, match="2 cells, but there are 1 columns"):
        Table("key", "title", "caption", ("one",), (("1", "2"),))


def test_small_numbers_are_not_0():
    assert [small(value) for value in (0.0, 1.5e-5, 0.0004, 0.031, 0.5, None)] == [
        "0",
        "2e-05",
        "4e-04",
        ".031",
        ".500",
        "–",
    ]
