"""The paper's tables, of rows made by hand: every number is counted here by other means."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlstate.paper import targets
from rlstate.paper.notation import Table, number
from rlstate.paper.rules import A2C, A2C_BROADCAST, EMISSION, PPO, PPO_BROADCAST, STATE
from rlstate.paper.select import Arm, deciding
from rlstate.paper.tables import all_runs, tables
from rlstate.results import Row

USUAL = {"gain": 0.5, "gain_se": 0.01, "recovery": 0.9, "probe_gap": 0.3, "capacity": 1.0, "capacity_ood": 1.0}
T_975 = {1: 12.706205, 2: 4.302653, 4: 2.776445}  # Student's t by degrees of freedom, from a printed table


def made(task: str, arm: Arm = PPO, identity: str = "", **figures) -> list[Row]:
    """Rows of seeds 0, 1, …: lists have a figure a seed, what is no list is the same in each."""
    seeds = max((len(value) for value in figures.values() if isinstance(value, list)), default=1)
    rows = []
    for seed in range(seeds):
        own = {name: value[seed] if isinstance(value, list) else value for name, value in figures.items()}
        config = {**deciding(arm), "task.name": task}
        rows.append(
            Row("paper", identity or f"{task}/{arm}", task, seed, "", config, {**USUAL, **own}, {}, [], True, [], 90.0,
                "c0ffeec0ffee")
        )  # fmt: skip
    return rows


def table(rows: list[Row], key: str) -> Table:
    (found,) = [each for each in tables(rows) if each.key == key]
    return found


def line(of: Table, *starts: str) -> list[str]:
    """The row whose first cells these are, without them."""
    (found,) = [row for row in of.rows if row[: len(starts)] == starts]
    return list(found[len(starts) :])


# --- Table 1 and Appendix A ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_by_two() -> list[Row]:
    """Parity complete with the GRU; on mod_3 a mixed cell, a single seed, and one of another protocol."""
    return [
        *made("parity", A2C_BROADCAST, val_n=[0.66, 0.68, 0.67], probe_gap=[0.0, 0.1, 0.2]),
        *made("parity", A2C, val_n=[0.60, 0.70, 0.80], probe_gap=[0.1, 0.1, 0.1]),
        *made("parity", PPO_BROADCAST, val_n=[0.7, 0.8, 0.9], probe_gap=[0.2, 0.4, 0.6]),
        *made("parity", PPO, val_n=[0.7, 0.8, 0.9], probe_gap=[0.5, 0.3, None]),
        *made("mod_3", A2C_BROADCAST, "one", val_n=[0.1, 0.1]),
        *made("mod_3", A2C_BROADCAST, "two", val_n=[0.9, 0.9]),
        *made("mod_3", PPO, val_n=[0.95], probe_gap=[0.31], ood_n=[0.75]),
        *(replace(row, config={**row.config, "task.horizon": 12}) for row in made("mod_3", A2C, val_n=[0.99])),
    ]


def test_table_1(two_by_two):
    found = table(two_by_two, "table1_gru")
    assert found.columns == (
        "optimizer × credit", "parity val_n", "paper", "parity probe gap", "paper", "mod_3 val_n", "paper",
        "mod_3 probe gap", "paper",
    )  # fmt: skip
    half = T_975[2] * 0.01 / math.sqrt(3)
    first = line(found, "A2C × broadcast")
    assert first[:4] == [f".67 ±{number(half)} (.66 .68 .67)", ".66 ±.04", "+.10 ±.25 (+.00 +.10 +.20)", "+.01 ±.00"]
    assert line(found, "PPO × discounted")[2] == f"+.40 ±{number(T_975[1] * 0.1)} (+.50 +.30 –)"  # s/√2 = .1
    assert line(found, "PPO × discounted")[4:] == [".95 (.95)", ".80 ±.18", "+.31 (+.31)", "+.21 ±.12"]


def test_mixed_cells_are_never_averaged(two_by_two):
    found = table(two_by_two, "table1_gru")
    assert line(found, "A2C × broadcast")[4] == "mixed: one, two"
    assert any("mixed: mod_3" in note and "one, two" in note for note in found.notes)


def test_what_is_missing_is_said_with_its_command(two_by_two):
    found = table(two_by_two, "table1_gru")
    assert line(found, "A2C × discounted")[4] == "missing"  # what there is, is of another protocol
    assert line(found, "PPO × broadcast")[4] == "missing"
    (missing,) = [note for note in found.notes if note.startswith("missing")]
    assert "`python -m rlstate.train +experiment=table1`" in missing
    assert "GRU, PPO × broadcast: parity (3 of 5 seeds), mod_3" in missing
    assert "GRU, PPO × discounted: parity (3 of 5 seeds), mod_3 (1 of 5 seeds)" in missing
    assert "window" not in missing  # that is another table's


def test_only_tables_with_runs_are_there(two_by_two):
    keys = [each.key for each in tables(two_by_two)]
    assert {"table1_gru", "table1_ood", "decision", "table2", "suite", "all_runs"} <= set(keys)
    absent = {
        "table1_window_mlp",
        "long_budget",
        "shaping",
        "auxiliary",
        "beta",
        "table4",
        "intervention",
        "mined",
        "table3",
        "heldout_lstm",
    }
    assert not absent & set(keys)
    assert [each.key for each in tables([])] == ["credit", "proposition_1"]


def test_success_at_4t(two_by_two):
    assert line(table(two_by_two, "table1_ood"), "GRU, PPO × discounted") == ["– (– – –)", ".75 (.75)", ".75 ±.20"]


def test_the_decision_rule_pairs_seeds(two_by_two):
    found = table(two_by_two, "decision")
    # broadcast .2 .3 .4; discounted .4 .2, the third seed undefined; both where both are: .3, .25
    assert line(found, "optimizer", "A2C → PPO at broadcast")[:2] == ["+.30 ±.25 (+.20 +.30 +.40)", "+.12"]
    discounted = line(found, "optimizer", "A2C → PPO at discounted")
    assert discounted[:2] == [f"+.30 ±{number(T_975[1] * 0.1)} (+.40 +.20)", "+.18"]
    half = T_975[1] * 0.05 / 2
    assert line(found, "optimizer", "mean of the two")[:2] == [f"+.28 ±{number(half)} (+.30 +.25)", "+.15"]
    assert line(found, "credit", "broadcast → discounted under A2C")[:2] == ["+.00 ±.25 (+.10 +.00 −.10)", "+.01"]
    assert line(found, "optimizer", "A2C → PPO at broadcast")[2] == "mixed: one, two"
    assert line(found, "credit", "broadcast → discounted under PPO")[2] == "missing"


def test_the_long_budget():
    long = replace(A2C_BROADCAST, iterations=30_000)
    found = table(made("mod_3", long, val_n=[0.9] * 10, probe_gap=0.34), "long_budget")
    assert line(found, "mod_3", "6 000")[0] == "missing"
    assert line(found, "mod_3", "30 000")[:4] == [
        f".90 ±.00 ({' '.join(['.90'] * 10)})", ".95", f"+.34 ±.00 ({' '.join(['+.34'] * 10)})", "+.34",
    ]  # fmt: skip
    assert line(found, "mod_3", "30 000")[-1] == "solved"
    (note,) = [note for note in found.notes if "+experiment=long_budget" in note]
    assert "parity" in note
    assert "mod_3" not in note  # it has its ten seeds


# --- capacity -----------------------------------------------------------------------------------------------------


def test_capacity_is_read_from_any_run_of_task_and_encoder():
    oracle = {"optimal": 0.75, "random": 0.5, "ood_optimal": 0.75, "ood_random": 0.5}
    of = Arm(encoder="transformer", iterations=1), Arm("a2c", encoder="transformer")
    rows = [row for arm in of for row in made("parity", arm, val_n=[0.7])]
    rows[0] = replace(rows[0], oracle=oracle, figures={**rows[0].figures, "capacity": 0.98, "capacity_ood": 0.55})
    rows[1] = replace(rows[1], oracle=oracle, figures={**rows[1].figures, "capacity": 0.99, "capacity_ood": 0.55})
    rows += made("parity", replace(EMISSION, beta=1.0), val_n=[0.9])  # a channel makes it another capacity
    found = table(rows, "capacity")
    cells = dict(zip(found.columns, found.rows[0]))
    assert [cells[name] for name in ("task", "room at T", "room at 4T", "diagnostic")] == [
        "parity",
        ".25",
        ".25",
        "yes",
    ]
    assert (cells["transformer T"], cells["transformer 4T"], cells["GRU T"]) == (".98….99", ".55", "missing")
    assert "GRU (all)" in found.notes[0]


# --- levers -------------------------------------------------------------------------------------------------------


def test_beta_mutes_only_where_there_is_a_channel():
    rows = [
        *made("mod_5", EMISSION, val_n=[0.5], probe_gap=0.14, input_gap=0.02),
        *made("mod_5", replace(EMISSION, beta=1.0), val_n=[0.9, 0.9], muted_val_n=[0.3, 0.3], muted_gap=0.01, input_gap=0.6),
        *made("mod_5", Arm(beta=1.0), val_n=[0.8], muted_val_n=[0.4], muted_gap=None),
    ]  # fmt: skip
    found = table(rows, "beta")
    assert found.columns[4:7] == ("paper", "+ emission: muted val_n", "+ emission: muted gap")
    assert line(found, "0")[:6] == [".50 (.50)", ".50", "+.14 (+.14)", "+.14", "", ""]
    full = line(found, "1")
    assert full[4:6] == [".30 ±.00 (.30 .30)", "+.01 ±.00 (+.01 +.01)"]
    assert full[6:10] == [".80 (.80)", "+.30 (+.30)", ".40 (.40)", "– (–)"]
    assert full[10] == "+.60 ±.00 (+.60 +.60)"  # the input gives the state away
    assert line(found, ".1")[:2] == ["missing", ".93"]
    assert "beta" not in [each.key for each in tables(rows[:1])]


def test_what_auxiliaries_add_is_paired():
    rows = [
        *made("parity", A2C, val_n=[0.5, 0.7]),
        *made("parity", replace(A2C, auxiliary="state"), val_n=[0.6, 0.9, 0.1]),
    ]
    found = table(rows, "auxiliary_benefit")
    assert line(found, "A2C + state")[0] == f"+.15 ±{number(T_975[1] * 0.05)} (+.10 +.20)"
    assert line(found, "PPO + state")[0] == "missing"
    assert line(table(rows, "auxiliary"), "A2C + none")[0] == f".60 ±{number(T_975[1] * 0.1)} (.50 .70)"


def test_the_shaping_ladder():
    rows = made("parity", Arm(shaping="oracle"), val_n=[0.9], probe_gap=0.3, recovery=0.8)
    found = table([*rows, *made("parity", STATE, val_n=[0.95], probe_gap=0.4)], "shaping")
    assert line(found, "PPO + oracle shaping")[:4] == [".90 (.90)", "+.30 (+.30)", "+.30", ".80 (.80)"]
    assert line(found, "PPO + state auxiliary")[1:3] == ["+.40 (+.40)", "+.28"]
    assert line(found, "PPO")[0] == "missing"


def test_table_4():
    rows = made("mod_5_hold", val_n=[0.8, 0.9, 1.0], probe_gap=0.27)
    found = line(table(rows, "table4"), "mod_5_hold", "latchability")
    assert found[:5] == [".90 ±.25 (.80 .90 1.00)", ".89 ±.09", ".10", "+.27 ±.00 (+.27 +.27 +.27)", "+.27 ±.04"]
    assert line(table(rows, "table4"), "mod_5, + state", "ceiling")[3:5] == ["missing", "+.47"]


# --- Table 2, the suite, the predictor ----------------------------------------------------------------------------


def test_table_2():
    rows = [
        *made("mod_5", val_n=[0.5, 0.7, 0.9], probe_gap=[0.1, 0.2, 0.3], input_gap=0.05, recovery=0.4),
        *made("mod_5", STATE, val_n=[0.8, 0.8], probe_gap=[0.4, 0.4]),
    ]
    found = table(rows, "table2")
    cells = dict(zip([f"{column} {i}" if column == "paper" else column for i, column in enumerate(found.columns)],
                     found.rows[2]))  # fmt: skip
    assert cells["k"] == "5"
    assert cells["PPO val_n"] == f".70 ±{number(T_975[2] * 0.2 / math.sqrt(3))} (.50 .70 .90)"
    assert cells["aux − PPO reward"] == f"+.20 ±{number(T_975[1] * 0.1)} (+.30 +.10)"  # over the two seeds of both
    assert cells["PPO/ceiling"] == ".50"  # .2 / .4
    assert cells["PPO input gap"] == "+.05 ±.00 (+.05 +.05 +.05)"
    assert [found.rows[2][column] for column in (2, 4, 6, 8)] == [".72 ±.25", "+.24 ±.16", "+.26", ".52"]
    assert found.rows[0][1] == "missing"
    assert found.rows[0][7] == "–"  # a ratio of nothing


def test_the_suite_labels_by_the_benefit():
    rows = [
        *made("mod_5", val_n=[0.5, 0.5], recovery=[0.1, 0.3]), *made("mod_5", STATE, val_n=[0.8, 0.6]),
        *made("mod_5_hold", val_n=[0.8], recovery=0.8), *made("mod_5_hold", STATE, val_n=[0.9]),
        *made("workflow_api", val_n=[0.9], recovery=[None], probe_gap=[None]),
    ]  # fmt: skip
    found = table(rows, "suite")
    name = found.columns.index
    hard, hold, api = (
        next(row for row in found.rows if row[0] == task) for task in ("mod_5", "mod_5_hold", "workflow_api")
    )
    assert (hard[name("hard")], hard[name("paper")], hard[name("verdict")]) == ("yes", "yes", "perception gap")
    assert (hard[name("states")], hard[name("L")], hard[name("permutation")]) == ("5", ".433", "yes")
    assert (hold[name("hard")], hold[name("paper")], hold[name("verdict")]) == ("no", "", "planning gap")
    assert (api[name("hard")], api[name("PPO recovery")], api[name("verdict")]) == ("–", "– (–)", "undefined")


@pytest.fixture(scope="module")
def designed() -> list[Row]:
    """The fifteen designed tasks with the paper's labels: hard ones have a benefit of .3, others of .1."""
    rows = []
    for place, task in enumerate(targets.DESIGNED):
        benefit = 0.3 if task in targets.HARD else 0.1
        recovery = 0.2 if task == "parity" else 0.9
        rows += made(task, val_n=[0.6, 0.6], ood_n=0.6 - 0.01 * place, probe_gap=0.01 * place, recovery=recovery)
        rows += made(task, STATE, val_n=[0.6 + benefit] * 2)
    return rows


