"""Tables of §5.5 and Appendix D: the held-out automata by stratum, every re-scoring, the gaps' rewards and features, the LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from rlstate.paper import heldout, targets
from rlstate.paper.heldout import Counts, Overlap, Prediction, Scores, Share
from rlstate.paper.notation import UNDEFINED, Table, command, number, share
from rlstate.results import Row

_SHARES = "Shares are hits/of = value [Wilson's 95 % interval]."


def held_out(rows: Sequence[Row]) -> list[Table]:
    """Table 3 with all that is said of the held-out set, and the LSTM's; those for which there are runs."""
    gru, lstm = heldout.score(rows), heldout.score(rows, "lstm")
    found = [strata(gru), rescorings(gru), gaps(gru)] if gru.automata or gru.mixed else []
    return [*found, lstm_table(gru, lstm)] if lstm.automata or lstm.mixed else found


# --- Table 3 ------------------------------------------------------------------------------------------------------


def strata(scores: Scores) -> Table:
    lines = []
    for line in scores.strata:
        theirs = targets.TABLE3[line.name]
        paper = f"{theirs.perception} / {theirs.planning} / {theirs.solved}"
        lines.append((
            line.name, f"{line.n} of {line.total}", str(line.perception), str(line.planning), str(line.solved),
            *([str(line.undefined)] if scores.undefined else []), f"{paper} of {theirs.n}",
            number(line.mean_gap, signed=True), number(theirs.mean_gap, signed=True) if theirs.mean_gap is not None else "",
            number(line.mean_recovery), number(line.mean_untrained),
        ))  # fmt: skip
    lines.append(_sum(scores))
    return Table(
        "table3",
        "Table 3 Held-out automata by stratum",
        "GRU under PPO on fresh random automata (other ones than the paper's, of the same description), labelled by their means "
        "over seeds: perception, recovery below .5; planning, recovered and val_n below .85; else solved. Strata are of the "
        "automaton alone: hard, a permutation automaton with L below .51; easy_perm, any other one; easy_synch, the rest. "
        "Beside them the paper's perception / planning / solved. Mean recovery stands beside that of untrained networks on the "
        "same episodes: what it exceeds them by, training has taught.",
        (
            "stratum", "automata", "perception", "planning", "solved", *(["undefined"] if scores.undefined else []), "paper",
            "mean probe gap", "paper", "mean recovery", "untrained",
        ),
        tuple(lines),
        _notes(scores),
    )  # fmt: skip


def _sum(scores: Scores) -> tuple[str, ...]:
    permutation, other = scores.strata[-2:]

    def both(name: str) -> str:
        return str(getattr(permutation, name) + getattr(other, name))

    theirs = [targets.TABLE3[line.name] for line in (permutation, other)]
    paper = " / ".join(
        str(sum(getattr(each, name) for each in theirs)) for name in ("perception", "planning", "solved")
    )
    return (
        "all", f"{both('n')} of {both('total')}", both("perception"), both("planning"), both("solved"),
        *([both("undefined")] if scores.undefined else []), f"{paper} of {sum(each.n for each in theirs)}", "", "", "", "",
    )  # fmt: skip


def _notes(scores: Scores) -> tuple[str, ...]:
    """What is not there, and what is there in part."""
    notes = []
    if scores.runs < scores.runs_expected:
        commands = " and ".join(f"`{command(name)}`" for name in _EXPERIMENTS[scores.encoder])
        notes.append(
            f"missing: there are {scores.runs} of {scores.runs_expected} runs, of {len(scores.automata)} of {scores.total} "
            f"automata. The rest: {commands}."
        )
    if scores.incomplete:
        counted = ", ".join(
            f"{each.name} ({len(each.rows)} of {each.expected})" for each in scores.automata if not each.complete
        )
        notes.append(f"scored on fewer seeds than they should have: {counted}.")
    if scores.undefined:
        notes.append(f"recovery is undefined, so that there is no label: {', '.join(scores.undefined)}.")
    if scores.mixed:
        notes.append(f"mixed, left out (runs of more than one configuration): {', '.join(scores.mixed)}.")
    return tuple(notes)


_EXPERIMENTS = {"gru": ("heldout", "heldout_extension"), "lstm": ("heldout_lstm",)}


# --- permutation → perception gap ---------------------------------------------------------------------------------


