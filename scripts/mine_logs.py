"""Automata from real event logs: which kind, how accurate, and is it what the paper saw? A row for each log and learner.

    python scripts/mine_logs.py ../shared/data/logs      # the folder with the logs of LOGS; absent and damaged ones are skipped

The paper (section 5.5) mines seven process logs and finds no permutation automaton: five 2-state reach-commit, two
decide-late. It does not say what it took for outcomes; here each log has a rule, with its reason, in LOGS. Every log is mined
three times: from whole cases, the deciding event included; from cases cut before it; and from these with tolerance. Half a
minute of one core. Writes `mined_logs.md` and `.json` into `runs/paper`, or where --output says; a result that is there is
replaced by one of the same logs and more, or by --force.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlstate.automata.eventlog import labelled_words, read_log
from rlstate.console import clean_up_when_terminated, ended
from rlstate.mine_log import describe, mine_words, reading_bar
from rlstate.mine_output import escaped


class Log(NamedTuple):
    """A file, the process that it is of (as the paper names it, where it does), the outcome and why."""

    file: str
    process: str
    outcome: str
    why: str
    lifecycle: str = "complete"


FINES = "contains:Send for Credit Collection"
FINES_WHY = "the fine was not paid, and went to credit collection"
LOANS_WHY = "the application was approved (others are declined, cancelled or still open)"
SEPSIS_WHY = "the patient came back to the emergency room"
LOGS = (
    Log("fmannhardt__sepsis.csv", "clinical (Sepsis)", "contains:Return ER", SEPSIS_WHY),
    Log("pm4py__13_SEPSIS_1t_per_variant.xes.gz", "clinical (Sepsis)", "contains:Return ER", SEPSIS_WHY),
    Log("pm4py__bpic2012.xes.gz", "loans (BPIC2012)", "contains:A_APPROVED", LOANS_WHY),
    Log("pm4py__17_bpic2012_1t_per_variant.xes.gz", "loans (BPIC2012)", "contains:A_APPROVED", LOANS_WHY),
    Log(
        "pm4py__14_Billing_1t_per_variant.xes.gz", "billing", "last:BILLED",
        "the package ends as billed: a bill can be undone (STORNO), so that only the last event tells",
    ),
    Log("pm4py__12_roadtraffic_1t_per_variant.xes.gz", "fines", FINES, FINES_WHY),
    Log("pm4py__roadtraffic100traces.csv", "fines", FINES, FINES_WHY),
    Log("pm4py__roadtraffic100traces.xes", "fines", FINES, FINES_WHY),
    Log("pm4py__roadtraffic50traces.xes", "fines", FINES, FINES_WHY),
    Log(
        "pm4py__15_bpic2020_permit_log_1t_per_variant.xes.gz", "travel permits (BPIC2020)", "last:Payment Handled",
        "the trip's costs are paid and nothing follows, no reminder either",
    ),
    Log(
        "pm4py__07_bpic2013_incidents.xes.gz", "incidents (BPIC2013)", "contains:Queued",
        "the incident was passed on to another team's queue (none of its lifecycle transitions is called complete)", "all",
    ),
    Log(
        "pm4py__08_receipt.xes.gz", "permit receipts (CoSeLoG)", "last:T10 Determine necessity to stop indication",
        "the check of the stop indication closes the case; in the others most often the printed confirmation does",
    ),
    Log("pm4py__02_teleclaims.xes.gz", "insurance claims (simulated)", "contains:initiate payment", "the claim is paid"),
    Log(
        "pm4py__03_repairExample.xes.gz", "repairs (simulated)", "contains:Restart Repair",
        "a repair failed its test and was done again",
    ),
    Log("pm4py__04_reviewing.xes.gz", "paper reviews (simulated)", "last:accept", "the paper is accepted"),
    Log(
        "pm4py__a12f0n20.xes.gz", "a12 (synthetic)", "contains:g",
        "activities are letters without a meaning; g is in half of the cases",
    ),
    Log("pm4py__running-example.xes", "compensation (textbook)", "last:pay compensation", "the request is granted"),
)  # fmt: skip

# The paper's seven and the process under which they are above, if they are.
PAPER = {
    "procurement (BPIC2019)": None,
    "clinical (Sepsis)": "clinical (Sepsis)",
    "loans (BPIC2012)": "loans (BPIC2012)",
    "loans (BPIC2017)": None,
    "building permits (BPIC2015)": None,
    "billing": "billing",
    "fines": "fines",
}
LEARNERS = ("edsm", "rpni")


class View(NamedTuple):
    """What the words are, and how much noise the learner is to allow for."""

    words: str
    before_outcome: bool
    tolerance: float

    def rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        wanted = (self.before_outcome, self.tolerance)
        return [row for row in rows if (row["before_outcome"], row["tolerance"]) == wanted]


VIEWS = (
    View("whole cases, the deciding event included", False, 0.0),
    View("cases cut before the event that decides", True, 0.0),
    View("cases cut before the event that decides, tolerance 0.1", True, 0.1),
)
OUT = Path(__file__).resolve().parent.parent / "runs" / "paper"
NAME = "mined_logs"


def mine(folder: Path, log: Log, seed: int) -> list[dict[str, Any]]:
    """The reports on one log: whole cases and cases cut before the outcome, by each learner."""
    path = folder / log.file
    with reading_bar(path) as bar:
        events = read_log(path, "all" if log.lifecycle == "all" else "complete", progress=bar.update_to)
    about = {"process": log.process, "why": log.why, "log": describe(events)}
    rows = []
    for view in VIEWS:
        cases = labelled_words(events, log.outcome, include_outcome=not view.before_outcome)
        for learner in LEARNERS:
            start = time.perf_counter()
            report = mine_words(cases, learner, view.tolerance, seed=seed).report
            rows.append({**about, "before_outcome": view.before_outcome, **report})
            seconds = time.perf_counter() - start
            print(f"  {learner}, {view.words}: {kind(report)}, {seconds:.1f} s", file=sys.stderr)
    return rows


def kind(report: dict[str, Any]) -> str:
    automaton = report["automaton"]
    degree = f" (last {automaton['degree']})" if automaton["shape"] == "decide-late" else ""
    return f"{automaton['states']} states, {automaton['shape']}{degree}"


def tables(rows: list[dict[str, Any]], absent: Sequence[str] = (), damaged: Sequence[str] = ()) -> str:
    """Everything as Markdown."""
    lines = [
        "# Automata mined from event logs",
        "",
        "`python scripts/mine_logs.py FOLDER`. Held out: 30 % of the cases, by a hash of their names. *Majority*: the training "
        "majority's label on the held-out cases; *ceiling*: the best map from words to labels on them; *unseen*: accuracy on the "
        "held-out cases whose word is not in training. A transition that no training word takes leaves the state as it is. "
        "*Permutation* is *possible* where another completion would be a permutation automaton, *trivially* so for one state.",
    ]  # fmt: skip
    for view in VIEWS:
        lines += [
            "",
            f"## {view.words[0].upper()}{view.words[1:]}",
            "",
            "| log | outcome | cases | true | learner | states | shape | permutation | held out | majority | ceiling | unseen |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        lines += [_row(row) for row in view.rows(rows)]
    lines += ["", "## What the paper saw", "", *verdict(rows), "", "## Logs and outcomes", ""]
    for row in _firsts(rows):
        log = row["log"]
        lines.append(
            f"- `{log['file']}` ({row['process']}): {log['cases']} cases, {log['variants']} variants, "
            f"{log['events_kept']} events kept and {log['events_dropped']} dropped. `{escaped(row['outcome'])}`: {row['why']}."
            + "".join(f" Note: {escaped(note)}." for note in log["notes"])
        )
    if absent:
        lines += ["", f"Not here, and skipped: {', '.join(absent)}."]
    if damaged:
        lines += ["", "Could not be mined, and skipped:", "", *(f"- {escaped(sentence)}" for sentence in damaged)]
    return "\n".join(lines) + "\n"


def _row(row: dict[str, Any]) -> str:
    held_out, automaton = row["held_out"], row["automaton"]
    shape = kind(row).partition(", ")[2]
    unseen = row["held_out_unseen_words"]
    rest = "–" if unseen["accuracy"] is None else f"{unseen['accuracy']:.3f} (of {unseen['cases']})"
    return (
        f"| {row['log']['file']} | {escaped(row['outcome'])} | {row['cases']} | {row['cases_true'] / row['cases']:.2f} "
        f"| {row['learner']} | {automaton['states']} | {shape} | {_permutation(automaton)} "
        f"| {held_out['accuracy']:.3f} ± {held_out['standard_error']:.3f} | {held_out['majority']:.3f} "
        f"| {held_out['bayes_ceiling']:.3f} | {rest} |"
    )


def verdict(rows: list[dict[str, Any]]) -> list[str]:
    """Whether the paper's finding holds, sentence by sentence."""
    here = {row["process"] for row in rows}
    lines = [
        "The paper: seven logs, none a permutation automaton; five 2-state reach-commit, two decide-late.",
        "",
        "- Of its seven logs these are here: "
        + (", ".join(name for name, process in PAPER.items() if process in here) or "none")
        + "; these are not: "
        + (", ".join(name for name, process in PAPER.items() if process not in here) or "none")
        + ". Files called `1t_per_variant` have one case for each variant: how frequent each was is lost.",
    ]
    for view in VIEWS:
        for only, which in ((True, "of the paper's processes"), (False, "of all logs")):
            some = [row for row in view.rows(rows) if not only or row["process"] in PAPER.values()]
            if some:
                lines.append(f"- {view.words[0].upper()}{view.words[1:]}, {which}: {_tally(some)}.")
    lines.append(
        "- Whole cases show the rule more than the process: `contains:` is a 2-state reach-commit language and `last:` a 2-state "
        "decide-late one by definition, whatever the log (reach-commit too, where the activity only ever ends a case). That "
        "learners find them says that the log holds enough words; cut cases say what the process itself gives away. "
        "*Possible* it stays where no case goes on to show where the deciding symbol leads from the other state (a second "
        "approval, say): that the state stays is the completion's doing then, and so would be a sink."
    )
    return lines


