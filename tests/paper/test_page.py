"""The page: its numbers are the rows', its HTML stands alone, and what it cannot show it says."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from dataclasses import replace

import pytest

from rlstate.paper import document
from rlstate.paper.claims import CLAIMS, judge
from rlstate.paper.document import Code, Drawing, Fold, Grid, Heading, Items, Text, Written
from rlstate.paper.experiments import experiments, outside
from rlstate.paper.overview import Unfinished, computing, counted, telling
from rlstate.paper.page import SECTIONS, page
from rlstate.paper.rules import A2C_BROADCAST, PPO, STATE
from rlstate.paper.select import Arm, deciding
from rlstate.probes.causal import NO_EXAMPLES
from rlstate.results import Row

FIGURES = {"val_n": 0.9, "gain": 0.8, "gain_se": 0.01, "ood_n": 0.7, "probe_gap": 0.2, "recovery": 0.6,
           "untrained_recovery": 0.25, "capacity": 1.0, "capacity_ood": 0.99, "recovery_balanced": None,
           "selectivity": 0.1, "intervention": 0.5, "intervention_random": 0.1}  # fmt: skip


def row(task: str, seed: int, arm: Arm = PPO, horizon: int = 16, **figures: float | None) -> Row:
    config = {**(deciding(arm) or {}), "task.name": task, "task.horizon": horizon}
    identity = f"{zlib.crc32(repr((task, arm, horizon)).encode()):012x}"
    return Row("paper", identity, task, seed, "solved", config, FIGURES | figures, {"optimal": 0.8, "random": 0.4},
               [[0, 0.5, None], [6000, figures.get("val_n", 0.9), 0.2]], True, ["a note"], 1800.0, "0123456789" * 4)  # fmt: skip


def rows_of_table_1() -> list[Row]:
    """parity under A2C and PPO, two seeds each, and a run of another horizon."""
    return [
        row("parity", 0, A2C_BROADCAST, val_n=0.65, probe_gap=0.02, recovery=0.04),
        row("parity", 1, A2C_BROADCAST, val_n=0.69, probe_gap=0.04, recovery=0.08),
        row("parity", 0, PPO, val_n=0.7, probe_gap=0.1, recovery=0.2),
        row("parity", 1, PPO, val_n=0.9, probe_gap=0.3, recovery=0.6),
        row("parity", 0, STATE, val_n=0.95, probe_gap=0.4, recovery=0.8),
        row("parity", 0, PPO, horizon=12, val_n=0.333, probe_gap=0.333, recovery=0.333),
    ]


NOTES = "### mod_3\n\nIt *differs*: see `docs` and [the page](https://example.org/a).\n\n* one\n* two"
UNFINISHED = [Unfinished("abc/parity/seed=7", "failed at iteration 40: out of memory")]


@pytest.fixture(scope="module")
def paper():
    return page(rows_of_table_1(), UNFINISHED, NOTES, "paper")


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html.removeprefix("<!DOCTYPE html>\n"))


def lines(markdown: str, start: str) -> list[list[str]]:
    """The table rows whose first cell begins so, as cells."""
    found = [line for line in markdown.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found]


# --- the paper's page ---------------------------------------------------------------------------------------------


def test_table_1_has_our_numbers_beside_the_papers(paper):
    (a2c,), (ppo,) = (lines(paper.markdown, f"{name} |") for name in ("A2C × broadcast", "PPO × discounted"))
    # t(1) = 12.706; the half width is 12.706 · s/√2, that is 12.706 · |difference|/2.
    assert a2c[1:5] == [".67 ±.25 (.65 .69)", ".66 ±.04", "+.03 ±.13 (+.02 +.04)", "+.01 ±.00"]
    assert ppo[1:5] == [".80 ±1.27 (.70 .90)", ".80 ±.11", "+.20 ±1.27 (+.10 +.30)", "+.20 ±.11"]
    assert ppo[5] == "missing"
    assert "missing: GRU, A2C × broadcast: parity (2 of 5 seeds), mod_3" in paper.markdown


def test_what_was_run(paper):
    assert (
        "* 6 finished runs of 1 task and 4 configurations; computing time, training and measuring: 3.0 h."
        in paper.markdown
    )
    assert "* Code: 0123456 (6 runs)." in paper.markdown
    assert "* 1 of the runs do not follow the paper's protocol." in paper.markdown
    assert "* A single seed, and so no interval: 2 of 4 cells" in paper.markdown
    assert ["`task.horizon`", "16", ""] in lines(paper.markdown, "`task.horizon`")
    assert ["`algorithm.name`", "ppo", "a2c"] in lines(paper.markdown, "`algorithm.name`")


def test_runs_of_another_protocol_are_listed_and_not_averaged(paper):
    (other,) = [line for line in lines(paper.markdown, "parity") if "task.horizon=12" in line[1]]
    assert other[3:10] == ["1", "perception gap", ".33 (.33)", ".70 (.70)", "+.33 (+.33)", ".33 (.33)", ".25 (.25)"]
    assert not [line for line in lines(paper.markdown, "PPO × discounted") if ".33" in "".join(line[1:])]
    assert "Runs of several configurations, of parity" in paper.markdown


def test_every_run_has_its_line(paper):
    found = [line for line in lines(paper.markdown, "parity") if len(line) == 16]
    assert len(found) == 6
    (one,) = [line for line in found if line[4] == ".650"]
    assert one[2:] == [
        "0",
        "solved",
        ".650",
        "+.800",
        ".700",
        "+.020",
        ".040",
        ".250",
        "–",
        "+.100",
        "1.000",
        ".990",
        ".500",
        ".100",
    ]
    assert "* a note (6 runs)" in paper.markdown
    assert f"The intervention is undefined where {NO_EXAMPLES}, or the probe has no direction." in paper.markdown


def test_claims_come_first_each_with_its_rule_figures_and_verdict(paper):
    headings = re.findall(r"^## (.*)", paper.markdown, re.MULTILINE)
    assert headings[0] == "The paper's claims"
    tables = re.findall(r"^\| section \| the paper \| ours \| verdict \|\n(?:\|.*\n)+", paper.markdown, re.MULTILINE)
    judged, waiting = ([line.rsplit("| ", 1)[1].strip(" |") for line in table.splitlines()[2:]] for table in tables)
    counts = Counter(verdict.split()[1] for verdict in judged + waiting)
    assert "missing" not in {verdict.split()[1] for verdict in judged}  # what has been judged comes first
    assert set(waiting) == {"– missing"}
    exact = [claim for claim in CLAIMS if not claim.experiments]
    assert sum(verdict.endswith("(exact, no training)") for verdict in judged) == len(exact) > 3
    assert f"{len(exact)} are *exact*: computed of the automata alone, without training." in paper.markdown
    order = [claim.statement for claim in CLAIMS]
    for table in tables:
        stated = re.findall(r"^\| [^|]* \| (.*?)<br>\*Rule", table, re.MULTILINE)
        assert stated == sorted(stated, key=order.index)
    listed = re.findall(r"^\* `\+experiment=.*`: (\d+) claims? of ", paper.markdown, re.MULTILINE)
    assert sum(map(int, listed)) == len(waiting)
    fold = paper.markdown.index(f"<details><summary>{len(waiting)} claims, with their rules")
    assert paper.markdown.index(tables[0]) < fold < paper.markdown.index(tables[1])
    total = sum(counts.values())
    assert total > 30
    assert (
        f"Of {total} claims {counts['reproduced']} are reproduced, {counts['partly']} partly, {counts['not']} not; "
        in paper.markdown
    )
    assert f"{counts['missing']} cannot be judged" in paper.markdown
    table = tables[1]
    assert "".join(tables).count("*Rule:*") == total
    assert "parity, GRU, A2C × broadcast: 2 of 5 seeds" in table  # the evidence of what cannot be judged yet
    sections = [
        line for line in lines(paper.markdown, "") if len(line) == 5 and line[0] in [each[0] for each in SECTIONS]
    ]
    assert sum(int(cell or 0) for line in sections for cell in line[1:]) == total
    shown = re.findall(r"^\* ([✓◐✗–]) ", paper.markdown, re.MULTILINE)
    assert shown.count("✓") == counts["reproduced"]  # Appendix B and §5.1 need no run


def test_sections_follow_the_paper_and_hold_what_is_theirs(paper):
    headings = [
        each for each in re.findall(r"^## (.*)", paper.markdown, re.MULTILINE) if each[0] == "§" or each[:3] == "App"
    ]
    order = [f"{section} {title}" for section, title, _, _ in SECTIONS]
    assert headings == [each for each in order if each in headings]
    at = {
        each: paper.markdown.index(f"\n{each}")
        for each in ("## §5.2", "### Table 1", "![Figure 1a", "## Appendix B", "![Appendix B")
    }
    assert sorted(at, key=at.get) == ["## §5.2", "### Table 1", "![Figure 1a", "## Appendix B", "![Appendix B"]
    assert "![Figure 1a: optimizer competence](figures/figure_1a.svg)" in paper.markdown
    curves = {"curves_table_1", "curves_shaping", "curves_auxiliary"}
    assert set(paper.drawings) == {"figure_1a", "figure_2", "influence", *curves}


def test_a_sections_claims_that_are_judged_stand_before_those_that_wait():
    """Of §5.4 the planning gap is judged, a claim in the middle; Appendix B's are all exact."""
    rows = [row("ends_with_1000", seed, val_n=0.4, recovery=0.9) for seed in range(5)]
    found = page(rows).markdown
    verdicts = {each.statement: each.verdict for each in judge(rows)}
    order = [claim.statement for claim in CLAIMS]
    several = 0
    for part in found.split("\n## ")[1:]:
        stated = re.findall(r"^\* ([✓◐✗–]) (.*?)(?: \(\*exact\*\))?$", part, re.MULTILINE)
        stated = [(mark, text) for mark, text in stated if text in order]
        done = [text for _, text in stated if verdicts[text] != "missing"]
        waiting = [text for _, text in stated if verdicts[text] == "missing"]
        assert [text for _, text in stated] == done + waiting
        assert done == sorted(done, key=order.index)
        assert waiting == sorted(waiting, key=order.index)
        assert all((mark == "–") == (text in waiting) for mark, text in stated)
        several += order.index(done[-1]) > order.index(waiting[0]) if done and waiting else 0
    assert several  # somewhere a claim that waits comes first in the paper's order


