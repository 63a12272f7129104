"""Labelled words from event logs: cases as words over activities, a case's outcome as its label.

Logs are read by `rlstate.automata.logfiles`. The paper mines seven of them for small automata (section 5.5).
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rlstate.automata.logfiles import Event, Progress, Reading
from rlstate.automata.logvalues import Value, clock, compare, is_ordered

Word = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its activities in order, their times (seconds since 1970 UTC, NaN where unknown), its attributes."""

    name: str
    activities: tuple[str, ...]
    timestamps: tuple[float, ...]
    attributes: dict[str, Value]


@dataclass(frozen=True)
class EventLog:
    """The cases of a log and what became of its events.

    Attributes:
        source: the file's path.
        kept, dropped: how many events the lifecycle filter kept and dropped.
        transitions: how many events the file has of each lifecycle transition ("" where an event has none).
        reordered: how many cases were not in the order of their timestamps in the file, and are now.
        untimed: how many cases stay in the file's order because a timestamp is missing.
        notes: whatever else was lost or made up, a sentence each.
    """

    source: str
    cases: tuple[Case, ...]
    kept: int
    dropped: int
    transitions: dict[str, int]
    reordered: int
    untimed: int
    notes: tuple[str, ...]

    def activities(self) -> dict[str, int]:
        """How many events each activity has, the most frequent first, ties alphabetical."""
        return _ranked(activity for case in self.cases for activity in case.activities)

    def last_activities(self) -> dict[str, int]:
        """How many cases end with each activity, the most frequent first, ties alphabetical."""
        return _ranked(case.activities[-1] for case in self.cases if case.activities)

    def variants(self) -> int:
        """The number of different activity sequences."""
        return len({case.activities for case in self.cases})


def read_log(
    path: str | os.PathLike[str],
    lifecycle: Literal["complete", "all"] | Collection[str] = "complete",
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    progress: Progress | None = None,
) -> EventLog:
    """The event log in an XES or CSV file, gzip or not (told by content, not by name), read as a stream.

    Args:
        lifecycle: which events count. "complete": those whose transition is complete (in any case), and those that
            have none; "all": every event (an activity's start and completion are two symbols then); or a set of
            transitions, in any case, where "" stands for none.
        case, activity, timestamp: the names of the columns, or in XES of the attributes, that hold them. By default
            `case:concept:name`, `concept:name` and `time:timestamp` (in XES `concept:name` of the trace); in CSV
            files `case_id`, `activity` and `timestamp` are recognized too.
        progress: called now and then with the bytes read so far and the file's size.

    A case's events are sorted by time, stably, if all that are kept have a timestamp: rows of a table have no order
    of their own. If one has none the file's order stands, because half an order is no order.
    Timestamps are ISO 8601 or numbers, and digits alone (20240101) are always a number. One unit, told by the largest of
    them, holds for the whole file (see `logvalues.clock`); of dates and numbers in one file the rarer kind is missing.
    In CSV files an attribute of the case is a column that never has two values in one case (empty cells, NA, NaN and
    null do not count); a prefix `case:` is taken off. Attributes of events are not kept.

    Raises:
        ValueError: the file is no event log, is damaged (the sentence says where), has no case, or no event that the
            lifecycle filter keeps.
    """
    keep = _lifecycle_filter(lifecycle)
    reading = Reading(os.fspath(path), case, activity, timestamp, progress)
    traces: list[tuple[str | None, dict[str, Value], list[Event]]] = []
    transitions: Counter[str] = Counter()
    dropped = emptied = 0
    for trace in reading.traces():
        transitions.update(event.transition or "" for event in trace.events)
        events = [event for event in trace.events if event.activity is not None and keep(event.transition)]
        unnamed = sum(event.activity is None and keep(event.transition) for event in trace.events)
        reading.lost["events without an activity: left out"] += unnamed
        dropped += len(trace.events) - len(events) - unnamed
        emptied += bool(trace.events and not events)
        traces.append((trace.name, trace.attributes, events))
    seconds = clock([event.timestamp for _, _, events in traces for event in events], reading.lost)
    cases: list[Case] = []
    reordered = untimed = 0
    for name, attributes, events in traces:
        times = [seconds(event.timestamp) for event in events]
        if any(map(math.isnan, times)):
            untimed += 1
        else:
            order = sorted(range(len(events)), key=lambda i: events[i].timestamp)  # type: ignore[arg-type, return-value]
            reordered += order != list(range(len(events)))
            events, times = [events[i] for i in order], [times[i] for i in order]
        activities = tuple(event.activity for event in events if event.activity is not None)
        cases.append(Case(f"#{len(cases) + 1}" if name is None else name, activities, tuple(times), attributes))
    if not cases:
        raise ValueError(f"{path} has no case: give an event log with at least one trace.")
    kept = sum(len(case.activities) for case in cases)
    if not kept:
        raise ValueError(
            f"{path} has no event that counts: of {sum(transitions.values())} the lifecycle filter drops {dropped}; the "
            f"transitions are {_shown(dict(transitions.most_common()))}. Count all, or a set of them (lifecycle=…)."
        )
    twice = len(cases) - len({case.name for case in cases})
    notes = [f"{count} {what}" for what, count in reading.lost.items() if count]
    notes += [f"{emptied} cases have no event left after the lifecycle filter: the empty word"] * bool(emptied)
    notes += [f"{twice} cases have the name of another one: counted as cases of their own"] * bool(twice)
    counts = dict(sorted(transitions.items(), key=lambda item: (-item[1], item[0])))
    return EventLog(os.fspath(path), tuple(cases), kept, dropped, counts, reordered, untimed, tuple(notes))


