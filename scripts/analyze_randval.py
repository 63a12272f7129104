"""The held-out scores (section 5.5, Appendix D, Table 3), recomputed from finished runs; nothing is trained.

    python scripts/analyze_randval.py runs/paper                  # a run tree, or a folder with a results.jsonl
    python scripts/analyze_randval.py runs/paper/results.jsonl --json

Prints the labels by stratum, precision and recall of permutation structure with every re-scoring, the rewards and features of
the perception gaps, the overlap with the LSTM, and a line for each automaton. What there is is scored, and it says of how many.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from rlstate.output import jsonable
from rlstate.paper import heldout
from rlstate.paper.heldout import Automaton, Scores, Share
from rlstate.paper.notation import Table, number
from rlstate.paper.tables_heldout import held_out
from rlstate.results import Row, collect, read_rows

FIGURES = ("recovery", "val_n", "ood_n", "gain", "probe_gap", "quotient_recovery", "row_split_recovery")


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Everything as plain data, by encoder; shares with their value and Wilson interval, a record for each automaton."""
    scores = {encoder: heldout.score(rows, encoder) for encoder in heldout.SEEDS}
    told: dict[str, Any] = {encoder: _scores(each) for encoder, each in scores.items() if each.automata or each.mixed}
    if all(each.automata for each in scores.values()):
        told["overlap"] = asdict(heldout.overlap(scores["gru"], scores["lstm"]))
    return told


def _scores(scores: Scores) -> dict[str, Any]:
    told = {name: _plain(value) for name, value in vars(scores).items() if name != "automata"}
    named = {"incomplete": list(scores.incomplete), "undefined": list(scores.undefined)}
    return {**told, **named, "automata": [record(each) for each in scores.automata]}


def _plain(value: Any) -> Any:
    if isinstance(value, Share):
        return {"hits": value.hits, "of": value.of, "value": value.value, "interval": value.interval}
    if is_dataclass(value):
        return {name: _plain(each) for name, each in vars(value).items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def record(each: Automaton) -> dict[str, Any]:
    """What is known of an automaton: figures are means over its seeds."""
    return {
        "name": each.name, "stratum": each.entry.stratum, "set": each.entry.set, "permutation": each.permutation,
        "states": each.entry.dfa.n_states, "symbols": each.entry.dfa.n_symbols, "leverage": each.leverage,
        "seeds": [row.seed for row in each.rows], "expected": each.expected,
        **{figure: each.mean(figure) for figure in FIGURES}, "capacity": each.capacity, "coarser_quotient": each.coarser,
        "label": each.label(), "verdict": str(each.verdict),
    }  # fmt: skip


def automata_table(scores: Scores) -> Table:
    lines = []
    for each in scores.automata:
        figures = [number(each.mean(name), signed=name == "probe_gap") for name in ("val_n", "probe_gap", "recovery")]
        lines.append((
            each.name, each.entry.stratum, f"{each.entry.dfa.n_states} × {each.entry.dfa.n_symbols}",
            number(each.leverage, digits=3), f"{len(each.rows)} of {each.expected}", *figures,
            " ".join(number(row["recovery"]) for row in each.rows), number(each.capacity), str(each.verdict),
        ))  # fmt: skip
    return Table(
        f"automata_{scores.encoder}",
        f"Each automaton, {scores.encoder.upper()}",
        "",
        ("automaton", "stratum", "Q × A", "L", "seeds", "val_n", "gap", "recovery", "by seed", "capacity", "verdict"),
        tuple(lines),
    )


def as_text(table: Table) -> str:
    """The table with its columns aligned."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]
    body = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
    below = ["", *table.notes] if table.notes else []
    return "\n".join([table.title, "", *body, *below, ""])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a run tree, or a results.jsonl")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    arguments = parser.parse_args(argv)
    if not arguments.folder.exists():
        print(f"error: there is no {arguments.folder}; give a folder of runs, or a results.jsonl", file=sys.stderr)
        return 2
    rows = read_rows(arguments.folder) if arguments.folder.is_file() else collect(arguments.folder)
    tables = held_out(rows)
    if not tables:
        print(
            f"error: none of the {len(rows)} finished runs in {arguments.folder} is of a held-out automaton under the paper's "
            "protocol; python -m rlstate.train +experiment=heldout trains them",
            file=sys.stderr,
        )
        return 1
    if arguments.json:
        print(json.dumps(jsonable(summary(rows)), indent=1))
        return 0
    scored = [heldout.score(rows, encoder) for encoder in heldout.SEEDS]
    for table in (*tables, *(automata_table(scores) for scores in scored if scores.automata)):
        print(as_text(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
