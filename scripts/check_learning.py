"""Does training come out as it should? GRU runs of 6000 iterations at T = 12 on parity, mod_3 and mod_5, five seeds each.

    python scripts/check_learning.py            # about half an hour of one core; interrupted, it goes on where it was
    python scripts/check_learning.py --show     # only print what has been computed

Prints every seed and writes `runs/paper/learning_T12.md` and `.json`. The reference values were measured with an independent
implementation (2–5 seeds, population standard deviation), the paper's are Table 1 and Table 2 (its horizon is not stated).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from rlstate import experiment
from rlstate.plan import plan
from rlstate.train import compose

# task, algorithm, credit, learning rate: reference val_n, reference probe gap, the paper's
ROWS = {
    ("parity", "a2c", "broadcast", 3e-3): (".67±.02", ".05", ".66±.04, .01"),
    ("parity", "a2c", "discounted", 3e-3): (".68±.02", ".06", ".65±.07, .02"),
    ("parity", "ppo", "discounted", 3e-3): (".77±.13", ".17", ".80±.11, .20"),
    ("mod_3", "a2c", "broadcast", 3e-3): (".68±.22", ".24", ".51±.02, .02"),
    ("mod_3", "a2c", "discounted", 3e-3): (".76±.22", ".21", ".66±.18, .15"),
    ("mod_3", "ppo", "discounted", 3e-3): (".96±.03", ".31", ".80±.18, .21; .94±.02, .36"),
    ("mod_5", "ppo", "discounted", 3e-3): (".95±.05", ".29", ".50±.22, .17; .72±.25, .24"),
    ("parity", "a2c", "broadcast", 1e-3): (".67±.00", ".04", ".66±.04, .01"),
    ("parity", "ppo", "discounted", 1e-3): (".68±.01", ".02", ".80±.11, .20"),
    ("mod_3", "a2c", "broadcast", 1e-3): (".65±.23", ".19", ".51±.02, .02"),
    ("mod_3", "a2c", "discounted", 1e-3): (".63±.24", ".17", ".66±.18, .15"),
    ("mod_3", "ppo", "discounted", 1e-3): (".97±.01", ".37", ".80±.18, .21; .94±.02, .36"),
    ("mod_5", "ppo", "discounted", 1e-3): (".92±.05", ".40", ".50±.22, .17; .72±.25, .24"),
}
FIGURES = ("val_n", "ood_n", "probe_gap", "recovery", "gain", "verdict")
OUT = Path(__file__).resolve().parent.parent / "runs" / "paper"


def configuration(task: str, algorithm: str, credit: str, learning_rate: float, runs: str) -> dict:
    return compose([
        f"task={task}", f"algorithm={algorithm}", f"algorithm.credit={credit}", f"algorithm.learning_rate={learning_rate}",
        "name=learning_T12", "task.horizon=12", "iterations=6000", "seeds=5", "evaluation.every=1000",
        "probe.capacity=false", "logger=files", f"paths.runs={runs}",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="train nothing")
    parser.add_argument("--runs", default=str(OUT.parent), help="where the run folders lie")
    arguments = parser.parse_args()
    rows = []
    for (task, algorithm, credit, learning_rate), (reference, reference_gap, paper) in ROWS.items():
        config = configuration(task, algorithm, credit, learning_rate, arguments.runs)
        if not arguments.show:
            experiment.run(config)
        results = [result for each in plan(config) if (result := each.folder.read_result()) is not None]
        if results:
            rows.append({
                "task": task, "algorithm": algorithm, "credit": credit, "learning_rate": learning_rate,
                "seeds": [result["seed"] for result in results],
                **{key: [result[key] for result in results] for key in FIGURES},
                "commit": results[0]["commit"], "reference_val_n": reference, "reference_gap": reference_gap, "paper": paper,
            })  # fmt: skip
            write(rows)
    print((OUT / "learning_T12.md").read_text())


def write(rows: list[dict]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "learning_T12.json").write_text(json.dumps(rows, indent=1) + "\n")
    lines = [
        "# Learning at T = 12",
        "",
        "`python scripts/check_learning.py`: GRU, 6000 iterations, greedy evaluation on 4096 episodes; mean ± population SD.",
        "",
        "| task, algorithm | lr | val_n | reference | every seed | OOD 4T | probe gap | reference | paper (val_n, gap) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        seeds = " ".join(f"{value:.2f}" for value in row["val_n"])
        lines.append(
            f"| {row['task']}, {row['algorithm'].upper()} {row['credit']} | {row['learning_rate']:g} | {_mean(row['val_n'])} "
            f"| {row['reference_val_n']} | {seeds} | {_mean(row['ood_n'])} | {_mean(row['probe_gap'])} "
            f"| {row['reference_gap']} | {row['paper']} |"
        )
    (OUT / "learning_T12.md").write_text("\n".join(lines) + "\n")


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.2f}±{np.std(values):.2f}"


if __name__ == "__main__":
    main()
