"""The tasks of the paper (sections 5.1–5.6), by name, each with its language and why it is in the suite."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlstate.automata.dfa import DFA
from rlstate.automata.files import load


@dataclass(frozen=True)
class Entry:
    """What a task is and why it is in the suite.

    Attributes:
        name: its name for `make`.
        language: the accepted words, in words.
        why: what the task is there to show.
        leverage: L at `p_control` = 0.5 and T = 24, to three decimals; None where nobody wrote it down.
        label: the paper's measured label, "hard" or "easy" (the privileged auxiliary's benefit, section 5.5);
            None for a task outside that comparison.
        exact: closed form of the leverage, where one is known.
    """

    name: str
    language: str
    why: str
    leverage: float | None = None
    label: str | None = None
    exact: str = ""


# --- automata -----------------------------------------------------------------------------------------------------


def parity() -> DFA:
    """An even number of 1s."""
    return DFA([[0, 1], [1, 0]], [True, False])


def mod_k(k: int) -> DFA:
    """Binary numbers, most significant digit first, divisible by k: `q → 2q + a mod k`."""
    k = _at_least("k", k, 2)
    q = np.arange(k)
    return DFA(np.stack([2 * q % k, (2 * q + 1) % k], axis=1), q == 0)


def mod_k_hold(k: int) -> DFA:
    """mod_k with a third symbol that leaves the state as it is."""
    counter = mod_k(k)
    hold = np.arange(counter.n_states)
    return DFA(np.column_stack([counter.transitions, hold]), counter.accepting, 0, ("0", "1", "hold"))


def ends_with(w: str) -> DFA:
    """Binary words that end with w; the state is the length of the longest suffix read that begins w."""
    table = _prefix_automaton(w)
    return DFA(table, np.arange(len(table)) == len(w))


def contains(w: str) -> DFA:
    """Binary words that contain w; accepting is absorbing."""
    table = _prefix_automaton(w)
    table[len(w)] = len(w)
    return DFA(table, np.arange(len(table)) == len(w))


def no_three_zeros() -> DFA:
    """Binary words without 000; rejecting is absorbing."""
    return contains("000").complement()


def workflow_api(stages: int = 2) -> DFA:
    """`stages` calls of "step" must come before the first "commit"; accepting and rejecting are absorbing."""
    stages = _at_least("stages", stages, 1)
    accept, reject = stages + 1, stages + 2
    step = [*range(1, stages + 1), stages, accept, reject]
    commit = [reject] * stages + [accept, accept, reject]
    return DFA(np.stack([step, commit], axis=1), np.arange(stages + 3) == accept, 0, ("step", "commit"))


def workflow_latch() -> DFA:
    """The first symbol other than "wait" sets a bit, which is held for ever: "set" accepts, "clear" rejects."""
    return DFA([[0, 1, 2], [1, 1, 1], [2, 2, 2]], [False, True, False], 0, ("wait", "set", "clear"))


def workflow_quota(quota: int = 3) -> DFA:
    """A stock that "add" raises and "take" lowers, between 0 and 2·quota − 1, ends at the quota or above."""
    quota = _at_least("quota", quota, 1)
    stock = np.arange(2 * quota)
    table = np.stack([np.minimum(stock + 1, 2 * quota - 1), np.maximum(stock - 1, 0)], axis=1)
    return DFA(table, stock >= quota, 0, ("add", "take"))


def workflow_reconcile(k: int = 5) -> DFA:
    """A balance modulo k under +1, −1 and "hold" ends at 0."""
    k = _at_least("k", k, 2)
    q = np.arange(k)
    return DFA(np.stack([(q + 1) % k, (q - 1) % k, q], axis=1), q == 0, 0, ("+1", "-1", "hold"))


def mined_div7() -> DFA:
    """Binary numbers divisible by 7: mod_7's language, which the paper recovered from code."""
    return mod_k(7)


def mined_ean() -> DFA:
    """Digit words of any length whose sum with weights 1, 3, 1, 3, … from the left is divisible by 10.

    EAN-13's check sum without its length: state 10·(position mod 2) + sum mod 10, 20 states.
    """
    position, total = np.divmod(np.arange(20), 10)
    weighted = np.where(position == 0, 1, 3)[:, None] * np.arange(10)
    table = 10 * (1 - position)[:, None] + (total[:, None] + weighted) % 10
    return DFA(table, total == 0)


