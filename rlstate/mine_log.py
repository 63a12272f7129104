"""Automata from event logs: `python -m rlstate.mine log FILE --outcome RULE`.

Cases become labelled words (`rlstate.automata.eventlog`), a passive learner makes an automaton of the training cases,
and the report says how it does on the others and what kind of automaton it is.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from rlstate.automata import DFA, passive, save
from rlstate.automata.eventlog import EventLog, LabelledWords, labelled_words, read_log
from rlstate.automata.logfiles import NAMES
from rlstate.automata.structure import MonoidTooLarge, is_star_free, is_synchronizing, stabilizers
from rlstate.mine_output import FILES, check_output, count, escaped, next_steps, write_files

LEARNERS = ("edsm", "rpni", "blue_fringe")
MAX_MONOID = 20_000
"""Star-freeness is left open for transition monoids larger than this."""


# --- what kind of automaton ---------------------------------------------------------------------------------------


def structure(dfa: DFA) -> dict[str, Any]:
    """What kind of automaton a minimal DFA is, as plain JSON.

    `shape` is the paper's (section 5.5), made precise:
    *constant*: one state.
    *reach-commit*: two states, exactly one of them absorbing: whoever gets there has committed.
    *decide-late*: no absorbing state, and the label depends on the last symbols: with the `idle` ones left out, which
    leave every state as it is, that of every word of at least `degree` symbols depends on its last `degree` only (a
    definite language; Perles, Rabin and Shamir 1963).
    *other*: none of these. A minimal automaton of two states is, if and only if a symbol swaps them.
    """
    minimal = dfa.minimize()
    table, n = minimal.transitions, minimal.n_states
    absorbing = np.flatnonzero((table == np.arange(n)[:, None]).all(axis=1))
    idle = stabilizers(minimal)
    degree = None
    if n > 1 and not len(absorbing):
        degree = definiteness(DFA(np.delete(table, idle, axis=1), minimal.accepting))
    if n == 1:
        shape = "constant"
    elif n == 2 and len(absorbing) == 1:
        shape = "reach-commit"
    else:
        shape = "other" if degree is None else "decide-late"
    try:
        star_free: bool | None = is_star_free(minimal, MAX_MONOID)
    except MonoidTooLarge:
        star_free = None
    return {
        "states": n,
        "accepting": np.flatnonzero(minimal.accepting).tolist(),
        "permutation": minimal.is_permutation(),
        "star_free": star_free,
        "synchronizing": is_synchronizing(minimal),
        "absorbing": absorbing.tolist(),
        "idle": [dfa.alphabet[symbol] for symbol in idle],
        "degree": degree,
        "shape": shape,
    }


def definiteness(dfa: DFA) -> int | None:
    """The least k such that the label of every word of at least k symbols depends on its last k only; None: no k does."""
    table = dfa.minimize().transitions
    block, k = np.arange(len(table)), 0  # states that all words of k symbols bring together
    while block.max() > 0:
        _, merged = np.unique(block[table], axis=0, return_inverse=True)
        merged = merged.reshape(-1)
        if merged.max() == block.max():
            return None
        block, k = merged, k + 1
    return k


# --- learning -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MinedLog:
    """A minimal automaton mined from labelled cases, and the report on it as plain JSON."""

    dfa: DFA
    report: dict[str, Any]


def mine_words(
    cases: LabelledWords, learner: str = "edsm", tolerance: float = 0.0, test: float = 0.3, seed: int = 0
) -> MinedLog:
    """Learn from the training cases, judge on the held-out ones.

    The learner gets each distinct training word once, with its majority's label, weighted by the cases that have it.
    Where no training word takes a transition the automaton stays in its state: a rejecting sink, the learners' own
    completion, would be a state that the log does not show, and one that no permutation automaton can have.

    cases: one word a case. test: the share held out, chosen by `LabelledWords.split`.
    Raises ValueError for an unknown learner, or a log too small to have both training and held-out cases.
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner is {learner!r}, but the learners are {', '.join(LEARNERS)}.")
    training, held_out = cases.split(test, seed)
    if not len(training) or not len(held_out):
        raise ValueError(
            f"Of {len(cases)} cases {len(training)} are for training and {len(held_out)} held out, at a share of "
            f"{test} (test=…): change the seed or the share, or give a larger log."
        )
    words, labels, weights = training.resolved()
    learned = getattr(passive, learner)(
        words, labels, len(cases.alphabet), alphabet=cases.alphabet, weights=weights, tolerance=tolerance
    )
    stay = np.where(learned.defined, learned.transitions, np.arange(learned.n_states)[:, None])
    dfa = DFA(stay, learned.accepting, learned.start, cases.alphabet).minimize()

    known = set(training.words)
    majority = 2 * sum(training.labels) > len(training)
    fresh = held_out.where([word not in known for word in held_out.words])
    conflicting, against = cases.conflicts()
    states = _reached(learned.transitions, learned.defined, learned.start)
    return MinedLog(dfa, {
        "outcome": cases.outcome,
        "alphabet": list(cases.alphabet),
        "cases": len(cases),
        "cases_true": sum(cases.labels),
        "cases_without_attribute": cases.unknown,
        "words": len(cases.counts()),
        "conflicts": {"words": conflicting, "cases": against, "bayes_ceiling": cases.bayes_ceiling()},
        "learner": learner,
        "tolerance": tolerance,
        "split": {"test": test, "seed": seed, "words_in_both": len(known & set(held_out.words))},
        "automaton": {
            **structure(dfa),
            "undefined_transitions": int((~learned.defined[states]).sum()),
            "permutation_possible": _injective(learned.transitions, learned.defined),
        },
        "training": _score(dfa, learned, training, majority),
        "held_out": _score(dfa, learned, held_out, majority),
        "held_out_unseen_words": _score(dfa, learned, fresh, majority),
    })  # fmt: skip