def test_the_predictor_on_the_papers_labels(designed):
    found = table(designed, "predictor")
    by_benefit = {row[0]: row[1] for row in found.rows}
    assert by_benefit["hard tasks"] == "parity, mod_5, mod_7, mod_9, mod_11"
    assert by_benefit["ROC-AUC"] == "1.00"
    assert (by_benefit["highest score of a hard task"], by_benefit["lowest score of an easy task"]) == (".50", ".519")
    assert by_benefit["leave one out"] == "14/15 (wrong: workflow_reconcile)"
    # ranks of L 1…7: mod_11, 9, 7, 5, parity (.3 each: mean rank 5), reconcile, mod_3 (.1: 1.5)
    x, y = [1, 2, 3, 4, 5, 6, 7], [5, 5, 5, 5, 5, 1.5, 1.5]
    cov = sum((a - 4) * (b - 4) for a, b in zip(x, y))
    rho = cov / math.sqrt(28 * sum((b - 4) ** 2 for b in y))
    assert by_benefit["Spearman(L, benefit), permutation automata"].startswith(f"{number(rho)} (n = 7")
    by_recovery = {row[0]: row[2] for row in found.rows}
    assert by_recovery["hard tasks"] == "parity"
    assert by_recovery["ROC-AUC"] == number(10 / 14)  # below parity score mod_5, 7, 9 and 11