def rescorings(scores: Scores) -> Table:
    quotient, row_split, untrained = scores.quotient, scores.row_split, scores.untrained
    at = {threshold: f"{number(value)}" for threshold, value in targets.HELDOUT_THRESHOLDS.items()}
    lines = [
        _line("permutation → perception", scores.permutation, _paper(targets.HELDOUT_PRECISION), _paper(targets.HELDOUT_RECALL)),
        _line("the first 33 alone", scores.original, _paper(targets.HELDOUT_ORIGINAL), ""),
        *(_line(f"recovery below {number(t, digits=1)}", found, at[t], "") for t, found in scores.thresholds if t != 0.5),
        _line("recovery of the quotient", quotient.prediction, at[0.5], "",
              f"{_counted(len(quotient.changed), quotient.n, 'get another label')}{_names(quotient.changed)}; the quotient joins "
              f"states in {quotient.nontrivial}",
              "{} get another label; it joins states in {} of {}".format(
                  targets.HELDOUT_QUOTIENT_RECLASSIFIED, *targets.HELDOUT_QUOTIENT_NONTRIVIAL)),
        _line("probe split by row", row_split.prediction, at[0.5], "",
              f"{_counted(len(row_split.changed), row_split.n, 'get another label')}{_names(row_split.changed)}",
              "{} of {} get another label".format(*targets.HELDOUT_ROW_SPLIT_MOVED)),
        _line("recovery of an untrained network", untrained.prediction, "", "",
              f"{_counted(len(untrained.changed), untrained.n, 'get another label')}{_names(untrained.changed)}"),
        _line("capacity saturated only", scores.capacity.prediction, "", "",
              f"{share(scores.capacity.saturated)} saturated{_names(scores.capacity.limited, 'not')}; least accuracy "
              f"{number(scores.capacity.least)} at T, {number(scores.capacity.least_ood)} at 4T", "about 1.0 at both"),
        _line("permutation and L < .51", scores.conjunction, "", _paper(targets.HELDOUT_CONJUNCTION_RECALL)),
        ("scalar: L, or ∞", f"ROC-AUC {_auc(scores.auc_scalar)}", "", "", "", "among permutation automata, L alone: ROC-AUC "
         f"{_auc(scores.auc_leverage)}", "does not transfer"),
    ]  # fmt: skip
    return Table(
        "heldout_scores",
        "§5.5 Does permutation structure foretell the perception gap?",
        f"Precision: of the automata so called, the share that are perception gaps; recall: of the gaps, the share so called. "
        f"{_SHARES} Recall depends on how many of each stratum were drawn.",
        ("scored by", "precision", "paper", "recall", "paper", "besides", "paper"),
        tuple(lines),
    )


def _line(
    name: str, found: Prediction, precision: str, recall: str, besides: str = "", theirs: str = ""
) -> tuple[str, ...]:
    return name, share(found.precision), precision, share(found.recall), recall, besides, theirs


def _paper(counts: tuple[int, int]) -> str:
    return share(Share(*counts))


def _counted(hits: int, of: int, what: str) -> str:
    return f"{hits} of {of} {what}"


def _names(names: Sequence[str], word: str = "") -> str:
    return f" ({word} {', '.join(names)})".replace("( ", "(") if names else ""


def _auc(value: float | None) -> str:
    return "undefined: one class only" if value is None else number(value)


# --- the gaps -----------------------------------------------------------------------------------------------------


def gaps(scores: Scores) -> Table:
    """What the perception gaps earn, and what tells those outside the group languages."""
    rewards = scores.rewards
    lines = [
        ("perception gaps", str(rewards.n), "", "", "109"),
        ("their median val_n", number(rewards.median_val_n), "", "", number(targets.HELDOUT_MEDIAN_VAL_N)),
        ("of them with val_n ≥ .85", share(rewards.near_optimal), "", "", _paper(targets.HELDOUT_GAPS_NEAR_OPTIMAL)),
        ("of them not learned (no seed beats random play)", share(rewards.not_learned), "", "", ""),
    ]
    for each in scores.separators:
        lines.append((
            f"non-permutation: {each.feature.replace('_', ' ')}, median",
            f"{_short(each.gaps)} (n = {each.n_gaps})", f"{_short(each.others)} (n = {each.n_others})",
            _auc(each.auc), _SEPARATORS.get(each.feature, ""),
        ))  # fmt: skip
    return Table(
        "heldout_gaps",
        "Appendix D What the gaps earn, and what tells those that are no group languages",
        "Among automata that are no permutation automata: medians of the perception gaps and of the others, and the chance that "
        "a gap has the higher value (ROC-AUC; .5 tells nothing). Influence is Δ after T random steps, persistence what a random "
        f"step leaves of it. {_SHARES}",
        ("figure", "perception gaps", "others", "ROC-AUC", "paper"),
        tuple(lines),
    )


def _short(value: float | None) -> str:
    """Three significant digits: sizes stay whole, and an influence of 10⁻⁵ is not 0."""
    return UNDEFINED if value is None else f"{value:.3g}".removeprefix("0") or "0"


_SEPARATORS = {
    "diameter": "does not separate",
    "min_image_size": "does not separate",
    "second_eigenvalue": "mixing rate does not separate",
    "persistence": "Δ persists in the gaps",
}


# --- the LSTM -----------------------------------------------------------------------------------------------------


def lstm_table(gru: Scores, lstm: Scores) -> Table:
    shared: Overlap = heldout.overlap(gru, lstm)
    whole = _all(lstm.strata)
    lines = [
        ("precision", share(lstm.permutation.precision), number(targets.LSTM_PRECISION)),
        ("recall", share(lstm.permutation.recall), number(targets.LSTM_RECALL)),
        ("perception / planning / solved", f"{whole[0]} / {whole[1]} / {whole[2]} of {len(lstm.automata)}", ""),
        (
            "the GRU's gaps that are the LSTM's too",
            share(Share(shared.both, shared.first)),
            _paper(targets.LSTM_SHARED),
        ),
        ("the LSTM's gaps that are the GRU's too", share(Share(shared.both, shared.second)), ""),
        ("the same label", share(Share(shared.same_label, shared.n)), ""),
        ("capacity saturated", share(lstm.capacity.saturated), "all"),
    ]
    return Table(
        "heldout_lstm",
        "Appendix D The same with an LSTM",
        f"The first 33 with an LSTM, three seeds; shared labels on the {shared.n} automata that are labelled for both. {_SHARES}",
        ("figure", "ours", "paper"),
        tuple(lines),
        _notes(lstm),
    )


def _all(lines: Sequence[Counts]) -> tuple[int, int, int]:
    last = lines[-2:]
    return sum(each.perception for each in last), sum(each.planning for each in last), sum(each.solved for each in last)