def _lifecycle_filter(lifecycle: str | Collection[str]) -> Callable[[str | None], bool]:
    if lifecycle == "all":
        return lambda _: True
    if lifecycle == "complete":
        lifecycle = ("complete", "")
    elif isinstance(lifecycle, str):
        raise ValueError(f"lifecycle is {lifecycle!r}: give 'complete', 'all' or a set of transitions.")
    wanted = {name.lower() for name in lifecycle}
    return lambda transition: (transition or "").lower() in wanted


# --- outcomes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A rule that labels cases, as `parse_outcome` reads it; call it with a case."""

    kind: Literal["contains", "last", "attribute"]
    activities: tuple[str, ...] = ()
    key: str = ""
    operator: str = "="
    value: str = ""

    def __call__(self, case: Case) -> bool:
        if self.kind == "contains":
            return any(activity in self.activities for activity in case.activities)
        if self.kind == "last":
            return bool(case.activities) and case.activities[-1] in self.activities
        if self.key not in case.attributes:
            return False
        return compare(case.attributes[self.key], self.operator, self.value)

    def decides(self, case: Case) -> int | None:
        """The position of the first event that decides the label: None where no event does."""
        if self.kind == "last":
            return len(case.activities) - 1 if case.activities else None
        if self.kind == "contains":
            return next((i for i, activity in enumerate(case.activities) if activity in self.activities), None)
        return None

    def __str__(self) -> str:
        if self.kind == "attribute":
            return f"attribute:{self.key}{self.operator}{self.value}"
        escaped = (name.replace("\\", "\\\\").replace("|", "\\|") for name in self.activities)
        return f"{self.kind}:{'|'.join(escaped)}"


_RULES = "contains:ACTIVITY, last:ACTIVITY (several with |) or attribute:KEY=VALUE (also !=, >=, <=, >, <)"