def test_one_class_has_neither_auc_nor_leave_one_out():
    rows = [*made("parity", val_n=[0.6]), *made("parity", STATE, val_n=[0.9])]
    cells = {row[0]: row[1] for row in table(rows, "predictor").rows}
    assert cells["tasks"] == "1 of 15"
    assert cells["ROC-AUC"] == cells["leave one out"] == "undefined: one class only"
    assert cells["Spearman(L, benefit), permutation automata"].startswith("– (n = 1")


def test_behaviour():
    """Three tasks whose probe gap falls as the reward gap rises, and one whose gap is undefined."""
    rows = [
        *made("parity", val_n=[0.9, 0.9], ood_n=0.9, probe_gap=0.6),
        *made("mod_3", val_n=[0.7, 0.7], ood_n=0.4, probe_gap=0.4),
        *made("mod_5", val_n=[0.4, 0.4], ood_n=0.2, probe_gap=0.1),
        *made("mod_7", val_n=[0.4, 0.4], ood_n=0.4, probe_gap=None),
    ]
    found = table(rows, "behaviour")
    assert line(found, "Spearman(reward gap, probe gap)") == ["−1.00 [−1.00, −1.00] (n = 3, p = .333)", "−.29"]
    assert line(found, "Spearman(drop at 4T, probe gap)")[0].startswith("−.50 [−.50, −.50]")  # drops 0, .3, .2
    assert line(found, "tasks with a reward gap of at least .25")[0] == "2"
    assert line(found, "their probe gaps span")[0] == "+.10 (mod_5) … +.40 (mod_3)"
    assert any("undefined: mod_7" in note for note in found.notes)


