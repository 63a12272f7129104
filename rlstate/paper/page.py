"""The report on a run tree: what was run, the paper's claims, tables and figures where the runs are the paper's, and all runs.

Whatever the tree holds, rows that differ in more than the seed are never averaged, and what is missing is named with the
command that makes it. The same rows give the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlstate.paper import curves, document, pictures
from rlstate.paper.axes import svg
from rlstate.paper.claims import Judged, Verdict, judge
from rlstate.paper.document import Block, Code, Drawing, Fold, Grid, Heading, Items, Text, Written
from rlstate.paper.experiments import Experiment, experiments, outside
from rlstate.paper.notation import UNDEFINED, Table
from rlstate.paper.overview import Unfinished, begun, computing, counted, every_run, lead, overview, plain, telling
from rlstate.paper.pictures import Picture
from rlstate.paper.rules import A2C, PPO
from rlstate.paper.select import arm_of, deciding
from rlstate.paper.tables import tables
from rlstate.results import Row

VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not", "missing")
_IN_WORDS: dict[Verdict, str] = {
    "reproduced": "reproduced",
    "partly": "in part",
    "not": "not",
    "missing": "not yet to be judged",
}
_MARKS = {"reproduced": "✓", "partly": "◐", "not": "✗", "missing": "–"}

# section, heading, what it asks, the figures that belong to it and the learning curves
SECTIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("§5.1", "What can be represented",
     "Which tasks tell anything, and what each encoder can represent under full supervision.", ()),
    ("§5.2", "Optimizers and credit",
     "Does a stronger optimizer bring the state with the reward, or is it the credit scheme, the budget, the reward?",
     ("figure_1a", "curves_table_1", "curves_table_1_window", "curves_long_budget", "curves_shaping")),
    ("§5.3", "Auxiliaries and informative observations",
     "What a privileged and a label-free auxiliary add, and how much observations must say for the latter to help.",
     ("figure_1c", "curves_auxiliary", "curves_beta")),
    ("§5.4", "Larger states, and two kinds of failure",
     "What sparse reward recovers of a growing counter, which explanations of difficulty fail, and tasks whose state is known "
     "but not used.", ("figure_1b", "figure_2", "curves_table_2", "curves_suite")),
    ("§5.5", "Structure as a warning",
     "Does permutation structure, read from the automaton alone, foretell a perception gap, also on automata made afresh?",
     ("held_out", "curves_heldout")),
    ("§5.6", "Automata mined from code and logs", "The same instrument on automata that nobody wrote for it.", ()),
    ("§6", "Is the state used?", "Whether moving the features towards another state moves the action.", ()),
    ("Appendix A", "The registered decision", "The rule that was fixed before the comparison of optimizers, in numbers.", ()),
    ("Appendix B", "Why credit starves", "How fast random play makes the state irrelevant, exactly.", ("influence",)),
    ("Appendix C", "Behaviour alone", "What reward says of the state, over the suite. Figure 2 is with §5.4.", ()),
    ("Appendix D", "Ways out", "The held-out set further, and the two levers on a task known to be hard.", ()),
)  # fmt: skip
_NUMBERED = {"Table 1": "§5.2", "Table 2": "§5.4", "Table 3": "§5.5", "Table 4": "Appendix D", "§5": "§5.2"}


@dataclass(frozen=True)
class Page:
    """A report. `drawings` are the figures as SVG by key, as the Markdown links them (figures/<key>.svg)."""

    markdown: str
    html: str
    drawings: dict[str, str]
    pictures: tuple[Picture, ...]


def page(rows: Sequence[Row], unfinished: Sequence[Unfinished] = (), notes: str = "", name: str = "runs") -> Page:
    """The report on `rows`.

    Args:
        notes: Markdown, shown as written under "Differences from the paper" (or "Notes" where no run is the paper's).
        name: of the reported folder, for the title.
    Raises:
        ValueError: no rows.
    """
    if not rows:
        raise ValueError("there are no finished runs to report on: give the rows of at least one.")
    arms = [arm_of(row) for row in rows]
    order = [section for section, _, _, _ in SECTIONS]
    listed = sorted(
        experiments(), key=lambda each: order.index(_section(each.about)) if _section(each.about) in order else 99
    )
    held = {each: [row for row, arm in zip(rows, arms) if each.means(row, arm)] for each in listed}
    missing = {each: each.missing(rows) for each, rows in held.items()}
    is_paper = any(held.values())
    drawn: dict[str, Picture] = {}
    blocks: list[Block]
    if is_paper:
        runs = pictures.Finished.of(rows)
        drawn = {each.key: each for each in [*pictures.figures(rows), *curves.learning_curves(runs)]}
        judged = judge(rows)
        svgs = {key: svg(each.figure, key) for key, each in drawn.items()}
        blocks = [
            Heading(1, "When does reward teach state? The paper, reproduced"),
            *lead(rows, arms.count(None)),
            *_claims(judged),
            Heading(2, "What was run"),
            *_protocol(),
            *_experiments(held, missing),
            *_sections(tables(rows), judged, drawn, svgs),
            Heading(2, "Differences from the paper"),
            Written(notes)
            if notes.strip()
            else Text("None written up: a `notes.md` in the reported folder is shown here."),
            Heading(2, "What is missing"),
            *_missing(missing),
        ]
    else:
        picture = curves.any_curves(rows, telling(rows))
        drawn = {} if picture is None else {picture.key: picture}
        svgs = {key: svg(each.figure, key) for key, each in drawn.items()}
        blocks = [Heading(1, f"Runs in {name}"), *lead(rows)]
        if told := outside(rows):
            blocks.append(Text(told))
        if notes.strip():
            blocks += [Heading(2, "Notes"), Written(notes)]
        blocks += [block for each in drawn.values() for block in (Heading(2, "Learning curves"), _drawing(each, svgs))]
    blocks += [*overview(rows, is_paper), *begun(unfinished), *every_run(rows)]
    return Page(document.markdown(blocks), document.page_html(blocks), svgs, tuple(drawn.values()))


# --- what was run -------------------------------------------------------------------------------------------------


def _protocol() -> list[Block]:
    """The one protocol, from `conf/`; what A2C's differs in."""
    ppo, a2c = deciding(PPO), deciding(A2C)
    assert ppo is not None
    assert a2c is not None
    rows = tuple(
        (f"`{key}`", plain(ppo.get(key)), plain(a2c.get(key)) if a2c.get(key) != ppo.get(key) else "")
        for key in sorted({*ppo, *a2c})
    )
    return [
        Text(
            "One protocol for all experiments (`conf/experiment/protocol.yaml`); only what an experiment is about differs."
        ),
        Fold("The protocol", (Grid(("key", "PPO", "A2C, where it differs"), rows),)),
    ]


def _experiments(held: Mapping[Experiment, Sequence[Row]], missing: Mapping[Experiment, int]) -> list[Block]:
    lines = tuple(
        (
            f"`{each.name}`",
            each.about,
            f"{each.expected - missing[each]} of {each.expected}",
            computing(rows) if rows else UNDEFINED,
        )
        for each, rows in held.items()
    )
    return [
        Text("Experiments share the runs that both mean: the sum of their times is more than was spent."),
        Grid(("experiment", "what", "runs", "time"), lines, "wide"),
    ]


def _missing(missing: Mapping[Experiment, int]) -> list[Block]:
    lacking = [(each, count) for each, count in missing.items() if count]
    if not lacking:
        return [Text("Nothing: every experiment is complete.")]
    told = ", ".join(f"{each.name} {counted(count, 'run')}" for each, count in lacking)
    return [
        Text(
            f"Of {told}; the tables say of which cells. A command trains whatever has no run folder here, so in a fresh clone, "
            "where only rows are kept, all of its runs. Then give `python -m rlstate.report` again."
        ),
        Code("\n".join(each.command for each, _ in lacking)),
    ]


# --- the paper ----------------------------------------------------------------------------------------------------


def _claims(judged: Sequence[Judged]) -> list[Block]:
    counts = Counter(each.verdict for each in judged)
    by_section: dict[str, Counter[str]] = {section: Counter() for section, _, _, _ in SECTIONS}
    for each in judged:
        by_section.setdefault(_section(each.section), Counter())[each.verdict] += 1
    summary = tuple(
        (section, *(str(found[verdict] or "") for verdict in VERDICTS))
        for section, found in by_section.items()
        if found
    )
    exact = sum(each.exact for each in judged)
    blocks: list[Block] = [
        Heading(2, "The paper's claims"),
        Text(
            f"Of {len(judged)} claims {counts['reproduced']} are reproduced, {counts['partly']} partly, {counts['not']} not; "
            f"{counts['missing']} cannot be judged before more is run. Each by a rule that was written down before the runs: all "
            f"of its checks hold (*reproduced*), some (*partly*), or none (*not*). {exact} are *exact*: computed of the automata "
            "alone, without training."
        ),
        Grid(("section", *VERDICTS), summary),
    ]
    done = [each for each in judged if each.verdict != "missing"]
    open_ = [each for each in judged if each.verdict == "missing"]
    if done:
        blocks += [Heading(3, "Judged"), _verdicts(done)]
    if open_:
        blocks += [
            Heading(3, "Not yet to be judged"),
            Text("For want of runs, which `python -m rlstate.train` makes:"),
            Items(tuple(_waiting(open_))),
            Fold(f"{counted(len(open_), 'claim')}, with their rules and what each lacks", (_verdicts(open_),)),
        ]
    return blocks


def _verdicts(judged: Sequence[Judged]) -> Grid:
    rows = ((each.section, f"{each.statement}\n*Rule:* {each.rule}", _evidence(each), _marked(each)) for each in judged)
    return Grid(("section", "the paper", "ours", "verdict"), tuple(rows), "wide claims")


def _marked(judged: Judged) -> str:
    """For example ``✓ reproduced (exact, no training)``."""
    return f"{_MARKS[judged.verdict]} {judged.verdict}" + " (exact, no training)" * judged.exact


def _waiting(judged: Sequence[Judged]) -> list[str]:
    """The commands that claims wait for, each with how many claims of which sections; claims that wait for the same together."""
    sections: dict[tuple[str, ...], list[str]] = {}
    for each in judged:
        sections.setdefault(_commands(each), []).append(_section(each.section))
    return [
        f"`{'`, `'.join(commands)}`: {counted(len(found), 'claim')} of {', '.join(dict.fromkeys(found))}"
        for commands, found in sections.items()
    ]


def _commands(judged: Judged) -> tuple[str, ...]:
    """The experiments that it waits for, as `train` is told them."""
    return tuple(each.removeprefix("python -m rlstate.train ") for each in judged.missing if each.startswith("python"))


def _evidence(judged: Judged) -> str:
    marks = {True: "✓", False: "✗", None: "?"}
    lines = []
    for check in judged.checks:
        told = check.held is not None or len(check.evidence) < 80  # long lists of what is missing stand elsewhere
        lines.append(f"{marks[check.held]} {check.name}" + f": **{check.evidence}**" * told)
    commands = _commands(judged)
    return "\n".join(lines + [f"Still to be run: `{'`, `'.join(commands)}`"] * bool(commands))


def _sections(
    found: Sequence[Table], judged: Sequence[Judged], drawn: Mapping[str, Picture], svgs: Mapping[str, str]
) -> list[Block]:
    blocks: list[Block] = []
    for section, title, about, keys in SECTIONS:
        here = [table for table in found if table.key != "all_runs" and _section(table.title) == section]
        shown = [drawn[key] for key in keys if key in drawn]
        if not here and not shown:
            continue
        blocks += [
            Heading(2, f"{section} {title}"),
            Text(about),
            *_seen([j for j in judged if _section(j.section) == section]),
        ]
        for table in here:
            blocks += [Heading(3, table.title), Text(table.caption, "note"), Grid(table.columns, table.rows)]
            blocks += [Items(table.notes, "note")] if table.notes else []
        blocks += [_drawing(each, svgs) for each in shown if not each.key.startswith("curves")]
        of_learning = tuple(_drawing(each, svgs) for each in shown if each.key.startswith("curves"))
        blocks += [Fold("Learning curves", of_learning)] if of_learning else []
    return blocks


def _seen(judged: Sequence[Judged]) -> list[Block]:
    """What the section's claims came to: those that are judged in their order, then those that wait for runs in theirs."""
    counts = Counter(each.verdict for each in judged)
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in _IN_WORDS.items() if counts[verdict])
    if not judged:
        return []
    listed = sorted(judged, key=lambda each: each.verdict == "missing")
    return [
        Text(f"Of {counted(len(judged), 'claim')}: {told}."),
        Items(tuple(f"{_MARKS[each.verdict]} {each.statement}" + " (*exact*)" * each.exact for each in listed)),
    ]


def _section(text: str) -> str:
    """The section that a title or a claim belongs to: "Table 1 Optimizer …" is in §5.2, "§5.4–5.5 Every …" in §5.4."""
    found = re.match(r"§\d(?:\.\d)?|Appendix [A-E]|Table \d", text)
    return "" if found is None else _NUMBERED.get(found[0], found[0])


def _drawing(picture: Picture, svgs: Mapping[str, str]) -> Drawing:
    return Drawing(picture.key, picture.title, picture.caption, svgs[picture.key])