def _reached(table: np.ndarray, defined: np.ndarray, start: int) -> list[int]:
    """The states that training words reach: the rejecting sink of the completion is none of them."""
    order = [start]
    for state in order:  # grows while it is read
        order += [q for q in dict.fromkeys(table[state, defined[state]].tolist()) if q not in order]
    return order


def _injective(table: np.ndarray, defined: np.ndarray) -> bool:
    """Whether no symbol leads two states to one, among the transitions that were learned."""
    columns = [table[known, symbol] for symbol, known in enumerate(defined.T)]
    return all(len(set(column.tolist())) == len(column) for column in columns)


def _score(dfa: DFA, learned: Any, cases: LabelledWords, majority: bool) -> dict[str, Any]:
    """How often the automaton is right. `covered`: cases all of whose transitions some training word took."""
    counts = cases.counts()
    n = len(cases)
    right = covered = right_rejecting = 0
    for word, pair in counts.items():
        right += pair[dfa.accepts(word)]
        states = learned.trace(word)
        right_rejecting += pair[bool(learned.accepting[states[-1]])]
        if all(learned.defined[state, symbol] for state, symbol in zip(states, word)):
            covered += sum(pair)
    accuracy = _share(right, n)
    return {
        "cases": n,
        "words": len(counts),
        "accuracy": accuracy,
        "standard_error": math.sqrt(accuracy * (1 - accuracy) / n) if n else None,
        "majority": _share(sum(label == majority for label in cases.labels), n),
        "bayes_ceiling": cases.bayes_ceiling() if n else None,
        "covered": _share(covered, n),
        "accuracy_if_unseen_is_rejected": _share(right_rejecting, n),
    }


def _share(count: int, of: int) -> Any:
    return count / of if of else None


