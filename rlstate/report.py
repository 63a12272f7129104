"""`python -m rlstate.report runs/`: the finished runs below a folder as a table, a page (Markdown, HTML) and rows to keep.

Beside the table on the screen it writes into the folder, or into --output: report.md with figures/, report.html (one file, to
open anywhere), and results.jsonl, a line a run, which is all that the next report needs. A results.jsonl that is there is
extended, or updated by the tree's own runs; nothing in it is lost. notes.md, if there is one, is shown in the page.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlstate.console import ended
from rlstate.output import write_atomically
from rlstate.paper.experiments import outside
from rlstate.paper.overview import Unfinished, counted
from rlstate.paper.page import page
from rlstate.results import FILE, Row, finished, kept, merged, read_rows, unfinished, write_rows
from rlstate.runlog import RunFolder, set_aside
from rlstate.summary import table

MOST_ON_SCREEN = 200
"""With more runs the table is for the page, unless there is none."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rlstate.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default="runs", help="where to look for finished runs (default: runs)")
    parser.add_argument("--output", metavar="FOLDER", help="where to write (default: the same folder)")
    parser.add_argument("--no-page", action="store_true", help="only the table, and the CSV file if asked for")
    parser.add_argument(
        "--csv", metavar="FILE", help="also write the runs as CSV, a row a run, a column a figure or key"
    )
    arguments = parser.parse_args()
    folder = Path(arguments.folder)
    output = Path(arguments.output) if arguments.output else folder
    rows = gather(folder, output)
    if not rows:
        begun = len(unfinished(folder))
        sys.exit(f"error: there is no finished run below {arguments.folder!r}" + (f" ({begun} begun)" if begun else ""))
    if len(rows) <= MOST_ON_SCREEN or arguments.no_page:
        print(table([as_result(row) for row in rows], hashes=True))
        print(differences(rows))
    if told := outside(rows):
        print(told + "\n")
    if arguments.csv:
        write_atomically(Path(arguments.csv), as_csv(rows).encode())
    if not arguments.no_page:
        print(write(rows, folder, output))
    return 0


# --- rows ---------------------------------------------------------------------------------------------------------


def gather(folder: Path, output: Path) -> list[Row]:
    """The rows below `folder` and those kept in `output`; of two of one run the tree's own, then the kept one."""
    beside = output / FILE
    elsewhere = read_rows(beside) if beside.exists() and output.resolve() != folder.resolve() else []
    return merged(kept(folder), elsewhere, finished(folder))


def keep(rows: Sequence[Row], path: Path) -> None:
    """Write the rows; what of a file there could not be read as rows of this version is kept beside it, under another name."""
    if path.exists():
        lines = [line for line in path.read_text().splitlines() if line.strip()]
        if any(_foreign(line) for line in lines) or len(read_rows(path)) < len(lines):
            set_aside(path, "it has lines or fields that are of no row of this version")
    write_rows(rows, path)


def _foreign(line: str) -> bool:
    """Whether a line says more than a row does."""
    try:
        return not set(json.loads(line)) <= set(Row.__dataclass_fields__)
    except (ValueError, TypeError):
        return True


def as_result(row: Row) -> dict[str, Any]:
    """The row under the names of `result.json`, as far as tables and verdicts need them."""
    return {
        **row.to_judge,
        "task": row.task,
        "seed": row.seed,
        "hash": row.hash,
        "verdict": row.verdict,
        "notes": row.notes,
        "probe_balanced": row["balanced"],
        "capacity_accuracy": row.capacity,
        "intervention_success": row["intervention"],
        "intervention_control": row["intervention_random"],
        "thresholds": asdict(row.thresholds),
    }


def as_csv(rows: Sequence[Row]) -> str:
    """A row a run: what it is, its figures, the oracle's (`oracle.…`) and its configuration (`config.…`); curves are left out."""
    of_run = ("experiment", "hash", "task", "seed", "verdict", "diagnostic", "seconds", "commit")
    lines = [
        {
            **{name: getattr(row, name) for name in of_run},
            **row.figures,
            **{f"oracle.{name}": value for name, value in row.oracle.items()},
            **{f"config.{name}": value for name, value in row.config.items()},
            "notes": "; ".join(row.notes),
        }
        for row in rows
    ]
    columns = dict.fromkeys(name for line in lines for name in line)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


# --- page ---------------------------------------------------------------------------------------------------------


def write(rows: Sequence[Row], folder: Path, output: Path) -> str:
    """Write the page, its figures and the rows into `output`; returns what was written, in words."""
    notes = next((path.read_text() for path in (output / "notes.md", folder / "notes.md") if path.exists()), "")
    found = page(rows, _begun(folder), notes, folder.resolve().name)
    for key, drawn in found.drawings.items():
        write_atomically(output / "figures" / f"{key}.svg", drawn.encode())
    write_atomically(output / "report.md", found.markdown.encode())
    write_atomically(output / "report.html", found.html.encode())
    keep(rows, output / FILE)
    return (
        f"written to {output}/: report.html, report.md with {counted(len(found.drawings), 'figure')}, "
        f"{FILE} with {counted(len(rows), 'run')}"
    )


def _begun(folder: Path) -> list[Any]:
    """The runs without a result, with how far they are."""
    found = []
    for path in unfinished(folder):
        run = RunFolder(path)
        last = max((point["iteration"] for point in run.read_metrics()), default=0)
        state = f"not finished, at least {last} iterations done" if last else "not finished"
        if run.failure_path.exists():
            try:
                failure = json.loads(run.failure_path.read_text())
                state = f"failed at iteration {failure['iteration']}: {failure['reason']}"
            except (ValueError, KeyError, TypeError):
                state = "failed; its failed.json cannot be read"
        found.append(Unfinished(path.relative_to(folder).as_posix(), state))
    return found


def differences(rows: Sequence[Row]) -> str:
    """A line for each configuration: its hash and the keys in which the configurations differ."""
    configs = {row.hash: row.config for row in rows}
    shared = [key for key in next(iter(configs.values())) if all(key in config for config in configs.values())]
    told = [key for key in shared if key not in _UNTOLD and len({str(config[key]) for config in configs.values()}) > 1]
    if len(configs) < 2 or not told:
        return ""
    lines = (f"{identity}: {', '.join(f'{key}={config[key]}' for key in told)}" for identity, config in configs.items())
    return "where they differ:\n" + "\n".join(lines)


_UNTOLD = ("task.name", "task.k")  # the table says them


if __name__ == "__main__":
    sys.exit(ended(main))