def mined(source: str) -> DFA:
    """An automaton as `python -m rlstate.mine` found it, in code or in an event log (rlstate/automata/mined)."""
    folder = Path(__file__).with_name("mined")
    known = sorted(path.stem for path in folder.glob("*.json"))
    if source not in known:
        raise ValueError(f"source is {source!r}, but what was mined is {', '.join(known)}.")
    return load(folder / f"{source}.json")


# --- by name ------------------------------------------------------------------------------------------------------

_MAKERS: dict[str, Callable[..., DFA]] = {
    "parity": parity,
    "mod_k": mod_k,
    "mod_k_hold": mod_k_hold,
    "ends_with": ends_with,
    "contains": contains,
    "no_three_zeros": no_three_zeros,
    "workflow_api": workflow_api,
    "workflow_latch": workflow_latch,
    "workflow_quota": workflow_quota,
    "workflow_reconcile": workflow_reconcile,
    "mined_div7": mined_div7,
    "mined_ean": mined_ean,
    "mined": mined,
}

# A family's member carries its parameter in its name.
_FAMILIES: list[tuple[str, str, str, Callable[[str], Any]]] = [
    (r"mod_(-?\d+)", "mod_k", "k", int),
    (r"mod_(-?\d+)_hold", "mod_k_hold", "k", int),
    (r"ends_with_(\w+)", "ends_with", "w", str),
    (r"contains_(\w+)", "contains", "w", str),
    (r"mined_(\w+)", "mined", "source", str),
]
_FAMILY_NAMES = "mod_<k>, mod_<k>_hold, ends_with_<w>, contains_<w>, mined_<name>"

_COUNTER = "a counter that must accumulate: a permutation automaton, hard to steer, so credit vanishes"
_ENTRIES = [
    Entry("parity", "an even number of 1s", "the smallest group language; every uncontrolled step erases all credit",
          0.5, "hard", "L = p_control at every horizon"),
    Entry("mod_2", "binary numbers divisible by 2", "the state is the last symbol: synchronizing, solved locally",
          0.5, "easy", "L = p_control at every horizon"),
    Entry("mod_3", "binary numbers divisible by 3", "a group counter small enough to steer and so still learnable",
          0.538, "easy", "L → 7/13 as T grows"),
    Entry("mod_5", "binary numbers divisible by 5", _COUNTER, 0.433, "hard"),
    Entry("mod_7", "binary numbers divisible by 7", _COUNTER, 0.406, "hard"),
    Entry("mod_9", "binary numbers divisible by 9", _COUNTER, 0.345, "hard"),
    Entry("mod_11", "binary numbers divisible by 11", _COUNTER, 0.335, "hard"),
    Entry("mod_5_hold", "as mod_5, where a third symbol leaves the state",
          "the fix for mod_5 by latchability: still a permutation automaton, with a controllable stabilizer", 0.523),
    Entry("ends_with_101", "words that end with 101",
          "a local language, planning gap: the state is represented but reward is not reached", 0.339, "easy",
          "V_opt = ((1 + p)/2)^3, V_rand = 1/8"),
    Entry("ends_with_1000", "words that end with 1000",
          "planning gap, longer word: probe high, reward low", 0.271, "easy",
          "V_opt = ((1 + p)/2)^4, V_rand = 1/16"),
    Entry("contains_0010", "words that contain 0010",
          "an absorbing goal; random play reaches it too, so it is diagnostic at short horizons only", 0.972, "easy"),
    Entry("no_three_zeros", "words without 000",
          "star-free with four states: easy, although parity with two is hard", 0.719, "easy"),
    Entry("workflow_api", "two calls of step before the first commit",
          "reach-commit stages, accept and reject absorbing: the influence of the state never decays", 0.417, "easy",
          "L → 5/12 as T grows: V_opt = ((1 + p)/2)^2, V_rand = 1/4"),
    Entry("workflow_latch", "the first symbol other than wait is set",
          "a bit set once and held: long-range distance alone is not the difficulty; the best play is open-loop",
          0.6, "easy", "L → 3p/(2 + p) as T grows"),
    Entry("workflow_quota", "a stock between 0 and 5, raised by add and lowered by take, ends at 3 or above",
          "accumulation to a threshold instead of an exact value; the best play is open-loop", 0.928, "easy",
          "L → 13/14 as T grows"),
    Entry("workflow_reconcile", "as many +1 as -1, modulo 5",
          "a terminal invariant in a group language, steerable because it can be held", 0.519, "easy",
          "L → 27/52 as T grows"),
    Entry("mined_div7", "binary numbers divisible by 7", "mod_7 recovered from code nobody wrote for this",
          0.406, "hard"),
    Entry("mined_ean", "digit words with weighted sum (1, 3, 1, 3, … from the left) divisible by 10",
          "EAN-13's check sum: 20 states over 10 symbols, control-relevant quotient 10, the clearest perception gap",
          0.5, "hard", "L = p_control at every horizon: the last symbol decides"),
]  # fmt: skip
_BY_NAME = {entry.name: entry for entry in _ENTRIES}