def parse_outcome(text: str) -> Outcome:
    r"""The rule in a text: `contains:A|B`, `last:A|B`, `attribute:key=value` (also !=, >=, <=, >, <).

    Within an activity's name `|` is written `\|`, and a backslash before it (or before another) `\\`. A value is compared
    as a number where both sides are one (exactly), as an instant where both are ISO 8601 (a day alone is its beginning,
    UTC), otherwise as text; truth values are true and false, or 1 and 0.
    """
    kind, _, rest = text.partition(":")
    if kind == "attribute" and (match := re.fullmatch(r"(.+?)(>=|<=|!=|=|>|<)(.*)", rest, re.DOTALL)):
        key, operator, value = match.groups()
        if operator not in ("=", "!=") and not is_ordered(value):
            raise ValueError(f"The outcome {text!r} compares with {value!r}, which is neither a number nor a date.")
        return Outcome("attribute", key=key, operator=operator, value=value)
    names = [re.sub(r"\\([\\|])", r"\1", name) for name in re.findall(r"(?:^|\|)((?:\\[\\|]|[^|])*)", rest, re.DOTALL)]
    if kind in ("contains", "last") and all(names):
        return Outcome("contains" if kind == "contains" else "last", tuple(names))
    raise ValueError(f"The outcome {text!r} is no rule: give {_RULES}.")


# --- labelled words -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledWords:
    """The cases of a log as labelled words, one a case (so words repeat, and may have both labels).

    Attributes:
        names: the cases' names.
        words: their activities as indices into `alphabet`.
        labels: whether the outcome rule holds.
        unknown: how many cases lack the attribute that the rule asks for (they are labelled false).
    """

    names: tuple[str, ...]
    words: tuple[Word, ...]
    labels: tuple[bool, ...]
    alphabet: tuple[str, ...]
    outcome: str
    unknown: int = 0

    def __len__(self) -> int:
        return len(self.words)

    def counts(self) -> dict[Word, tuple[int, int]]:
        """For each distinct word how many of its cases are labelled false and true, shortest words first."""
        false = Counter(word for word, label in zip(self.words, self.labels) if not label)
        true = Counter(word for word, label in zip(self.words, self.labels) if label)
        return {word: (false[word], true[word]) for word in sorted(false | true, key=lambda word: (len(word), word))}

    def conflicts(self) -> tuple[int, int]:
        """How many distinct words have both labels, and how many cases are against their word's majority."""
        minorities = [min(pair) for pair in self.counts().values()]
        return sum(count > 0 for count in minorities), sum(minorities)

    def bayes_ceiling(self) -> float:
        """The accuracy on these cases of the best map from words to labels; no automaton over them exceeds it."""
        return (len(self) - self.conflicts()[1]) / len(self) if len(self) else math.nan

    def resolved(self) -> tuple[list[Word], list[bool], list[int]]:
        """Distinct words, each with its majority's label and how many cases have it, for a learner.

        A tie gets the label that fewer cases of the log have: its cases are then at least seen.
        """
        rare = 2 * sum(self.labels) <= len(self)
        counts = self.counts()
        labels = [true > false or (true == false and rare) for false, true in counts.values()]
        return list(counts), labels, [max(pair) for pair in counts.values()]

    def split(self, test: float = 0.3, seed: int = 0) -> tuple[LabelledWords, LabelledWords]:
        """Training and test cases, by a hash of the seed and the case's name: the same on every machine."""
        if not 0.0 <= test <= 1.0:
            raise ValueError(f"test is {test}, but must be a share of the cases, from 0 to 1.")
        bound = int(test * 2**64)
        held_out = [_hash(seed, name) < bound for name in self.names]
        return self.where([not out for out in held_out]), self.where(held_out)

    def where(self, chosen: Sequence[bool]) -> LabelledWords:
        """The chosen cases (one bool a case)."""
        names, words, labels = (
            tuple(x for x, c in zip(xs, chosen) if c) for xs in (self.names, self.words, self.labels)
        )
        return LabelledWords(names, words, labels, self.alphabet, self.outcome)  # type: ignore[arg-type]


