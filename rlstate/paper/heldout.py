"""The held-out scores: does permutation structure foretell the perception gap on fresh automata? (paper §5.5, App. D, Table 3)

Labels are of the means over an automaton's seeds. What is there is scored, and every share says how many of how many: an
automaton none of whose runs is finished is left out, one with fewer seeds than its set has is scored and named, one whose runs
are of two configurations is named and left out, and one whose recovery is undefined (next to no state to recover) is in no share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from rlstate.control import Features, Oracle, features
from rlstate.control.credit import LOW_LEVERAGE
from rlstate.control.strata import HORIZON, P_CONTROL, STRATA, HeldOut, held_out
from rlstate.paper.select import Arm, cell
from rlstate.probes.verdict import Thresholds, Verdict, seed_averaged, verdict
from rlstate.results import Row
from rlstate.statistics import roc_auc, wilson

GAP, PLANNING, SOLVED = "perception_gap", "planning_gap", "solved"
SEEDS = {"gru": {"original": 5, "extension": 3}, "lstm": {"original": 3}}
"""How many the paper ran, by encoder and set; with the LSTM only the original 33."""
THRESHOLDS = (0.4, 0.5, 0.6)
SEPARATORS = ("diameter", "min_image_size", "second_eigenvalue", "influence", "persistence", "leverage")
"""What might tell the perception gaps from the rest among automata that are no permutation automata."""


@dataclass(frozen=True)
class Automaton:
    """An automaton of the held-out set and its finished runs, by seed; at least one."""

    entry: HeldOut
    rows: tuple[Row, ...]
    expected: int  # seeds

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def permutation(self) -> bool:
        return self.entry.stratum != "easy_synch"

    @property
    def complete(self) -> bool:
        return len(self.rows) >= self.expected

    @cached_property
    def leverage(self) -> float:
        """L, rounded so that rounding parts no ties: many hard automata have exactly L = p_control."""
        return round(Oracle(self.entry.dfa, HORIZON, P_CONTROL).leverage, 9)

    @property
    def score(self) -> float:
        """The paper's scalar: L of a permutation automaton, +∞ of any other. Low is predicted hard."""
        return self.leverage if self.permutation else float("inf")

    @cached_property
    def coarser(self) -> bool:
        """Whether the control-relevant quotient joins states."""
        return len(np.unique(Oracle(self.entry.dfa, HORIZON, P_CONTROL).quotient())) < self.entry.dfa.n_states

    def mean(self, figure: str) -> float | None:
        """Over the seeds in which the figure is defined."""
        return _mean(row[figure] for row in self.rows)

    @property
    def capacity(self) -> float | None:
        """Supervised accuracy, the lower of T and 4T."""
        at_t, at_4t = self.mean("capacity"), self.mean("capacity_ood")
        return None if at_t is None or at_4t is None else min(at_t, at_4t)

    def label(self, threshold: float = Thresholds().recovery, figure: str = "recovery") -> str | None:
        """perception_gap, planning_gap or solved; None where it is undefined. `figure` is the recovery it is read from."""
        found = verdict(self.mean(figure), self.mean("val_n"), thresholds=Thresholds(recovery=threshold)).label
        return None if found == "undefined" else found

    @cached_property
    def verdict(self) -> Verdict:
        return verdict_of(self.rows)


def verdict_of(rows: Sequence[Row]) -> Verdict:
    """The verdict on the means of a cell's seeds, with what qualifies it (`rlstate.probes.verdict.Verdict`).

    Raises:
        ValueError: no rows.
    """
    return seed_averaged([row.to_judge for row in rows], rows[0].thresholds if rows else None)