def names() -> list[str]:
    """The named tasks; any other member of a family (mod_13, ends_with_0110, …) works by name as well."""
    return list(_BY_NAME)


def make(name: str, **parameters: Any) -> DFA:
    """The automaton of a task: `make("mod_5")`, `make("mod_k", k=5)`, `make("ends_with", w="101")`.

    Raises:
        ValueError: an unknown name, or a parameter that is missing, unknown or out of range.
    """
    base, given = _resolve(name)
    maker = _MAKERS[base]
    clash = sorted(set(given) & set(parameters))
    if clash:
        raise ValueError(f"The task name {name!r} already fixes {clash[0]}={given[clash[0]]!r}; leave it out.")
    known = inspect.signature(maker).parameters
    required = [key for key, parameter in known.items() if parameter.default is parameter.empty]
    for key in parameters:
        if key not in known:
            takes = f"takes {', '.join(known)}" if known and not given else "takes no parameters"
            raise ValueError(f"Task {name!r} has no parameter {key!r}; it {takes}.")
    missing = [key for key in required if key not in parameters and key not in given]
    if missing:
        raise ValueError(f"Task {name!r} needs the parameter {missing[0]!r}, as in {_EXAMPLES[base]}.")
    return maker(**given, **parameters)


_EXAMPLES = {
    "mod_k": 'make("mod_k", k=5) or make("mod_5")',
    "mod_k_hold": 'make("mod_k_hold", k=5) or make("mod_5_hold")',
    "ends_with": 'make("ends_with", w="101") or make("ends_with_101")',
    "contains": 'make("contains", w="0010") or make("contains_0010")',
    "mined": 'make("mined", source="damm") or make("mined_damm")',
}


def describe(name: str) -> Entry:
    """The entry of a task; members of a family that are not in the suite get their language only."""
    base, given = _resolve(name)
    if name in _BY_NAME:
        return _BY_NAME[name]
    language = (_MAKERS[base].__doc__ or "").split("\n")[0]
    where = ", ".join(f"{key} = {value}" for key, value in given.items())
    return Entry(name, f"{language} Here {where}." if where else language, "a member of a family, outside the suite")


def _resolve(name: str) -> tuple[str, dict[str, Any]]:
    if name in _MAKERS:
        return name, {}
    for pattern, base, key, convert in _FAMILIES:
        match = re.fullmatch(pattern, str(name))
        if match:
            return base, {key: convert(match[1])}
    close = difflib.get_close_matches(str(name), [*_BY_NAME, *_MAKERS], n=3)
    hint = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    raise ValueError(
        f"Unknown task {name!r}. {hint}rlstate.automata.zoo.names() lists the named tasks; the families are "
        f"{_FAMILY_NAMES}."
    )


def _at_least(key: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{key} is {value!r}, but must be an integer of at least {least}.")
    return int(value)


def _prefix_automaton(w: str) -> np.ndarray:
    """int[len(w) + 1, 2]: from i symbols of w matched, how many are after one more (Knuth, Morris and Pratt)."""
    if isinstance(w, int) and not isinstance(w, bool):
        raise ValueError(f"w is the number {w}; write the word as a string, as in w='0010', or zeros get lost.")
    if not isinstance(w, str) or not re.fullmatch("[01]+", w):
        raise ValueError(f"w is {w!r}, but must be a non-empty word over 0 and 1, such as '101'.")
    digits = [int(c) for c in w]
    table = np.zeros((len(w) + 1, 2), dtype=np.int64)
    fallback = 0
    for i in range(len(w) + 1):
        table[i] = table[fallback] if i else 0
        if i < len(w):
            table[i, digits[i]] = i + 1
        if 0 < i < len(w):
            fallback = table[fallback, digits[i]]
    return table
