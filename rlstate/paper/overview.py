"""What a report says of any runs, the paper's or not: how many, by configuration, one by one, and which are unfinished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlstate.paper.document import Block, Fold, Grid, Heading, Items, Text
from rlstate.paper.notation import NOTATION, UNDEFINED, UNTRAINED, number
from rlstate.paper.tables import all_runs
from rlstate.probes.causal import NO_EXAMPLES
from rlstate.results import Row, cells

LONG = 40
"""Tables with more rows are closed until asked for."""
# of the table of every run: figure, heading, whether it has a sign
_FIGURES = (
    ("val_n", "val_n", False),
    ("gain", "gain", True),
    ("ood_n", "OOD", False),
    ("probe_gap", "probe gap", True),
    ("recovery", "recovery", False),
    ("untrained_recovery", "untrained", False),
    ("recovery_balanced", "balanced recovery", False),
    ("selectivity", "selectivity", True),
    ("capacity", "capacity", False),
    ("capacity_ood", "capacity at 4T", False),
    ("intervention", "intervention", False),
    ("intervention_random", "its control", False),
)


@dataclass(frozen=True)
class Unfinished:
    """A run that was begun and has no result: where it lies below the reported folder, and what became of it."""

    path: str
    state: str


def lead(rows: Sequence[Row], outside: int = 0) -> list[Block]:
    """How many runs, what they took, of which code, and what one should know of them; `outside`: not of the paper's protocol."""
    groups, settings = cells(rows), {tuple((key, str(row.config[key])) for key in sorted(_keys(row))) for row in rows}
    commits = Counter(row.commit[:7] + row.commit[40:] if row.commit else "unknown" for row in rows)
    told = [
        f"{counted(len(rows), 'finished run')} of {counted(len({row.task for row in rows}), 'task')} and "
        f"{counted(len(settings), 'configuration')}; computing time, training and measuring: {computing(rows)}.",
        f"Code: {', '.join(f'{commit} ({counted(n, RUN)})' for commit, n in commits.most_common())}.",
    ]
    if outside:
        told.append(
            f"{outside} of the runs do not follow the paper's protocol. They enter no table, figure or claim, and are only in "
            "the lists of all runs."
        )
    several = Counter(task for task, _ in {(row.task, row.hash) for row in rows})
    many = sorted(task for task, configurations in several.items() if configurations > 1)
    if many:
        told.append(
            f"Runs of several configurations, of {_some(many)}: each configuration has a line of its own. What differs in more "
            "than the seed is never averaged."
        )
    alone = sum(len(group) == 1 for group in groups)
    if alone:
        told.append(f"A single seed, and so no interval: {alone} of {len(groups)} cells (task and configuration).")
    lacking = Counter(figure for row in rows for figure, _, _ in _FIGURES if figure not in row.figures)
    if lacking:
        names = ", ".join(f"{figure} ({counted(n, RUN)})" for figure, n in lacking.items())
        told.append(f"Written by an older version, which did not have every figure; {UNDEFINED} stands for: {names}.")
    return [Items(tuple(told))]


def overview(rows: Sequence[Row], is_paper: bool = True) -> list[Block]:
    """A line for each configuration of each task; where the runs are not the paper's, named by what tells them apart."""
    table = all_runs(rows)
    assert table is not None
    caption, grid = table.caption, Grid(table.columns, table.rows, "runs")
    if not is_paper:
        names, (name, identity) = telling(rows), (table.columns.index(each) for each in ("configuration", "hash"))
        told = any(names.values())  # of one configuration there is nothing to tell
        lines = ((*line[:name], *[names[line[identity]]] * told, *line[name + 1 :]) for line in table.rows)
        columns = (*table.columns[:name], *["configuration"] * told, *table.columns[name + 1 :])
        grid = Grid(columns, tuple(lines), "runs")
        caption = (
            f"A line for each configuration of each task. {NOTATION} {UNTRAINED} The verdict is that of the means."
        )
    shown = Fold(counted(len(grid.rows), "line"), (grid,)) if len(grid.rows) > LONG else grid
    return [Heading(2, "All runs, by configuration"), Text(caption, "note"), shown]


