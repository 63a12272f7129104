"""`python -m rlstate.mine code NAME` or `… code package.module:function`: the automaton of the words that code accepts."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import math
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlstate.automata import files, mining
from rlstate.automata.predicates import Predicate
from rlstate.control import Features, checks, features
from rlstate.control.task import PAPER_HORIZON
from rlstate.mine_output import FILES, as_options, check_output, count, escaped, next_steps, write_files
from rlstate.output import jsonable

MAX_MONOID = 100_000
"""Larger transition monoids are not counted."""
Section = tuple[str, list[tuple[str, str]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m rlstate.mine code`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = textwrap.dedent("""\
        A function takes the word as a string if every symbol's name is one character, otherwise as a tuple of names,
        and answers True or False for every word. Modules are looked for in the working directory as well:
          python -m rlstate.mine code verhoeff --tester w --output mined/verhoeff
          python -m rlstate.mine code stdnum.luhn:is_valid --alphabet 0123456789 --reads right
          python -m rlstate.mine code my_door:is_safe --alphabet open,close,lock --learner edsm
          python -m rlstate.mine code my_list:is_sorted --alphabet '[",", " ", "a"]'
        Random words prove nothing: where it matters add --tester w, which does for code of so many states and no more.
        Where the code accepts hardly any of them, give some that it accepts: --example TEXT.""")
    add = parser.add_argument
    # fmt: off
    add("code", metavar="NAME|package.module:function", help="a predicate that `list` shows, div<m>_base<b>, or a function")
    add("--alphabet", help="of a function: one character a symbol (01), names with commas or spaces (open,close), or "
        "a JSON list of names, which may hold commas and spaces")
    add("--reads", choices=("left", "right"), help="of a function: a word's first symbol is the text's leftmost (default) "
        "or rightmost")
    add("--learner", choices=mining.LEARNERS, default="ttt", help="(default: ttt; the last three are passive)")
    add("--tester", choices=mining.TESTERS, default="random", help="of equivalence: random words (default), or these and "
        "then the W-method")
    add("--extra-states", type=int, default=1, metavar="N", help="that the W-method allows the code (default: 1)")
    add("--tests", type=int, default=1000, metavar="N", help="random words a test (default: 1000)")
    add("--max-length", type=int, metavar="L", help="of random words (default: 20, and more with more states)")
    add("--example", action="append", default=[], metavar="TEXT", help="to ask in every test, such as one that the code accepts; "
        "written as --alphabet is, and may be repeated")
    add("--budget", type=int, metavar="N", help="most queries, distinct words and equivalence (default: no limit)")
    add("--sample", type=int, default=2000, metavar="N", help="words a passive learner starts with (default: 2000)")
    add("--rounds", type=int, default=5, metavar="N", help="tries of a passive learner (default: 5)")
    add("--held-out-lengths", type=_lengths, metavar="L,L,…", help="of held-out words (default: 10,20,40)")
    add("--held-out-number", type=int, default=500, metavar="N", help="held-out words of each length (default: 500)")
    add("--horizon", type=int, default=PAPER_HORIZON, metavar="T", help="of the task, for the oracle (default: %(default)s)")
    add("--p-control", type=float, default=0.5, metavar="P", help="of the task, for the oracle (default: 0.5)")
    add("--seed", type=int, default=0)
    add("--output", type=Path, metavar="FOLDER", help=f"for {', '.join(FILES)}; "
        "without it the report is only shown")
    add("--force", action="store_true", help="replace a report that is already there")
    # fmt: on


def main(arguments: argparse.Namespace) -> int:
    """Mine, show, and write what was asked for; raises ValueError, OSError or ImportError with a sentence for people."""
    folder: Path | None = arguments.output
    if folder is not None:
        check_output(folder, arguments.force)
    checks.count("horizon", arguments.horizon)  # now, not after hours of mining
    checks.probability("p_control", arguments.p_control)
    code = load_code(arguments.code, arguments.alphabet, arguments.reads)
    names = ("tester", "extra_states", "tests", "max_length", "budget", "sample", "rounds",
             "held_out_number", "held_out_lengths", "seed")  # fmt: skip
    settings = {name: getattr(arguments, name) for name in names}
    examples = [split_names(text, code.alphabet) for text in arguments.example]
    mined = mining.mine(code, learner=arguments.learner, examples=examples, **settings)
    settings["examples"] = arguments.example
    structure = features(mined.dfa, arguments.horizon, arguments.p_control, MAX_MONOID)
    sections = describe(mined, structure, arguments.horizon, arguments.p_control)
    try:
        if folder is not None:
            task = {"horizon": arguments.horizon, "p_control": arguments.p_control}
            write(folder, mined, as_json(mined, structure, settings, task), as_markdown(sections), arguments.force)
    finally:  # what was mined is shown, whatever became of the files
        print(as_text(sections), flush=True)
    if folder is None:
        print("\n--output FOLDER would keep it, and say how to train on it")
        return 0
    print(f"\nin {folder}: {', '.join(FILES)}")
    print(next_steps(folder, mined.dfa, arguments.horizon, arguments.p_control))
    return 0


def show_predicates() -> int:
    """Print a line for each named predicate."""
    for known in mining.predicates():
        language = known.description.partition(". ")[0].partition(": ")[0]
        print(f"{known.name:<14} {len(known.alphabet):>2} symbols, read from the {known.reads + ';':<6} {language}")
    print("div<m>, div<m>_base<b>: numbers in base b (2 unless given) that m divides")
    return 0


def load_code(name: str, alphabet: str | None = None, reads: Any = None) -> Predicate:
    """The predicate of that name, or of the function `package.module:function`.

    Raises:
        ValueError: there is none, it is not a function, or an alphabet is missing or superfluous.
    """
    if ":" not in name:
        module_name, _, function_name = name.rpartition(".")
        if module_name:  # no predicate's name has a dot
            raise ValueError(
                f"{name!r} is no predicate's name, and a function is written package.module:function: "
                f"{module_name}:{function_name}?"
            )
        try:
            known = mining.predicate(name)
        except ValueError as error:
            raise ValueError(f"{error} A function is written package.module:function.") from None
        if alphabet is not None or reads is not None:
            raise ValueError(
                f"The predicate {name!r} brings its own alphabet and direction: leave out --alphabet and --reads."
            )
        return known
    module_name, _, path = name.partition(":")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function: Any = importlib.import_module(module_name)
    except Exception as error:  # the user's module may raise anything
        raise ValueError(f"Module {module_name!r} could not be imported: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(function, part):
            raise ValueError(f"Module {module_name!r} has no function {path!r}.")
        function = getattr(function, part)
    if not callable(function):
        raise ValueError(f"{name} is a {type(function).__name__}, but must be a function of a word.")
    if alphabet is None:
        raise ValueError(f"{name} is a function, so give its symbols: --alphabet 01, or --alphabet open,close,lock.")
    symbols = split_alphabet(alphabet)
    language = (function.__doc__ or "").strip().partition("\n")[0]
    return Predicate(name, function, symbols, language, reads or "left", name)


def split_alphabet(text: str) -> tuple[str, ...]:
    """The names in `01`, `open,close`, `open close` or, where names hold such characters, a JSON list of strings."""
    if text.startswith("["):
        with suppress(ValueError):
            names = json.loads(text)
            if names and all(isinstance(name, str) for name in names):
                return tuple(names)
    return tuple(text.replace(",", " ").split() if "," in text or " " in text else text)


def split_names(text: str, alphabet: Sequence[str]) -> str | tuple[str, ...]:
    """A text over the alphabet as `Predicate.read` takes it: `0110` or `0,1,1,0`, `open,close`, a JSON list of names."""
    if all(len(name) == 1 for name in alphabet):
        return "".join(character for character in text if character in alphabet or character not in ", ")
    return split_alphabet(text) if text.startswith("[") else tuple(text.replace(",", " ").split())


# --- the report ---------------------------------------------------------------------------------------------------


def describe(mined: mining.Mined, structure: Features, horizon: int, p_control: float) -> list[Section]:
    """The report as headings with (what, value) lines."""
    code, dfa, counts = mined.predicate, mined.dfa, mined.counts
    trivial = dfa.n_states == 1
    asked = [
        ("code", f"{code.name} ({code.source})" if code.source not in ("", code.name) else code.name),
        ("language", code.description or "not described"),
        ("symbols", f"{len(code.alphabet)}: {_names(code.alphabet)}; a text is read from the {code.reads}"),
        ("learner", mined.learner),
    ]
    result = [
        ("automaton", f"{count(dfa.n_states, 'state')}, {int(dfa.accepting.sum())} of them accepting, "
         f"{count(dfa.n_symbols, 'symbol')}"),
        ("trivial", "" if not trivial else f"it {'accepts' if dfa.accepting[0] else 'rejects'} every word. If the code does not, "
         f"test more random words (--tests), longer or shorter ones (--max-length) or all words up to N symbols (--tester w "
         f"--extra-states N), or give one with the other answer (--example TEXT)"),
        ("PARTIAL", as_options(mined.partial or "")),
        ("tested", mined.verification if mined.passed else ""),
        ("queries", f"{counts.unique} words ({counts.raw} times, {counts.symbols} symbols), {counts.equivalence} "
         f"equivalence; the code accepts {mined.accepted} of the words"),
        ("rounds", "" if mined.rounds is None else str(mined.rounds)),
        ("learned", "" if mined.learned is None else f"{mined.learned:.1%} of the transitions, the others completed"),
        ("coverage", f"{mined.coverage:.1%} of the transitions" + _uncovered(mined)),
        ("held out", _held_out(mined.held_out)),
    ]  # fmt: skip
    large = f"more than {MAX_MONOID:,} elements"
    shape = [
        ("permutation", "yes, as every automaton of one state" if trivial else
         _yes(structure.permutation) + (": a group language, the paper's warning sign of a perception gap"
                                                       if structure.permutation else "")),
        ("star-free", _yes(structure.star_free)),
        ("monoid", large if structure.monoid_size is None else count(structure.monoid_size, "element")),
        ("synchronizing", _yes(structure.synchronizing)),
        ("stabilizers", _names(dfa.alphabet[symbol] for symbol in structure.stabilizers) or "none"),
    ]  # fmt: skip
    task = [
        ("V_opt, V_rand", f"{structure.optimal:.4f}, {structure.random:.4f}, difference "
         f"{structure.optimal - structure.random:.4f}"),
        ("leverage", "undefined, control changes nothing" if math.isnan(structure.leverage)
         else f"{structure.leverage:.4f}"),
        ("diagnostic", _yes(structure.diagnostic)),
        ("quotient", f"{structure.quotient_size} control-relevant classes"),
    ]  # fmt: skip
    if trivial:
        task = [("task", "none: every word gets the same answer")]
    return [
        ("asked", asked),
        ("mined", [line for line in result if line[1]]),
        ("structure", shape),
        (f"as a task, T = {horizon}, p_control = {p_control:g}", task),
    ]


def as_text(sections: Sequence[Section]) -> str:
    lines = []
    for heading, rows in sections:
        lines += ["", heading]
        for what, value in rows:
            lines += textwrap.wrap(value, 118, initial_indent=f"  {what:<15}", subsequent_indent=" " * 17)
    return "\n".join(lines[1:])


def as_markdown(sections: Sequence[Section]) -> str:
    lines = [f"# {escaped(sections[0][1][0][1])}", "", "![the automaton](automaton.svg)"]
    for heading, rows in sections:
        lines += ["", f"## {heading[0].upper()}{heading[1:]}", "", "| | |", "|---|---|"]
        lines += [f"| {what} | {escaped(value)} |" for what, value in rows]
    return "\n".join(lines) + "\n"


def as_json(mined: mining.Mined, structure: Features, settings: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
    code, dfa = mined.predicate, mined.dfa
    return {
        "kind": "code",
        "code": {"name": code.name, "source": code.source, "description": code.description,
                 "alphabet": list(code.alphabet), "reads": code.reads},
        "learner": mined.learner,
        "settings": settings,
        "automaton": {"states": dfa.n_states, "symbols": dfa.n_symbols, "accepting": int(dfa.accepting.sum()),
                      "digest": dfa.digest()},
        "partial": mined.partial,
        "passed": mined.passed,
        "verification": mined.verification,
        "counts": dataclasses.asdict(mined.counts),
        "words": mined.words,
        "accepted": mined.accepted,
        "coverage": mined.coverage,
        "uncovered": [[state, dfa.alphabet[symbol]] for state, symbol in mined.uncovered],
        "held_out": dataclasses.asdict(mined.held_out),
        "learned": mined.learned,
        "rounds": mined.rounds,
        "task": task,
        "features": jsonable(dataclasses.asdict(structure)),
    }  # fmt: skip


def _names(alphabet: Iterable[str]) -> str:
    """Names in a row; those that would not be seen as one in quotes."""
    return " ".join(name if name.isprintable() and not set(name) & set(" ,'") else repr(name) for name in alphabet)


def _uncovered(mined: mining.Mined, shown: int = 5) -> str:
    if not mined.uncovered:
        return ""
    some = ", ".join(f"{state} on {_names([mined.dfa.alphabet[symbol]])}" for state, symbol in mined.uncovered[:shown])
    return f"; no word went through {some}{', …' if len(mined.uncovered) > shown else ''}"


def _held_out(accuracy: mining.Accuracy) -> str:
    if accuracy.overall is None:
        return "no fresh words"
    parts = [f"{accuracy.overall:.2%} of {accuracy.accepted + accuracy.rejected} fresh random words"]
    for kind, share, number in (
        ("accepted", accuracy.on_accepted, accuracy.accepted),
        ("rejected", accuracy.on_rejected, accuracy.rejected),
    ):
        parts.append(f"no {kind} ones" if share is None else f"{share:.2%} of the {number} {kind}")
    lengths = ", ".join(f"{share:.2%} at {length}" for length, _, share in accuracy.by_length)
    return f"{', '.join(parts)}; by length {lengths}"


def _yes(answer: bool | None) -> str:
    return "unknown, too large" if answer is None else "yes" if answer else "no"


# --- files --------------------------------------------------------------------------------------------------------


def write(folder: Path, mined: mining.Mined, report: dict[str, Any], markdown: str, force: bool) -> None:
    """The four files or none: see `write_files`."""
    from rlstate.drawing import save_drawing

    title = f"{mined.predicate.name}{' (partial)' if mined.partial else ''}"
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)
    write_files(
        folder,
        {
            "automaton.json": lambda path: files.save(mined.dfa, path),
            "automaton.svg": lambda path: save_drawing(mined.dfa, path, title),
            "report.json": lambda path: path.write_text(f"{text}\n", "utf-8", "backslashreplace"),
            "report.md": lambda path: path.write_text(markdown, "utf-8", "backslashreplace"),
        },
        force,
    )


def _lengths(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of lengths such as 10,20,40") from None