# --- the command --------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `python -m rlstate.mine log`."""
    parser.add_argument("file", help="an event log: XES or CSV, gzip or not")
    parser.add_argument(
        "--outcome", required=True, metavar="RULE",
        help="contains:ACTIVITY, last:ACTIVITY (several with |; a | in a name is written \\|), attribute:KEY=VALUE (also "
        "!=, >=, <=, >, <, of numbers and of ISO dates)",
    )  # fmt: skip
    parser.add_argument(
        "--lifecycle", default="complete", help="complete (default), all, or transitions separated by commas"
    )
    parser.add_argument("--top", type=int, default=8, help="so many most frequent activities are symbols (8)")
    parser.add_argument("--other", default="other", help="the symbol for all other activities")
    parser.add_argument("--learner", choices=LEARNERS, default="edsm")
    parser.add_argument("--tolerance", type=float, default=0.0, help="noise that the learner lets pass (0)")
    parser.add_argument(
        "--before-outcome", action="store_true", help="end words before the event that decides, to predict it"
    )
    parser.add_argument("--test", type=float, default=0.3, help="share of the cases held out (0.3)")
    parser.add_argument("--seed", type=int, default=0, help="decides which cases are held out")
    parser.add_argument("--output", metavar="FOLDER", help=f"write {', '.join(FILES)} there")
    parser.add_argument("--force", action="store_true", help="write over a report that is there")
    for role, known in NAMES.items():
        if role != "transition":
            parser.add_argument(
                f"--{role}",
                metavar="NAME",
                help=f"the {role}'s column (CSV) or attribute (XES), if not {' or '.join(known[:2])}",
            )


def main(arguments: argparse.Namespace) -> int:
    """Mine one log as the arguments say and print the report; exit status 0.

    Raises ValueError or OSError, one sentence, for a log, a rule or a folder that will not do.
    """
    folder = None if arguments.output is None else Path(arguments.output)
    if folder is not None:
        check_output(folder, arguments.force)
    lifecycle = arguments.lifecycle
    if lifecycle not in ("complete", "all"):
        lifecycle = {name.strip() for name in lifecycle.split(",")}
    with reading_bar(arguments.file) as progress:
        log = read_log(
            arguments.file, lifecycle, arguments.case, arguments.activity, arguments.timestamp, progress.update_to
        )
    cases = labelled_words(log, arguments.outcome, arguments.top, arguments.other, not arguments.before_outcome)
    mined = mine_words(cases, arguments.learner, arguments.tolerance, arguments.test, arguments.seed)
    report = {"log": describe(log), "before_outcome": arguments.before_outcome, **mined.report}
    text = markdown(report)
    try:
        if folder is not None:
            _write(folder, mined.dfa, report, text, arguments.force)
    finally:  # what was mined is shown, whatever became of the files
        print(text, end="", flush=True)
    if folder is None:
        print("\n--output FOLDER would keep it, and say how to train on it")
        return 0
    print(f"\nin {folder}: {', '.join(FILES)}")
    print(next_steps(folder, mined.dfa))
    return 0