def test_falsified_predictors(designed):
    found = table(designed, "falsified")
    told = {row[1]: row[6] for row in found.rows}
    assert told["workflow_latch"] == told["workflow_reconcile"] == told["no_three_zeros"] == "easy"
    assert told["parity"] == told["mod_5"] == "hard"


# --- mined, interventions, credit ---------------------------------------------------------------------------------


def test_mined():
    rows = [
        *made("mined_div7", val_n=[0.65], probe_gap=0.3, recovery=0.3),
        *made("mined_div7", replace(EMISSION, beta=1.0), val_n=[0.99], muted_val_n=[0.2]),
    ]
    found = table(rows, "mined")
    cells = dict(zip(found.columns, next(row for row in found.rows if row[0] == "mined_div7")))
    assert (cells["states × symbols"], cells["permutation"], cells["L"]) == ("7 × 2", "yes", ".406")
    assert (cells["PPO val_n"], cells["+ state val_n"]) == (".65 (.65)", "missing")
    assert (cells["+ emission val_n"], cells["+ emission muted val_n"]) == (".99 (.99)", ".20 (.20)")
    assert cells["verdict"] == "perception gap"
    assert any("+experiment=mined_emission`" in note for note in found.notes)
    assert "mined_log_sepsis, mined_log_bpic2012, mined_log_fines: one automaton" in found.caption
    assert found.caption.count("one automaton") == 1  # not the others, which have as many states and symbols