def _tally(rows: list[dict[str, Any]]) -> str:
    """How many automata have which shape and are permutations."""
    shapes = Counter(row["automaton"]["shape"] for row in rows)
    small = sum(row["automaton"]["states"] == 2 for row in rows)
    answers = Counter(_permutation(row["automaton"]) for row in rows)
    named = sorted({row["log"]["file"] for row in rows if _permutation(row["automaton"]) == "yes"})
    return (
        f"{len(rows)} automata, {small} of two states; {', '.join(f'{shapes[shape]} {shape}' for shape in sorted(shapes))}; "
        f"permutation: {', '.join(f'{answers[answer]} {answer}' for answer in sorted(answers))}"
        + (f" ({', '.join(named)})" if named else "")
    )


def _permutation(automaton: dict[str, Any]) -> str:
    if automaton["states"] == 1:
        return "trivially"
    return "yes" if automaton["permutation"] else "possible" if automaton["permutation_possible"] else "no"


def _firsts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["log"]["file"]: row for row in rows}.values())


# --- files --------------------------------------------------------------------------------------------------------


def check_result(folder: Path, logs: Collection[str]) -> None:
    """Raises ValueError where a result of these logs would replace one that has others."""
    there = folder / f"{NAME}.json"
    if not there.exists():
        return
    try:
        had = {row["log"]["file"] for row in json.loads(there.read_text("utf-8"))}
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{there} is there, and no result of this script: give --output FOLDER or --force.") from error
    if lost := sorted(had - set(logs)):
        raise ValueError(
            f"{there} has {len(lost)} logs that this result would lack ({', '.join(lost)}): give --output FOLDER, or --force."
        )