def test_what_is_missing_is_named_with_its_command(paper):
    (table1,) = lines(paper.markdown, "`table1` ")
    assert table1[2] == "4 of 80"
    assert table1[3] == "2.0 h"
    block = paper.markdown[paper.markdown.index("## What is missing") :]
    commands = re.search(r"```bash\n(.*?)\n```", block, re.DOTALL)[1].splitlines()
    assert "python -m rlstate.train +experiment=table1" in commands
    assert len(commands) == len(experiments())
    assert "table1 76 runs" in block


def test_notes_and_unfinished_runs(paper):
    differences = paper.markdown[paper.markdown.index("## Differences from the paper") :]
    assert differences.split("\n\n")[1:3] == [
        "### mod_3",
        "It *differs*: see `docs` and [the page](https://example.org/a).",
    ]
    assert "* `abc/parity/seed=7`: failed at iteration 40: out of memory" in paper.markdown
    assert (
        '<h4>mod_3</h4>\n<p>It <em>differs</em>: see <code>docs</code> and <a href="https://example.org/a">the page</a>.</p>'
        in paper.html
    )


def test_the_html_is_well_formed_and_fetches_nothing(paper):
    root = parsed(paper.html)
    ids = Counter(element.get("id") for element in root.iter() if element.get("id"))
    assert max(ids.values()) == 1
    links = [element.get("href") for element in root.iter("a")]
    assert len([link for link in links if link.startswith("#")]) > 10
    assert [link for link in links if not link.startswith("#")] == ["https://example.org/a"]  # to follow, not to fetch
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert not {element.tag.rpartition("}")[2] for element in root.iter()} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "image",
    }
    assert not re.search(r"\bsrc=|@import|url\((?!#)", paper.html)
    headings = [element for element in root.iter() if element.tag == "h2"]
    contents = [element for element in root.find("body/nav").iter("a")]
    assert [element.get("href")[1:] for element in contents] == [
        element.get("id") for element in headings if element.get("id")
    ]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}svg"))) == len(paper.drawings)