@dataclass(frozen=True)
class Share:
    """`hits` of `of`. Of nothing there is neither a value nor an interval (Wilson's)."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        found = wilson(self.hits, self.of)
        return (found.low, found.high) if self.of else None


@dataclass(frozen=True)
class Prediction:
    """Precision: of the automata called perception gaps, those that are. Recall: of the perception gaps, those called."""

    precision: Share
    recall: Share


@dataclass(frozen=True)
class Counts:
    """A line of Table 3: of `total` automata in the set `n` have runs, and of these `undefined` have no label."""

    name: str
    total: int
    n: int
    perception: int
    planning: int
    solved: int
    undefined: int
    mean_gap: float | None  # over automata, of their means over seeds; so also
    mean_recovery: float | None
    mean_untrained: float | None  # recovery of the same probe on an untrained network's features


@dataclass(frozen=True)
class Rescoring:
    """Labels read from another recovery, over the `n` automata that have both: which of them change."""

    n: int
    nontrivial: int  # of them, where the other figure is of another thing
    changed: tuple[str, ...]
    prediction: Prediction


@dataclass(frozen=True)
class Rewards:
    """What the perception gaps earn."""

    n: int
    median_val_n: float | None
    near_optimal: Share  # val_n ≥ .85: the reward is there and the state is not
    not_learned: Share  # no seed does better than random play


@dataclass(frozen=True)
class Capacity:
    """Supervised accuracy, over the automata of which it was measured."""

    saturated: Share  # at T and at 4T
    least: float | None  # at T
    least_ood: float | None  # at 4T
    limited: tuple[str, ...]
    prediction: Prediction  # among the saturated


@dataclass(frozen=True)
class Separator:
    """A feature's medians over the `n_gaps` perception gaps and the `n_others`, among automata that are no permutation automata.

    `auc`: the chance that a gap has the higher value. .5 tells nothing; None where one class is empty.
    """

    feature: str
    gaps: float | None
    others: float | None
    auc: float | None
    n_gaps: int
    n_others: int


@dataclass(frozen=True)
class Scores:
    """All that is said of the held-out set under one encoder; `score` makes it."""

    encoder: str
    automata: tuple[Automaton, ...]
    total: int  # automata in the set
    runs: int
    runs_expected: int
    mixed: tuple[str, ...]  # left out: their runs are of more than one configuration
    strata: tuple[Counts, ...]  # hard, easy_perm, easy_synch, permutation, non-permutation
    permutation: Prediction
    original: Prediction  # the first 33 alone
    thresholds: tuple[tuple[float, Prediction], ...]
    quotient: Rescoring
    row_split: Rescoring
    untrained: Rescoring  # labels read from an untrained network: what of them is the automaton's, and not the agent's
    conjunction: Prediction  # a permutation automaton with L < .51
    auc_scalar: float | None  # the paper's scalar, L or +∞: the chance that a gap scores lower
    auc_leverage: float | None  # the same of L alone, among permutation automata
    rewards: Rewards
    capacity: Capacity
    separators: tuple[Separator, ...]

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The automata with fewer seeds than their set has."""
        return tuple(each.name for each in self.automata if not each.complete)

    @property
    def undefined(self) -> tuple[str, ...]:
        """The automata without a label."""
        return tuple(each.name for each in self.automata if each.label() is None)


@dataclass(frozen=True)
class Overlap:
    """Two encoders over the `n` automata that are labelled for both (paper App. D: GRU and LSTM on the 33)."""

    n: int
    first: int  # perception gaps under the first
    second: int
    both: int
    same_label: int


def score(rows: Sequence[Row], encoder: str = "gru") -> Scores:
    """The scores of the encoder's runs under the protocol, of as many as there are.

    Raises:
        ValueError: an encoder that the held-out set is not run with.
    """
    if encoder not in SEEDS:
        raise ValueError(f"encoder is {encoder!r}, but the held-out set is run with {' and '.join(SEEDS)}.")
    entries = [entry for entry in held_out() if entry.set in SEEDS[encoder]]
    found = {entry: cell(rows, entry.name, Arm(encoder=encoder)) for entry in entries}
    automata = tuple(
        Automaton(entry, each.rows, SEEDS[encoder][entry.set]) for entry, each in found.items() if each.rows
    )
    labelled = [each for each in automata if each.label() is not None]
    measured = [(each, reached) for each in automata if (reached := each.capacity) is not None]
    saturated = [each for each, reached in measured if reached >= Thresholds().capacity]
    return Scores(
        encoder=encoder,
        automata=automata,
        total=len(entries),
        runs=sum(len(each.rows) for each in automata),
        runs_expected=sum(SEEDS[encoder][entry.set] for entry in entries),
        mixed=tuple(entry.name for entry, each in found.items() if each.mixed),
        strata=_strata(automata, entries),
        permutation=predict(automata, _permutation),
        original=predict([each for each in automata if each.entry.set == "original"], _permutation),
        thresholds=tuple(
            (t, predict(automata, _permutation, partial(Automaton.label, threshold=t))) for t in THRESHOLDS
        ),
        quotient=_rescored(automata, "quotient_recovery", lambda each: each.coarser),
        row_split=_rescored(automata, "row_split_recovery", lambda each: True),
        untrained=_rescored(automata, "untrained_recovery", lambda each: True),
        conjunction=predict(automata, lambda each: each.permutation and each.leverage < LOW_LEVERAGE),
        auc_scalar=_auc([(-each.score, each.label() == GAP) for each in labelled]),
        auc_leverage=_auc([(-each.leverage, each.label() == GAP) for each in labelled if each.permutation]),
        rewards=_rewards([each for each in labelled if each.label() == GAP]),
        capacity=Capacity(
            saturated=Share(len(saturated), len(measured)),
            least=_least(each.mean("capacity") for each, _ in measured),
            least_ood=_least(each.mean("capacity_ood") for each, _ in measured),
            limited=tuple(each.name for each, reached in measured if reached < Thresholds().capacity),
            prediction=predict(saturated, _permutation),
        ),
        separators=tuple(
            _separator([each for each in labelled if not each.permutation], feature) for feature in SEPARATORS
        ),
    )