def labelled_words(
    log: EventLog,
    outcome: str | Outcome | Callable[[Case], bool],
    top: int = 8,
    other: str = "other",
    include_outcome: bool = True,
) -> LabelledWords:
    """A labelled word for each case.

    Args:
        outcome: a rule as text (see `parse_outcome`), or any function of a case.
        top: this many most frequent activities are symbols (ties alphabetical), and all others together one more,
            `other`, if there are any. Activities that the rule names are symbols too where the word includes them,
            however rare: without them the word could not show its own label.
        include_outcome: whether the whole case is the word, the deciding event included. Otherwise the word ends
            before the first event that decides: the first named activity for `contains`, the last event for `last`.
            In a case that has no such event the whole case is the word.

    Raises:
        ValueError: the rule names what the log does not have, or is true of no case or of all; or an activity is
            called like `other`; or the word is to end before the outcome and no event decides it.
    """
    rule = parse_outcome(outcome) if isinstance(outcome, str) else outcome
    named = rule.activities if isinstance(rule, Outcome) else ()
    frequency = log.activities()
    for activity in named:
        if activity not in frequency:
            raise ValueError(
                f"The outcome {rule} names {activity!r}, which is no activity of {log.source}; the most frequent are "
                f"{_shown(frequency)}."
            )
    if not include_outcome and (not isinstance(rule, Outcome) or rule.kind == "attribute"):
        raise ValueError(f"No event decides the outcome {rule}, so no word can end before it: take the whole case.")
    if top < 1:
        raise ValueError(f"top is {top}, but at least one activity must be a symbol.")
    labels = tuple(bool(rule(case)) for case in log.cases)
    if len(set(labels)) < 2:
        everywhere = "every case" if labels[0] else "no case"
        raise ValueError(
            f"The outcome {_name(rule)} is true of {everywhere} of {log.source}, so there is nothing to learn; "
            f"{_possible(rule, log)}."
        )
    symbols = [name for i, name in enumerate(frequency) if i < top or (include_outcome and name in named)]
    alphabet = tuple(symbols) if len(symbols) == len(frequency) else (*symbols, other)
    if len(set(alphabet)) < len(alphabet):
        raise ValueError(f"{other!r} is an activity of {log.source}: give the rest another name (other=…).")
    index = {name: i for i, name in enumerate(symbols)}
    words = []
    for case in log.cases:
        end = None if include_outcome or not isinstance(rule, Outcome) else rule.decides(case)
        words.append(tuple(index.get(name, len(symbols)) for name in case.activities[:end]))
    unknown = 0
    if isinstance(rule, Outcome) and rule.kind == "attribute":
        unknown = sum(rule.key not in case.attributes for case in log.cases)
    return LabelledWords(tuple(case.name for case in log.cases), tuple(words), labels, alphabet, _name(rule), unknown)


def _possible(rule: object, log: EventLog) -> str:
    """What a rule of this kind could ask for."""
    if isinstance(rule, Outcome) and rule.kind == "last":
        return f"cases end with {_shown(log.last_activities())}"
    if isinstance(rule, Outcome) and rule.kind == "attribute":
        values = _ranked(str(case.attributes[rule.key]) for case in log.cases if rule.key in case.attributes)
        if values:
            return f"{rule.key} is {_shown(values)}"
        return f"the attributes are {_shown(_ranked(key for case in log.cases for key in case.attributes))}"
    return f"the most frequent activities are {_shown(log.activities())}"


def _name(rule: object) -> str:
    return str(rule) if isinstance(rule, Outcome) else getattr(rule, "__name__", "given as a function")


def _hash(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest()[:8], "big")


def _ranked(items: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(items).items(), key=lambda item: (-item[1], item[0])))


def _shown(counts: dict[str, int], limit: int = 12) -> str:
    listed = ", ".join(f"{name!r} ({count})" for name, count in list(counts.items())[:limit])
    return f"{listed}, … {len(counts)} in all" if len(counts) > limit else listed or "none"