def test_interventions():
    rows = [
        *made("mod_5", STATE, val_n=[0.9, 0.9], recovery=[0.6, 0.4], intervention=[0.5, 0.7], intervention_random=0.1,
              intervention_shuffled=None, intervention_examples=1000.0),
        *made("mod_7", STATE, val_n=[0.9], recovery=[0.2], intervention=[None]),
    ]  # fmt: skip
    found = table(rows, "intervention")
    assert line(found, "mod_5", "state") == [
        f".50 ±{number(T_975[1] * 0.1)} (.60 .40)", "yes", f".60 ±{number(T_975[1] * 0.1)} (.50 .70)", ".10 ±.00 (.10 .10)",
        "– (– –)", "1000",
    ]  # fmt: skip
    assert line(found, "mod_7", "state")[1:3] == ["no", "– (–)"]
    assert found.rows[-1][4:6] == (".32–.68", ".00–.21")


def test_credit_needs_no_runs():
    found = table([], "credit")
    assert found.columns[2:8] == ("Δ_1", "Δ_2", "Δ_3", "Δ_5", "Δ_8", "Δ_16")
    assert line(found, "parity")[1:7] == ["0"] * 6
    assert line(found, "mod_11")[1:5] == [".500", ".250", ".125", ".031"]
    assert line(found, "workflow_api")[1:7] == ["1.000"] * 6
    assert line(found, "no_three_zeros")[6] == number(19513 / 65536, digits=3)
    assert line(found, "parity, replaying policy")[1:7] == [".500"] * 6
    # holding half of the steps: Δ_1 is 1 where the step is held, and where it is not by 1/3 as under random play
    assert line(found, "workflow_reconcile, holding")[1] == number(0.5 + 0.5 / 3, digits=3)
    untrained = line(found, "parity, untrained GRU")[1:7]
    assert untrained[4:] == ["–", "–"]  # histories of so many steps are too many
    one, two, three, five = map(float, untrained[:4])
    assert 0 < five < three / 5 < two / 25 < one / 125 < 0.5 / 125