def test_both_forms_hold_the_same_tables(paper):
    of_html = [
        ["".join(cell.itertext()) for cell in line.iter("td")]
        for table in parsed(paper.html).iter("table")
        for line in table.iter("tr")
    ]
    of_html = [line for line in of_html if line]
    of_markdown = [
        line for line in paper.markdown.splitlines() if line.startswith("| ") and not line.startswith("| ---")
    ]
    headers = sum(line.startswith("| ---") for line in paper.markdown.splitlines())
    assert len(of_html) == len(of_markdown) - headers
    (ppo,) = [line for line in of_html if line[0] == "PPO × discounted" and "±1.27" in line[1]]
    assert ppo[1] == ".80 ±1.27.70 .90"  # the seeds stand below the mean


def test_the_same_rows_give_the_same_page(paper):
    again = page(rows_of_table_1(), UNFINISHED, NOTES, "paper")
    assert again.markdown == paper.markdown
    assert again.html == paper.html


# --- any page -----------------------------------------------------------------------------------------------------


def test_runs_that_are_not_the_papers_have_the_general_part_only():
    old = {key: value for key, value in FIGURES.items() if key not in ("recovery_balanced", "selectivity")}
    rows = [
        row("mine", 0, horizon=10, val_n=0.5),
        row("mine", 1, horizon=10, val_n=0.7),
        row("mine", 0, horizon=12, val_n=0.9),
    ]
    rows.append(replace(row("yours", 3, horizon=10), figures=old, seconds=None))
    found = page(rows, name="my_runs", notes="Mine.")
    assert found.markdown.startswith("# Runs in my_runs\n")
    assert re.findall(r"^## (.*)", found.markdown, re.MULTILINE) == [
        "Notes", "Learning curves", "All runs, by configuration", "Every run"]  # fmt: skip
    assert list(found.drawings) == ["curves"]
    assert (
        "4 finished runs of 2 tasks and 2 configurations; computing time, training and measuring: at least 1.5 h (of 1 run it"
        in found.markdown
    )
    assert "Runs of several configurations, of mine: each" in found.markdown
    assert "A single seed, and so no interval: 2 of 3 cells" in found.markdown
    assert (
        "older version, which did not have every figure; – stands for: recovery_balanced (1 run), selec"
        in found.markdown
    )
    by_configuration = [line for line in lines(found.markdown, "mine") if line[1].startswith("horizon")]
    assert [[line[1], line[3], line[5]] for line in by_configuration] == [
        ["horizon=10", "2", ".60 ±1.27 (.50 .70)"], ["horizon=12", "1", ".90 (.90)"]]  # fmt: skip
    parsed(found.html)