def predict(
    automata: Iterable[Automaton],
    called: Callable[[Automaton], bool],
    label: Callable[[Automaton], str | None] = Automaton.label,
) -> Prediction:
    """How well `called` foretells a perception gap, over the automata that have a label."""
    pairs = [(called(each), found == GAP) for each in automata if (found := label(each)) is not None]
    hits = sum(call and gap for call, gap in pairs)
    return Prediction(Share(hits, sum(call for call, _ in pairs)), Share(hits, sum(gap for _, gap in pairs)))


def overlap(first: Scores, second: Scores) -> Overlap:
    """How many perception gaps two encoders share, on the automata labelled for both."""
    other = {each.name: each.label() for each in second.automata}
    pairs = [(a, b) for each in first.automata if (a := each.label()) and (b := other.get(each.name))]
    return Overlap(
        n=len(pairs),
        first=sum(a == GAP for a, _ in pairs),
        second=sum(b == GAP for _, b in pairs),
        both=sum(a == b == GAP for a, b in pairs),
        same_label=sum(a == b for a, b in pairs),
    )


def _permutation(each: Automaton) -> bool:
    return each.permutation


def _strata(automata: Sequence[Automaton], entries: Sequence[HeldOut]) -> tuple[Counts, ...]:
    lines: list[tuple[str, tuple[str, ...]]] = [(name, (name,)) for name in STRATA]
    found = []
    for name, members in [*lines, ("permutation", STRATA[:2]), ("non-permutation", STRATA[2:])]:
        these = [each for each in automata if each.entry.stratum in members]
        labels = Counter(each.label() for each in these)
        found.append(
            Counts(
                name,
                total=sum(entry.stratum in members for entry in entries),
                n=len(these),
                perception=labels[GAP],
                planning=labels[PLANNING],
                solved=labels[SOLVED],
                undefined=labels[None],
                mean_gap=_mean(each.mean("probe_gap") for each in these),
                mean_recovery=_mean(each.mean("recovery") for each in these),
                mean_untrained=_mean(each.mean("untrained_recovery") for each in these),
            )
        )
    return tuple(found)


def _rescored(automata: Iterable[Automaton], figure: str, nontrivial: Callable[[Automaton], bool]) -> Rescoring:
    both = [each for each in automata if each.label() and each.label(figure=figure)]
    return Rescoring(
        n=len(both),
        nontrivial=sum(map(nontrivial, both)),
        changed=tuple(each.name for each in both if each.label() != each.label(figure=figure)),
        prediction=predict(both, _permutation, partial(Automaton.label, figure=figure)),
    )


def _rewards(gaps: Sequence[Automaton]) -> Rewards:
    earned = [val_n for each in gaps if (val_n := each.mean("val_n")) is not None]
    return Rewards(
        n=len(gaps),
        median_val_n=_median(earned),
        near_optimal=Share(sum(val_n >= Thresholds().val_n for val_n in earned), len(earned)),
        not_learned=Share(sum(each.verdict.not_learned for each in gaps), len(gaps)),
    )


def _separator(labelled: Sequence[Automaton], feature: str) -> Separator:
    known = [
        (float(value), each.label() == GAP)
        for each in labelled
        if (value := getattr(_features(each.entry), feature)) is not None and not np.isnan(value)
    ]
    gaps, others = ([value for value, is_gap in known if is_gap is wanted] for wanted in (True, False))
    return Separator(feature, _median(gaps), _median(others), _auc(known), len(gaps), len(others))


@cache
def _features(entry: HeldOut) -> Features:
    return features(entry.dfa, HORIZON, P_CONTROL, max_monoid=1)  # the monoid's size is not asked for


def _auc(scored: Sequence[tuple[float, bool]]) -> float | None:
    found = roc_auc([value for value, _ in scored], [positive for _, positive in scored])
    return None if np.isnan(found) else found


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)