def test_proposition_1_needs_no_runs():
    found = table([], "proposition_1")
    held, written = (found.columns.index(name) for name in ("state, history held", "state, as written"))
    for row in found.rows:
        assert float(row[found.columns.index("symbol")]) <= 0.5
        if "parity" in row[1]:
            assert float(row[held]) < 1
        if row[0] == "a distribution for each step":
            assert float(row[written]) <= 0.5
    assert found.rows[-2][held:] == (".25", "∞ (above 1 at 1)")
    assert found.rows[-1][held:] == ("∞ (above 1 at 1)", ".50")


# --- all runs -----------------------------------------------------------------------------------------------------


def test_every_configuration_is_in_the_last_table(two_by_two):
    rows = [replace(row, seconds=None) if row.seed == 1 else row for row in two_by_two]
    found = all_runs(rows)
    assert len(found.rows) == 8
    by_hash = {row[2]: row for row in found.rows}
    assert by_hash["one"][3:6:2] == ("2", ".10 ±.00 (.10 .10)")  # what is mixed in a cell stands apart here
    assert by_hash["parity/" + str(PPO)][1] == "GRU, PPO × discounted"
    other = next(row for row in found.rows if "not the protocol" in row[1])
    assert other[1] == "GRU, A2C × discounted; not the protocol: task.horizon=12"
    assert found.columns[3:5] == ("seeds", "verdict")  # where it is seen without scrolling
    assert other[4] == "solved"
    assert other[10:] == ("1.5 min", "c0ffeec")
    assert by_hash["one"][10] == "≥ 1.5 min"


def test_rows_of_another_version_are_told_apart():
    (old,) = made("mod_5", val_n=[0.9])
    old = replace(old, seconds=None, commit=None,
                  config={key: value for key, value in old.config.items() if key != "algorithm.clip"})  # fmt: skip
    row = all_runs([old]).rows[0]
    assert row[1] == "GRU, PPO × discounted; not the protocol: no algorithm.clip"
    assert row[10:] == ("–", "–")
    assert [each.key for each in tables([old])] == ["credit", "proposition_1", "all_runs"]