def heads(html: str) -> list[list[str]]:
    """The columns of every table, in its order."""
    return [["".join(cell.itertext()) for cell in table.iter("th")] for table in parsed(html).iter("table")]


def test_a_verdict_stands_beside_the_seeds_and_a_column_that_tells_nothing_is_left_out():
    one = [row("mine", 0, horizon=10, val_n=0.5), row("mine", 1, horizon=10, val_n=0.7)]
    by_configuration, every = heads(page(one).html)
    assert by_configuration[:5] == ["task", "hash", "seeds", "verdict", "val_n"]
    assert every[:5] == ["task", "hash", "seed", "verdict", "val_n"]
    two = [*one, row("yours", 0, horizon=12)]
    by_configuration, _ = heads(page(two).html)
    assert by_configuration[:5] == ["task", "configuration", "hash", "seeds", "verdict"]
    for found in (page(one), page(two)):  # what a narrow screen shows before each cell
        for table in parsed(found.html).iter("table"):
            assert table.get("class") == "runs"
            columns = ["".join(cell.itertext()) for cell in table.iter("th")]
            assert all(
                [cell.get("data-label") for cell in line.iter("td")] == columns for line in table.findall("tbody/tr")
            )
    assert lines(page(one).markdown, "mine")[0][1:5] == [one[0].hash, "2", "planning gap", ".60 ±1.27 (.50 .70)"]


def test_runs_near_the_papers_say_why_none_of_its_claims_is_judged():
    def told(*rows: Row) -> str:
        found = page(list(rows)).markdown
        assert ("No claim of the paper is judged here" in found) == bool(outside(rows))
        assert outside(rows) in found
        return outside(rows)

    short = replace(row("parity", 0), config=row("parity", 0).config | {"iterations": 200})
    assert told(short).endswith("the nearest of these has iterations = 200 instead of 6000.")
    both = replace(short, hash="other", config=short.config | {"task.horizon": 12})
    assert told(both, short).endswith("the nearest of these has iterations = 200 instead of 6000.")
    assert told(both).endswith("has iterations = 200 instead of 6000, task.horizon = 12 instead of 16.")
    many = {key: -1 for key in list(row("parity", 0).config) if key.startswith("evaluation.")}
    assert told(replace(both, config=both.config | many)).endswith(f" and {2 + len(many) - 4} more.")
    # Nothing differs, but no experiment has such a task; the folder's name is the paper's.
    assert told(row("mine", 0)).endswith("none of these is of a task, arm and seed of theirs.")
    own = replace(short, task="mine", experiment="mine")
    assert outside([own]) == ""  # nothing to expect
    assert outside([own, row("parity", 0)]) == ""  # there they are


def test_a_page_needs_a_run():
    with pytest.raises(ValueError, match="no finished runs"):
        page([])


def test_configurations_are_told_apart_by_what_differs():
    both = [row("a", 0), row("b", 0, A2C_BROADCAST)]
    names = telling(both)
    assert names[both[0].hash] == "algorithm=ppo, credit=discounted"
    assert names[both[1].hash] == "algorithm=a2c, credit=broadcast"
    assert telling([row("a", 0), row("b", 0)]) == dict.fromkeys((row("a", 0).hash, row("b", 0).hash), "")
    twins = [row("a", 0), replace(row("a", 0), hash="other")]  # two automata of one name
    assert telling(twins) == {each.hash: each.hash for each in twins}