class reading_bar(tqdm):  # a context manager, as tqdm is
    """A progress bar over a file's bytes; none where the output is no terminal."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(
            desc=f"reading {Path(path).name}", unit="B", unit_scale=True, leave=False, disable=None, dynamic_ncols=True
        )

    def update_to(self, done: int, size: int) -> None:
        self.total = size or None  # of a pipe it is not known
        self.update(done - self.n)


def describe(log: EventLog) -> dict[str, Any]:
    """What a report says of the log itself."""
    return {
        "file": Path(log.source).name,
        "cases": len(log.cases),
        "events_kept": log.kept,
        "events_dropped": log.dropped,
        "lifecycle": log.transitions,
        "variants": log.variants(),
        "activities": len(log.activities()),
        "cases_reordered": log.reordered,
        "cases_without_all_timestamps": log.untimed,
        "notes": list(log.notes),
    }


def markdown(report: dict[str, Any]) -> str:
    """The report for people."""
    log, conflicts, automaton = report["log"], report["conflicts"], report["automaton"]
    share = report["cases_true"] / report["cases"]
    untimed, undefined = log["cases_without_all_timestamps"], automaton["undefined_transitions"]
    trivial = automaton["states"] == 1
    shape = automaton["shape"] + (f" (last {automaton['degree']})" if automaton["shape"] == "decide-late" else "")
    dropped = f", {log['events_dropped']} dropped by the lifecycle filter" if log["events_dropped"] else ""
    unknown = report["cases_without_attribute"]
    both_labels = "none with both labels" if not conflicts["words"] else (
        f"{conflicts['words']} with both labels, {count(conflicts['cases'], 'case')} against the majority of their word"
    )  # fmt: skip
    lines = [
        f"# {escaped(log['file'])}: {escaped(report['outcome'])}",
        "",
        f"- {log['cases']} cases, {log['variants']} variants; {log['events_kept']} events kept{dropped}",
        *_where(log["cases_reordered"], f"{count(log['cases_reordered'], 'case')} put in the order of time"),
        *_where(untimed, f"{count(untimed, 'case')} left in the file's order, since a timestamp is missing (see --timestamp)"),
        *(f"- {escaped(note)}" for note in log["notes"]),
        f"- the outcome is true of {report['cases_true']} cases ({share:.1%})"
        + (f"; {unknown} lack the attribute and count as false" if unknown else ""),
        "- words: "
        + ("up to the event that decides" if report["before_outcome"] else "whole cases, the deciding event included"),
        f"- alphabet ({len(report['alphabet'])}): {', '.join(map(escaped, report['alphabet']))}",
        f"- {count(report['words'], 'distinct word')}; {both_labels}: Bayes ceiling {conflicts['bayes_ceiling']:.3f}",
        "",
        f"## Automaton ({report['learner']}, tolerance {report['tolerance']:g})",
        "",
        f"- {count(automaton['states'], 'state')} (minimal), shape: {shape}",
        *_where(trivial, "no task: every case gets the same answer. A lower --tolerance, a higher --top or another "
                "--learner tells more cases apart"),
        f"- permutation: {'yes, as every automaton of one state' if trivial else _yes(automaton['permutation'])}; "
        f"star-free: {_yes(automaton['star_free'])}; synchronizing: {_yes(automaton['synchronizing'])}",
        f"- absorbing states: {', '.join(map(str, automaton['absorbing'])) or 'none'}",
        *_where(undefined, f"{count(undefined, 'transition')} that no training word takes: the state stays"),
        "",
        "| cases | number | accuracy | majority | Bayes ceiling | covered |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for heading, key in (
        ("training", "training"), ("held out", "held_out"), ("held out, word not in training", "held_out_unseen_words"),
    ):  # fmt: skip
        score = report[key]
        error = "" if score["standard_error"] is None else f" ± {score['standard_error']:.3f}"
        lines.append(
            f"| {heading} | {score['cases']} | {_three(score['accuracy'])}{error} | {_three(score['majority'])} "
            f"| {_three(score['bayes_ceiling'])} | {_three(score['covered'])} |"
        )
    both = report["split"]["words_in_both"]
    lines += [
        "",
        f"{count(both, 'word') if both else 'No word'} in both training and held out (seed {report['split']['seed']}).",
    ]
    return "\n".join(lines) + "\n"


def _write(folder: Path, dfa: DFA, report: dict[str, Any], text: str, force: bool) -> None:
    from rlstate.drawing import save_drawing

    title = f"{report['log']['file']}: {report['outcome']}"
    written = json.dumps(report, indent=1, ensure_ascii=False)
    write_files(
        folder,
        {
            "automaton.json": lambda path: save(dfa, path),
            "automaton.svg": lambda path: save_drawing(dfa, path, title),
            "report.json": lambda path: path.write_text(f"{written}\n", "utf-8", "backslashreplace"),
            "report.md": lambda path: path.write_text(text, "utf-8", "backslashreplace"),
        },
        force,
    )


def _where(number: int, what: str) -> list[str]:
    """A line for what there is some of: "0 lost" would only alarm."""
    return [f"- {what}"] if number else []


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _yes(value: bool | None) -> str:
    return "too large to tell" if value is None else "yes" if value else "no"