def write_result(folder: Path, rows: list[dict[str, Any]], text: str, name: str = NAME) -> None:
    """Both files, each whole or not at all."""
    for suffix, content in ((".json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n"), (".md", text)):
        made = folder / f".{name}{suffix}.{os.getpid()}"
        try:
            made.write_text(content, "utf-8", "backslashreplace")
            os.replace(made, folder / f"{name}{suffix}")
        finally:
            made.unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the logs lie")
    parser.add_argument("--seed", type=int, default=0, help="decides which cases are held out")
    parser.add_argument(
        "--only", metavar="TEXT", default="", help="only logs whose file name has this; prints, writes nothing"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", default=OUT, help="for the result (default: runs/paper)"
    )
    parser.add_argument("--force", action="store_true", help="replace a result that has logs which the new one lacks")
    arguments = parser.parse_args(argv)
    wanted = [log for log in LOGS if arguments.only in log.file]
    here = [log for log in wanted if (arguments.folder / log.file).is_file()]
    absent = [log.file for log in wanted if log not in here]
    for file in absent:
        print(f"{file}: not in {arguments.folder}, skipped", file=sys.stderr)
    if not here:
        raise ValueError(f"{arguments.folder} has none of the logs.")
    if not arguments.only:  # now, not after mining
        if not arguments.force:
            check_result(arguments.output, [log.file for log in here])
        arguments.output.mkdir(parents=True, exist_ok=True)

    rows: list[dict[str, Any]] = []
    damaged = []
    for log in here:
        print(f"{log.file}: {log.outcome}", file=sys.stderr)
        try:
            rows += mine(arguments.folder, log, arguments.seed)
        except (ValueError, OSError) as error:
            damaged.append(" ".join(str(error).replace(str(arguments.folder / log.file), log.file).split()))
            print(f"{damaged[-1]} Skipped.", file=sys.stderr)
    if not rows:
        raise ValueError(f"None of the logs in {arguments.folder} could be mined.")
    text = tables(rows, absent, damaged)
    try:
        if not arguments.only:
            try:
                if not arguments.force:
                    check_result(arguments.output, [row["log"]["file"] for row in rows])
            except ValueError:  # what was computed is kept all the same, under another name
                write_result(arguments.output, rows, text, f"{NAME}_partial")
                print(f"written as {NAME}_partial", file=sys.stderr)
                raise
            write_result(arguments.output, rows, text)
    finally:
        print(text)
    return 0


if __name__ == "__main__":
    clean_up_when_terminated()
    sys.exit(ended(main))