def test_times_and_counts():
    assert computing([row("a", 0), row("a", 1)]) == "1.0 h"
    assert computing([replace(row("a", 0), seconds=90.0)]) == "1.5 min"
    assert computing([replace(row("a", 0), seconds=None)]) == "unknown"
    assert (counted(1, "run"), counted(2, "run")) == ("1 run", "2 runs")


# --- experiments --------------------------------------------------------------------------------------------------


def test_experiments_mean_the_runs_that_their_files_say():
    expected = {"table1": 80, "table2": 60, "beta": 70, "suite": 180, "long_budget": 20, "shaping": 30, "auxiliary": 90,
                "intervention": 45, "heldout": 165, "heldout_extension": 360, "heldout_lstm": 99, "table4": 10,
                "capacity": 72, "table1_transformer": 10}  # fmt: skip
    found = {each.name: each for each in experiments()}
    assert {name: found[name].expected for name in expected} == expected
    assert not {"quickstart", "audit", "protocol"} & set(found)
    table1 = found["table1"]
    assert A2C_BROADCAST in table1.arms
    assert table1.tasks == ("parity", "mod_3")
    rows = [
        row("parity", 0),
        row("parity", 0),
        row("parity", 5),
        row("mod_5", 0),
        row("parity", 1, STATE),
        row("mod_3", 4),
    ]
    assert (
        table1.missing(rows) == 78
    )  # one of them twice, one of a seed, one of a task, one of an arm that it does not have


# --- the two forms ------------------------------------------------------------------------------------------------


def test_inline_text():
    assert document.inline("a < b & `x<y` *em* **st_r** [t](u)") == (
        'a &lt; b &amp; <code>x&lt;y</code> <em>em</em> <strong>st_r</strong> <a href="u">t</a>'
    )
    assert document.inline("2 * 3 * 4 and mod_3_x") == "2 * 3 * 4 and mod_3_x"
    assert document.inline("**val_n `a`**") == "<strong>val_n <code>a</code></strong>"


def test_blocks_in_both_forms():
    blocks = [Heading(1, "T"), Heading(2, "A & b"), Text("x"), Items(("✓ yes", "no")), Code("a < b"),
              Grid(("k|l", "v"), (("solved (x)", "1\n2"), ("+.10 ±.05 (+.05 −.15 –)", "✗ bad"))),
              Drawing("f", "F", "c", "<svg viewBox='0 0 1 1'/>"), Fold("more", (Text("in"),)), Written("# h")]  # fmt: skip
    markdown = document.markdown(blocks)
    assert "# T\n\n## A & b\n\nx\n\n* ✓ yes\n* no\n\n```bash\na < b\n```" in markdown
    assert "| k\\|l | v |\n| --- | --- |\n| solved (x) | 1<br>2 |" in markdown
    assert "![F](figures/f.svg)\n\n*F.* c\n\n<details><summary>more</summary>\n\nin\n\n</details>\n\n# h\n" in markdown
    html = document.page_html(blocks)
    body = parsed(html).find("body")
    assert '<h2 id="a-b">A &amp; b</h2>' in html
    assert '<span class="word good">solved</span> (x)' in html
    assert '<span class="mean">+.10 ±.05</span><small>+.05 −.15 –</small>' in html
    assert '<div class="failed">✗ bad</div>' in html
    assert '<li class="marked"><b class="held">✓</b> yes</li>' in html
    assert '<div class="line">1</div><div class="line">2</div>' in html
    assert body.find("main/details/p").text == "in"
    assert body.find("main/figure").get("id") == "f"


def test_written_markdown_becomes_html():
    text = "# Title\nfirst\nsecond\n\n- a\n  b\n- c\n\n| x | y |\n|---|---|\n| 1 | `2` |\n\n```\n<raw>\n\n# no heading\n```\nend"
    assert document.written(text) == (
        "<h3>Title</h3>\n<p>first second</p>\n<ul>\n<li>a b</li>\n<li>c</li>\n</ul>\n"
        '<div class="scroll"><table><thead><tr><th scope="col">x</th><th scope="col">y</th></tr></thead>\n<tbody>\n'
        '<tr><td data-label="x">1</td><td data-label="y"><code>2</code></td></tr>\n</tbody></table></div>\n'
        "<pre><code>&lt;raw&gt;\n\n# no heading</code></pre>\n<p>end</p>"
    )
    assert document.written("<script>alert(1)</script>") == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"