def every_run(rows: Sequence[Row]) -> list[Block]:
    """A line for each run, and what was noted of them."""
    lines = tuple(
        (row.task, row.hash, str(row.seed), row.verdict.replace("_", " "),
         *(number(row[figure], signed, 3) for figure, _, signed in _FIGURES))
        for row in rows
    )  # fmt: skip
    blocks: list[Block] = [
        Grid(("task", "hash", "seed", "verdict", *(heading for _, heading, _ in _FIGURES)), lines, "runs"),
        Text(
            f"{UNDEFINED}: undefined, not measured, or of a version that did not have the figure. The intervention is undefined "
            f"where {NO_EXAMPLES}, or the probe has no direction. {UNTRAINED}"
        ),
    ]
    notes = Counter(note for row in rows for note in row.notes)
    if notes:
        blocks.append(Items(tuple(f"{note} ({counted(n, RUN)})" for note, n in notes.most_common())))
    folded = [Fold(counted(len(rows), RUN), tuple(blocks))] if len(rows) > LONG else blocks
    return [Heading(2, "Every run"), *folded]


def begun(unfinished: Sequence[Unfinished]) -> list[Block]:
    """The runs without a result; nothing where there are none."""
    if not unfinished:
        return []
    listed = Items(tuple(f"`{each.path}`: {each.state}" for each in unfinished))
    return [
        Heading(2, "Unfinished runs"),
        Text(f"{counted(len(unfinished), RUN)} begun and not finished: no figure of theirs is on this page."),
        Fold("Which", (listed,)) if len(unfinished) > LONG else listed,
    ]


def telling(rows: Sequence[Row]) -> dict[str, str]:
    """{hash: what tells its configuration from the others'}, the values of the keys in which they differ; "" where none does.

    A hash is of the task too, so that one configuration has as many as there are tasks. Where two of one task differ in nothing
    that a configuration says (two automata of one name), a hash stands for itself.
    """
    configs = {row.hash: {key: plain(row.config.get(key)) for key in _keys(row)} for row in rows}
    pairs = {(row.task, row.hash) for row in rows}
    shared = set.intersection(*(set(config) for config in configs.values()))
    # A key that only some have (PPO's clip) goes with another that all have (the algorithm), as a rule.
    for keys in (shared, {key for config in configs.values() for key in config}):
        names = _named(configs, sorted(keys, key=lambda key: (not key.endswith(".name"), key)))
        if len({(task, names[identity]) for task, identity in pairs}) == len(pairs):
            return names
    return {identity: identity for identity in configs}


def _named(configs: Mapping[str, Mapping[str, str]], keys: Sequence[str]) -> dict[str, str]:
    told = [key for key in keys if len({config.get(key, UNDEFINED) for config in configs.values()}) > 1]
    ends = Counter(key.rpartition(".")[2] for key in told)
    short = {
        key: end if ends[end := key.rpartition(".")[2]] == 1 and end != "name" else key.removesuffix(".name")
        for key in told
    }
    return {
        identity: ", ".join(f"{short[key]}={config.get(key, UNDEFINED)}" for key in told)
        for identity, config in configs.items()
    }


def _keys(row: Row) -> list[str]:
    """Those of its configuration that are not which automaton it is."""
    return [key for key in row.config if not key.startswith("task.") or key in ("task.horizon", "task.p_control")]


RUN = "run"


def plain(value: object) -> str:
    """A configuration's value."""
    return UNDEFINED if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def counted(n: int, what: str) -> str:
    """For example ``1 run`` and ``3 runs``."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def computing(rows: Sequence[Row]) -> str:
    """The time of all runs together."""
    known = [row.seconds for row in rows if row.seconds is not None]
    if not known:
        return "unknown"
    hours = sum(known) / 3600
    text = f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"
    return (
        text
        if len(known) == len(rows)
        else f"at least {text} (of {counted(len(rows) - len(known), RUN)} it is not known)"
    )


def _some(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
