"""Event logs as they come: with and without namespaces, timestamps, lifecycles; cut, broken and contradictory ones."""

from __future__ import annotations

import gzip
import itertools
import math
import os
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlstate.automata.eventlog import Case, EventLog, LabelledWords, Outcome, labelled_words, parse_outcome, read_log

NAMESPACE = ' xmlns="http://www.xes-standard.org/"'


def xes(traces: str, namespace: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0"{namespace}>\n'
        '<extension name="Concept" prefix="concept" uri="x"/>\n'
        '<global scope="event"><string key="concept:name" value="__INVALID__"/></global>\n'
        '<string key="concept:name" value="the log"><int key="concept:name" value="3"/></string>\n'
        f"{traces}\n</log>\n"
    )


def event(activity: str, time: str | None = None, transition: str | None = None) -> str:
    parts = [f'<string key="concept:name" value="{activity}"/>']
    if time is not None:
        parts.append(f'<date key="time:timestamp" value="{time}"/>')
    if transition is not None:
        parts.append(f'<string key="lifecycle:transition" value="{transition}"/>')
    return f"<event>{''.join(parts)}</event>"


def trace(name: str, *events: str, attributes: str = "") -> str:
    return f'<trace><string key="concept:name" value="{name}"/>{attributes}{"".join(events)}</trace>'


def written(folder: Path, text: str, name: str = "log.xes") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def log_of(words: dict[str, str], attributes: dict[str, dict] | None = None) -> EventLog:
    """A log whose activities are single letters, a case by name."""
    cases = tuple(
        Case(name, tuple(word), (math.nan,) * len(word), (attributes or {}).get(name, {}))
        for name, word in words.items()
    )
    return EventLog("a log", cases, sum(map(len, words.values())), 0, {}, 0, 0, ())


TWO = trace("1", event("a", "2020-01-01T00:00:00Z"), event("b", "2020-01-02T00:00:00Z")) + trace("2", event("c"))


# --- XES ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["", NAMESPACE])
@pytest.mark.parametrize("compress", [False, True])
def test_namespace_and_compression_do_not_matter(tmp_path, namespace, compress):
    content = xes(TWO, namespace).encode()
    path = tmp_path / "any.name"  # the content tells, not the name
    path.write_bytes(gzip.compress(content) if compress else content)
    log = read_log(path)
    assert [(case.name, case.activities) for case in log.cases] == [("1", ("a", "b")), ("2", ("c",))]
    assert (log.kept, log.dropped, log.untimed) == (3, 0, 1)
    assert log.cases[0].timestamps == (datetime(2020, 1, 1, tzinfo=UTC).timestamp(), 1577836800.0 + 86400)
    assert math.isnan(log.cases[1].timestamps[0])


def test_lifecycle_filter_is_explicit(tmp_path):
    path = written(tmp_path, xes(trace(
        "1", event("a", transition="START"), event("a", transition="COMPLETE"), event("b"),
        event("c", transition="Complete"), event("d", transition="schedule"),
    )))  # fmt: skip

    def activities(lifecycle):
        log = read_log(path, lifecycle=lifecycle)
        assert log.kept + log.dropped == 5
        assert log.transitions == {"": 1, "COMPLETE": 1, "Complete": 1, "START": 1, "schedule": 1}
        return "".join(log.cases[0].activities)

    assert activities("complete") == "abc"
    assert activities("all") == "aabcd"
    assert activities({"Start", "SCHEDULE"}) == "ad"
    assert activities({"start", ""}) == "ab"
    with pytest.raises(ValueError, match="lifecycle is 'start'"):
        read_log(path, lifecycle="start")
    with pytest.raises(ValueError, match=r"of 5 the lifecycle filter drops 5.*'START' \(1\)"):
        read_log(path, lifecycle={"assign"})


def test_events_are_sorted_by_time_stably_and_only_if_all_have_one(tmp_path):
    later, sooner = "2020-01-02T00:00:00+00:00", "2020-01-02T00:30:00+01:00"  # 23:30 of the day before
    log = read_log(written(tmp_path, xes(
        trace("1", event("a", later), event("b", later), event("c", sooner), event("d", sooner))
        + trace("2", event("a", later), event("b"), event("c", sooner))
        + trace("3", event("a", sooner), event("b", later))
        + trace("4", event("a", later), event("b", "soon"), event("c", sooner))
    )))  # fmt: skip
    assert ["".join(case.activities) for case in log.cases] == ["cdab", "abc", "ab", "abc"]
    assert (log.reordered, log.untimed) == (1, 2)
    assert len(log.notes) == 1
    assert log.notes[0].startswith("1 unreadable timestamps")


def test_an_event_that_is_dropped_does_not_need_a_timestamp(tmp_path):
    text = trace("1", event("b", "2020-01-02"), event("x", transition="start"), event("a", "2020-01-01"))
    assert read_log(written(tmp_path, xes(text))).cases[0].activities == ("a", "b")


def test_trace_attributes_are_kept_and_typed(tmp_path):
    attributes = (
        '<int key="n" value="7"/><float key="x" value="2.5"/><boolean key="yes" value="true"/>'
        '<boolean key="no" value="false"/><date key="on" value="2020-01-01T00:00:00.000+01:00"/>'
        '<string key="s" value="7"><int key="n" value="99"/></string><int key="bad" value="seven"/>'
        '<list key="l"><values><int key="n" value="8"/></values></list>'
    )
    log = read_log(written(tmp_path, xes(trace("1", event("a"), attributes=attributes))))
    got = log.cases[0].attributes
    assert got.pop("on") == datetime.fromisoformat("2020-01-01T00:00:00+01:00")
    assert got == {"concept:name": "1", "n": 7, "x": 2.5, "yes": True, "no": False, "s": "7", "bad": "seven"}
    assert isinstance(got["n"], int)
    assert any("lists" in note for note in log.notes)


def test_what_is_lost_is_noted(tmp_path):
    nameless = '<event><string key="org:resource" value="r"/></event>'
    text = xes(
        f"<trace>{event('a')}{nameless}</trace>" + trace("1", event("b", transition="start"))
        + trace("1", event("a")) + event("outside")
    )  # fmt: skip
    log = read_log(written(tmp_path, text))
    assert [(case.name, case.activities) for case in log.cases] == [("#1", ("a",)), ("1", ()), ("1", ("a",))]
    assert (log.kept, log.dropped) == (2, 1)
    for said in (
        "1 events without an activity",
        "1 events outside",
        "1 cases have no event left",
        "1 cases have the name",
    ):
        assert any(said in note for note in log.notes), said


def test_other_attributes_can_be_case_activity_and_timestamp(tmp_path):
    text = xes(
        '<trace><string key="id" value="x"/><event><string key="what" value="b"/><date key="when" value="2020-01-02"/></event>'
        '<event><string key="what" value="a"/><date key="when" value="2020-01-01"/></event></trace>'
    )
    case = read_log(written(tmp_path, text), case="id", activity="what", timestamp="when").cases[0]
    assert (case.name, case.activities) == ("x", ("a", "b"))


def test_reading_streams(tmp_path):
    """Attributes of events fill the file but not the memory."""
    filler = "".join(f'<string key="k{i}" value="{"v" * 300}"/>' for i in range(8))
    one = f'<event><string key="concept:name" value="a"/>{filler}</event>'
    path = tmp_path / "large.xes"
    path.write_text(xes("".join(trace(str(i), *[one] * 10) for i in range(300))))
    size = path.stat().st_size
    assert size > 7e6
    reported = []
    tracemalloc.start()
    log = read_log(path, progress=lambda done, size: reported.append((done, size)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log.kept == 3000
    assert peak < size / 5
    assert reported == sorted(reported)
    assert reported[-1] == (size, size)


# --- CSV ----------------------------------------------------------------------------------------------------------

CSV = (
    "case:concept:name,concept:name,time:timestamp,lifecycle:transition,case:amount,age,resource\n"
    '1,b,2020-01-02 00:00:00+00:00,complete,5.5,,x\n2,"a, or b",2020-01-01,complete,7,NA,x\n'
    "1,a,2020-01-01,complete,5.5,80,y\n1,a,2020-01-01,start,5.5,NA,y\n"
)


def test_csv_rows_may_be_interleaved_and_constant_columns_are_attributes(tmp_path):
    log = read_log(written(tmp_path, CSV, "log.csv"))
    assert [(case.name, case.activities) for case in log.cases] == [("1", ("a", "b")), ("2", ("a, or b",))]
    assert [case.attributes for case in log.cases] == [
        {"amount": 5.5, "age": 80},
        {"amount": 7},
    ]  # resource varies in 1
    assert (log.kept, log.dropped, log.reordered) == (3, 1, 1)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_csv_delimiters_byte_order_mark_and_known_names(tmp_path, delimiter):
    text = "\ufeff" + "Case_ID,Activity\r\n1,a\r\n1,b\r\n".replace(",", delimiter)
    log = read_log(written(tmp_path, text, "log.csv"))
    assert log.cases[0].activities == ("a", "b")
    assert log.untimed == 1


def test_csv_columns_are_named_or_listed(tmp_path):
    path = written(tmp_path, "id,what,when\n1,b,2020/01/02 10:00:00\n1,a,2020/01/01 10:00:00\n", "log.csv")
    log = read_log(path, case="id", activity="what", timestamp="when")
    assert log.cases[0].activities == ("a", "b")
    with pytest.raises(ValueError, match="'id', 'what', 'when'"):
        read_log(path)
    with pytest.raises(ValueError, match=r"'whatever'.*'id', 'what', 'when'"):
        read_log(path, case="id", activity="whatever")


def timed(folder: Path, kind: str, times: list[str]) -> EventLog:
    """One case with events a, b, c, … at these times, in a file of that kind."""
    if kind == "csv":
        rows = "".join(f"1,{activity},{time}\n" for activity, time in zip("abcdef", times))
        return read_log(written(folder, f"case,activity,timestamp\n{rows}", "log.csv"))
    return read_log(written(folder, xes(trace("1", *map(event, "abcdef", times)))))


@pytest.mark.parametrize("kind", ["csv", "xes"])
@pytest.mark.parametrize(
    ("times", "seconds", "order"),
    [
        (["20240101", "99"], [99.0, 20240101.0], "ba"),  # not a day and a number
        (["1701010112341", "1701010112340"], [1701010112.340, 1701010112.341], "ba"),  # not the year 1701
        (["1701010112340", "20240101", "0"], [0.0, 20240.101, 1701010112.340], "cba"),  # one unit for all
        (["17010101123400000000", "17010101123400000001"], [17010101123.4] * 2, "ab"),  # nanoseconds, and no tie
        (["1701010112341000", "1701010112340000"], [1701010112.340, 1701010112.341], "ba"),
        (["2.5", " 1e0 ", "-3"], [-3.0, 1.0, 2.5], "cba"),
        (["2024", "2023"], [2023.0, 2024.0], "ba"),
        (["2024-01-02", "20240101T000000"], [1704067200.0, 1704153600.0], "ba"),
    ],
)
def test_digits_are_numbers_of_one_unit_in_a_file_and_never_dates(tmp_path, kind, times, seconds, order):
    log = timed(tmp_path, kind, times)
    assert log.cases[0].timestamps == pytest.approx(seconds, abs=1e-5)
    assert "".join(log.cases[0].activities) == order
    assert log.notes == ()


@pytest.mark.parametrize("kind", ["csv", "xes"])
def test_the_rarer_of_dates_and_numbers_is_missing_and_noted(tmp_path, kind):
    log = timed(tmp_path, kind, ["2024-01-03", "0", "2024-01-01"])
    assert (log.cases[0].activities, log.untimed) == (("a", "b", "c"), 1)
    assert log.notes == ("1 timestamps that are numbers where most are dates: as if missing",)
    log = timed(tmp_path, kind, ["3", "2024-01-01", "1", "1_0", "inf", "٣"])
    assert [math.isnan(time) for time in log.cases[0].timestamps] == [False, True, False, True, True, True]
    assert sorted(note.split()[0] for note in log.notes) == ["1", "3"]


def test_xes_truth_values_and_what_is_not_of_its_type(tmp_path):
    attributes = "".join(
        f'<{kind} key="{kind}{i}" value="{value}"/>'
        for kind, values in (("boolean", ["1", "0", "TRUE", "maybe", ""]), ("int", ["12345678901234567890", "1_0", "1.5"]),
                             ("float", ["7", "nan"]), ("date", ["20240101", "2024-01-01"]))
        for i, value in enumerate(values)
    )  # fmt: skip
    log = read_log(written(tmp_path, xes(trace("1", event("a"), attributes=attributes))))
    assert list(log.cases[0].attributes.values()) == [
        "1", True, False, True, "maybe", "", 12345678901234567890, "1_0", "1.5", 7.0, "nan", "20240101",
        datetime(2024, 1, 1, tzinfo=UTC),
    ]  # fmt: skip
    assert sorted(note for note in log.notes) == [
        "1 trace attributes that are not the date they are said to be: kept as text",
        "1 trace attributes that are not the float they are said to be: kept as text",
        "2 trace attributes that are not the boolean they are said to be: kept as text",
        "2 trace attributes that are not the int they are said to be: kept as text",
    ]


def test_a_blank_activity_is_missing_in_both_formats(tmp_path):
    path = written(tmp_path, xes(trace("1", event(""), event(" "), event("a"))))
    table = written(tmp_path, "case,activity\n1,\n1, \n1,a\n", "log.csv")
    for log in (read_log(path), read_log(table)):
        assert log.cases[0].activities == ("a",)
        assert log.notes == ("2 events without an activity: left out",)


@pytest.mark.parametrize("option", ["case", "activity", "timestamp"])
def test_in_xes_too_a_name_that_is_not_there_is_an_error(tmp_path, option):
    path = written(tmp_path, xes(trace("1", event("a", "2020-01-01"))))
    there = "'concept:name'" + ("" if option == "case" else ", 'time:timestamp'")
    with pytest.raises(ValueError, match=rf"log\.xes: no \w+ has an attribute 'q'; name the {option}'s .* {there}\."):
        read_log(path, **{option: "q"})


def test_xes_events_that_call_their_activity_otherwise_say_how(tmp_path):
    path = written(tmp_path, xes('<trace><event><string key="what" value="a"/></event></trace>'))
    with pytest.raises(ValueError, match=r"no event has an attribute 'concept:name'; name the activity's .*'what'"):
        read_log(path)


def test_csv_cells_are_trimmed_as_headers_are(tmp_path):
    log = read_log(
        written(tmp_path, "case , activity , n ,timestamp\n 1 , a , 7 , 2020-01-02 \n1,b,7,2020-01-01\n", "l.csv")
    )
    assert [(case.name, case.activities, case.attributes) for case in log.cases] == [("1", ("b", "a"), {"n": 7})]


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ('case,activity,"a, b"', {"a, b": 1}),
        ('case;activity;"x,y,z,w"', {"x,y,z,w": 1}),  # the delimiter is told by what stands outside of quotes
        ('case,activity,"two\nlines"', {"two\nlines": 1}),
        ('"case","activity","with ""quotes"""', {'with "quotes"': 1}),
        ("\n  \n\ncase,activity,n", {"n": 1}),
    ],
)
def test_quoted_headers_and_blank_lines(tmp_path, header, columns):
    delimiter = ";" if ";" in header else ","
    rows = "\n".join(delimiter.join(row) for row in (("1", "a", "1"), (" ",), ("1", "b", "1")))
    log = read_log(written(tmp_path, f"{header}\n{rows}\n\n", "log.csv"))
    assert (log.cases[0].activities, log.cases[0].attributes) == (("a", "b"), columns)
    with pytest.raises(ValueError, match=f"line {header.count(chr(10)) + 4} has 2 cells"):
        read_log(written(tmp_path, f"{header}\n1{delimiter}a{delimiter}1\n\n1{delimiter}b\n", "log.csv"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("content", [CSV.replace("a, or b", "é"), xes(TWO).replace("UTF-8", "UTF-16")])
def test_a_byte_order_mark_tells_the_encoding(tmp_path, encoding, content):
    path = tmp_path / "log"
    path.write_bytes((content if encoding == "utf-16" else content.replace("UTF-16", "UTF-8")).encode(encoding))
    assert read_log(path).cases[1].activities == (("é",) if content.startswith("case") else ("c",))


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("content", [CSV, "\n" * 5000 + CSV, xes(TWO)])
def test_a_pipe_will_do(tmp_path, content, compress):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    data = gzip.compress(content.encode()) if compress else content.encode()

    def write():
        with open(path, "wb", buffering=0) as pipe:
            for i in range(0, len(data), 7 if len(data) < 999 else 999):  # the first read gets less than it asks for
                pipe.write(data[i : i + (7 if len(data) < 999 else 999)])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert len(read_log(path).cases) == 2
    finally:
        writer.join()


# --- damaged files ------------------------------------------------------------------------------------------------


def test_truncated_gzip_is_one_clear_error(tmp_path):
    text = xes("".join(trace(str(i), event(f"activity {i * 7919 % 1000}")) for i in range(3000)))
    path = tmp_path / "log.xes.gz"
    path.write_bytes(gzip.compress(text.encode())[:-2000])
    with pytest.raises(
        ValueError, match=r"log\.xes\.gz: the gzip data are cut short .* after (\d+) whole cases"
    ) as caught:
        read_log(path)
    assert 0 < int(str(caught.value).split("after ")[1].split()[0]) < 3000
    path.write_bytes(gzip.compress(text.encode())[:9])
    with pytest.raises(ValueError, match="after 0 whole cases"):
        read_log(path)
    rows = gzip.compress(("case,activity\n" + "\n".join(f"{i},a{i * 7919 % 999}" for i in range(9000))).encode())
    path.write_bytes(rows[: len(rows) // 2])
    with pytest.raises(ValueError, match="the gzip data are cut short"):
        read_log(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            xes(trace("1", event("a")) + "\n<trace><event>\n</trace>"),
            r"broken XML at line 8, column 2.*after 1 whole cases",
        ),
        (xes(TWO)[:-8], r"broken XML at line .*after 2 whole cases"),
        ("", "is empty"),
        ("<html><body>Not found</body></html>", "outermost element is <html>"),
        (xes(""), "has no case"),
        ("case,activity\n", "has no case"),
        ("case,activity,x\n1,a,b\n1,a\n", "line 3 has 2 cells, but the header names 3"),
        ('case,activity\n1,"a\n', "broken CSV at line"),
        (b"case,activity\n1,a\n1,caf\xe9\n", "is not UTF-8"),
        (b"PK\x03\x04 and so on", "zip archive"),
        (" \n" * 2000, "is empty"),
        ("case,activity\n1,a".encode("utf-16-le"), "UTF-16 or UTF-32 that does not say so: convert it to UTF-8"),
        ("case,activity\n1,a".encode("utf-32"), "convert it to UTF-8"),
        (b"\xff\xfe" + "case,activity\n1,\ud800".encode("utf-16-le", "surrogatepass"), "is not UTF-16"),
        (
            "case,activity\n1,a\n2," + "b" * 140_000,
            r"line 3, where the row begins \(a cell of more than 131072 characters\)",
        ),
        ('case,activity\n1,a\n2,"b\n3,c\n', r"broken CSV at line 3, where the row begins .*is a quote not closed"),
        ('case,"activity\n1,a\n', "broken CSV at line 1"),
        ('case,"activity\n' + "1,a\n" * 500, "broken CSV at line 1"),
        ('<?xml version="1.0" encoding="nonsense"?><log/>', r"encoding that the file declares .*convert it to UTF-8"),
        ('<?xml version="1.0" encoding="shift_jis"?><log/>', r"encoding that the file declares .*multi-byte"),
    ],
)
def test_what_is_no_log_says_so(tmp_path, content, message):
    path = tmp_path / "given.log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        read_log(path)
    assert "given.log" in str(caught.value)


# --- outcomes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("contains:b", {"x", "y"}),
        ("contains:b|c", {"x", "y", "z"}),
        ("last:a", {"w", "y"}),
        ("last:a|c", {"w", "y", "z"}),
        ("attribute:n=7", {"x", "y"}),  # 7 and "7.0" are one number
        ("attribute:n!=7", {"z"}),
        ("attribute:n>=8", {"z"}),
        ("attribute:n<8", {"x", "y"}),
        ("attribute:n>7", {"z"}),
        ("attribute:n<=7.5", {"x", "y"}),
        ("attribute:kind=gold", {"x"}),
        ("attribute:kind!=gold", {"y"}),  # z has none
        ("attribute:ok=true", {"z"}),
        ("attribute:a:b=1=2", {"y"}),
    ],
)
def test_rules(rule, expected):
    log = log_of(
        {"w": "aa", "x": "ab", "y": "ba", "z": "ac"},
        {"x": {"n": 7, "kind": "gold"}, "y": {"n": "7.0", "kind": "tin", "a:b": "1=2"}, "z": {"n": 8.5, "ok": True}},
    )
    assert {case.name for case in log.cases if parse_outcome(rule)(case)} == expected
    assert parse_outcome(str(parse_outcome(rule))) == parse_outcome(rule)
    cases = labelled_words(log, rule)
    assert {name for name, label in zip(cases.names, cases.labels) if label} == expected
    key = parse_outcome(rule).key
    assert cases.unknown == sum(bool(key) and key not in case.attributes for case in log.cases)


@pytest.mark.parametrize(
    ("text", "activities"),
    [
        (r"contains:a\|b", ("a|b",)),
        (r"contains:a\\|b", ("a\\", "b")),
        (r"contains:a\\\|b|c", ("a\\|b", "c")),
        (r"contains:a\b", ("a\\b",)),
        ("contains:a\nb", ("a\nb",)),
    ],
)
def test_a_bar_in_a_name_is_escaped(text, activities):
    assert parse_outcome(text).activities == activities
    assert parse_outcome(str(parse_outcome(text))) == parse_outcome(text)


@given(st.lists(st.text("a|\\\n:", min_size=1), min_size=1, max_size=3))
def test_every_name_can_be_written_in_a_rule(names):
    assert parse_outcome(str(Outcome("last", tuple(names)))).activities == tuple(names)


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "holds", "fails"),
    [
        (NOON, ["=2024-01-01T12:00:00Z", "=2024-01-01 13:00:00+01:00", "!=2024-01-01", ">2024-01-01", "<2024/01/02",
                ">=2024-01-01T12:00:00", "!=noon", "!=2024"], ["=2024-01-01", "<2024-01-01", "=noon", ">5", ">2024"]),
        ("2024-01-01", ["=2024-01-01T00:00:00Z", "=2024-01-01", "<2024-01-01T00:00:01"], [">2024-01-01", "=20240101"]),
        (datetime.min.replace(tzinfo=UTC), ["<2024-01-01"], [">2024-01-01"]),
        (12345678901234567890, ["=12345678901234567890", "!=12345678901234567891", "<12345678901234567891"],
         ["=12345678901234567891", ">=12345678901234567891"]),
        ("12345678901234567890", ["<12345678901234567891", "=12345678901234567890.0"], ["=12345678901234567891"]),
        (10, ["=10", "=1e1", "=10.0", "!=1_0", "!=ten"], ["=1_0", "=٣"]),
        ("1_0", ["=1_0", "!=10"], ["=10", ">5"]),
        (0.1, ["=0.1", "=.10", "<0.10000000000000001"], ["!=0.1"]),
        (7, ["<1e999999999", "=007"], ["=1e999999999", ">1e99999999999999999999999"]),
        ("007", ["=7", "=007"], ["!=7"]),
        ("inf", ["=inf", "!=Infinity"], [">5"]),
        (True, ["=true", "=1", "!=0", "!=yes"], ["=false", "=0", ">0"]),
        (False, ["=False", "=0"], ["=1", "=no"]),
    ],
)  # fmt: skip
def test_values_are_compared_as_what_they_are(value, holds, fails):
    case = Case("x", (), (), {"k": value})
    for wanted, rules in ((True, holds), (False, fails)):
        for rule in rules:
            try:
                assert parse_outcome(f"attribute:k{rule}")(case) is wanted, rule
            except ValueError as error:
                assert wanted is False and "neither a number nor a date" in str(error)  # noqa: PT017, PT018


@pytest.mark.parametrize(
    "rule", ["", "b", "contains:", "last:a||b", "attribute:n", "has:b", "attribute:n>=many", "attribute:n<1_0"]
)
def test_texts_that_are_no_rules(rule):
    with pytest.raises(ValueError, match="outcome"):
        parse_outcome(rule)


def test_rules_that_leave_nothing_to_learn_say_what_there_is():
    log = log_of({"x": "aab", "y": "ab"}, {"x": {"n": 1}, "y": {"n": 2}})
    for rule, message in (
        ("contains:q", r"'q', which is no activity.*'a' \(3\), 'b' \(2\)"),
        ("contains:a", r"every case.*'a' \(3\), 'b' \(2\)"),
        ("last:a", r"no case.*cases end with 'b' \(2\)"),
        ("attribute:n>5", r"no case.*n is '1' \(1\), '2' \(1\)"),
        ("attribute:m=1", r"no case.*attributes are 'n' \(2\)"),
        (lambda case: True, r"every case.*'a' \(3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            labelled_words(log, rule)
    for rule in ("attribute:n=1", lambda case: case.name == "x"):
        with pytest.raises(ValueError, match="No event decides"):
            labelled_words(log, rule, include_outcome=False)
    with pytest.raises(ValueError, match="top is 0"):
        labelled_words(log, "attribute:n=1", top=0)
    with pytest.raises(ValueError, match="'a' is an activity"):
        labelled_words(log, "attribute:n=1", top=1, other="a")


# --- words --------------------------------------------------------------------------------------------------------


def test_the_most_frequent_activities_are_symbols_and_the_rest_is_one():
    log = log_of({"x": "aaacb", "y": "bd", "z": "ce"})  # a 3, b 2, c 2, d 1, e 1
    cases = labelled_words(log, lambda case: case.name == "x", top=2)
    assert cases.alphabet == ("a", "b", "other")
    assert cases.words == ((0, 0, 0, 2, 1), (1, 2), (2, 2))
    assert labelled_words(log, lambda case: case.name == "x", top=5).alphabet == ("a", "b", "c", "d", "e")
    assert labelled_words(log, lambda case: case.name == "x", top=9).words[2] == (2, 4)


def test_named_activities_are_symbols_where_the_word_has_them():
    log = log_of({"x": "aaacb", "y": "bd", "z": "ce"})
    assert labelled_words(log, "contains:e", top=1).alphabet == ("a", "e", "other")
    assert labelled_words(log, "contains:e", top=1, include_outcome=False).alphabet == ("a", "other")


def test_words_end_before_the_first_event_that_decides():
    log = log_of({"x": "abab", "y": "aa", "z": "ba", "e": ""})
    whole, cut = labelled_words(log, "contains:b"), labelled_words(log, "contains:b", include_outcome=False)
    assert whole.words == ((0, 1, 0, 1), (0, 0), (1, 0), ())
    assert cut.words == ((0,), (0, 0), (), ())
    assert whole.labels == cut.labels == (True, False, True, False)
    assert labelled_words(log, "last:b", include_outcome=False).words == ((0, 1, 0), (0,), (1,), ())


words = st.lists(st.tuples(st.text("ab", max_size=2), st.booleans()), min_size=1, max_size=12)


@given(words)
def test_conflicts_and_ceiling_are_those_of_the_best_map(pairs):
    cases = LabelledWords(
        tuple(map(str, range(len(pairs)))), tuple(tuple(map("ab".index, word)) for word, _ in pairs),
        tuple(label for _, label in pairs), ("a", "b"), "given",
    )  # fmt: skip
    distinct = sorted(set(cases.words))
    best = max(
        sum(mapping[distinct.index(word)] == label for word, label in zip(cases.words, cases.labels))
        for mapping in itertools.product([False, True], repeat=len(distinct))
    )
    assert cases.bayes_ceiling() == pytest.approx(best / len(pairs))
    both = Counter(word for word, _ in set(zip(cases.words, cases.labels)))
    assert cases.conflicts() == (sum(count == 2 for count in both.values()), len(pairs) - best)
    resolved, labels, weights = cases.resolved()
    assert sorted(resolved) == distinct
    right = dict(zip(resolved, labels))
    assert sum(right[word] == label for word, label in zip(cases.words, cases.labels)) == best == sum(weights)


@given(words, st.randoms())
def test_resolution_does_not_depend_on_the_order_of_cases(pairs, random):
    def resolved(given):
        return LabelledWords(
            ("",) * len(given), tuple(tuple(map("ab".index, word)) for word, _ in given),
            tuple(label for _, label in given), ("a", "b"), "given",
        ).resolved()  # fmt: skip

    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert resolved(pairs) == resolved(shuffled)


def test_split_is_by_name_and_the_same_everywhere():
    names = [f"case {i}" for i in range(2000)]
    log = log_of({name: "ab" if i % 2 else "a" for i, name in enumerate(names)})
    cases = labelled_words(log, "contains:b")
    training, held_out = cases.split(test=0.25, seed=3)
    assert sorted(training.names + held_out.names) == sorted(names)
    assert abs(len(held_out) - 500) < 5 * math.sqrt(2000 * 0.25 * 0.75)
    assert abs(sum(held_out.labels) / len(held_out) - 0.5) < 0.12
    assert set(held_out.names) != set(cases.split(test=0.25, seed=4)[1].names)
    half = labelled_words(log_of({name: "ab" if i % 2 else "a" for i, name in enumerate(names[:1000])}), "contains:b")
    assert set(half.split(test=0.25, seed=3)[1].names) == set(held_out.names) & set(names[:1000])
    assert set(held_out.names) <= set(cases.split(test=0.5, seed=3)[1].names)
    # those where the first eight bytes of SHA-256 of "3", a zero byte and the name are a quarter of their range at most
    assert held_out.names[:4] == ("case 0", "case 8", "case 11", "case 17")
    with pytest.raises(ValueError, match="share"):
        cases.split(test=1.5)


def test_results_do_not_depend_on_the_hash_seed(tmp_path):
    path = written(tmp_path, xes("".join(trace(str(i), *map(event, "abcde"[: i % 6])) for i in range(12))))
    program = (
        "import sys; from rlstate.automata.eventlog import *\n"
        "log = read_log(sys.argv[1], lifecycle={'', 'complete', 'start'})\n"
        "cases = labelled_words(log, 'contains:c|d', top=2)\n"
        "print(log, cases, cases.resolved(), cases.split(0.5, 1))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(path)], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, check=True, text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


# --- real logs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "cases", "events", "variants"),
    [
        ("fmannhardt__sepsis.csv", 1050, 15214, 846),
        ("pm4py__08_receipt.xes.gz", 1434, 8577, 116),
        ("pm4py__roadtraffic50traces.xes", 51, 201, 6),
    ],
)
def test_published_counts(data, file, cases, events, variants):
    log = read_log(data / "logs" / file, lifecycle="all")
    assert (len(log.cases), log.kept, log.variants()) == (cases, events, variants)


def test_bpic2012_has_three_transitions_and_a12_no_timestamps(data):
    log = read_log(data / "logs" / "pm4py__bpic2012.xes.gz")
    assert len(log.cases) == 13_087
    assert log.kept + log.dropped == 262_200
    assert log.transitions == {"COMPLETE": 164_506, "START": 71_376, "SCHEDULE": 26_318}
    assert log.activities()["A_SUBMITTED"] == len(log.cases)
    assert log.cases[0].attributes["AMOUNT_REQ"] == "20000"
    assert sum(labelled_words(log, "attribute:AMOUNT_REQ>=20000").labels) == sum(
        int(case.attributes["AMOUNT_REQ"]) >= 20_000 for case in log.cases
    )
    a12 = read_log(data / "logs" / "pm4py__a12f0n20.xes.gz")
    assert (len(a12.cases), a12.untimed) == (1000, 1000)


def test_two_formats_of_one_log_agree(data):
    table, tree = (read_log(data / "logs" / f"pm4py__roadtraffic100traces.{kind}") for kind in ("csv", "xes"))
    assert {case.name: case.activities for case in table.cases} == {case.name: case.activities for case in tree.cases}
    full = read_log(data / "logs" / "fmannhardt__sepsis.csv")
    variants = read_log(data / "logs" / "pm4py__13_SEPSIS_1t_per_variant.xes.gz")
    assert {case.activities for case in full.cases} == {case.activities for case in variants.cases}


def test_no_complete_event_says_which_transitions_there_are(data):
    with pytest.raises(ValueError, match=r"of 65533 the lifecycle filter drops 65533.*'In Progress' \(30239\)"):
        read_log(data / "logs" / "pm4py__07_bpic2013_incidents.xes.gz")


def test_rule_needs_no_log_to_say_where_it_is_decided():
    case = Case("x", ("a", "b", "c", "b"), (math.nan,) * 4, {})
    assert Outcome("contains", ("b",)).decides(case) == 1
    assert Outcome("contains", ("d",)).decides(case) is None
    assert Outcome("last", ("d",)).decides(case) == 3
    assert Outcome("attribute", key="n", value="1").decides(case) is None


def test_truth_values_are_matched_however_they_are_written(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("case,activity,granted\n1,a,True\n1,b,True\n2,a,False\n3,b,true\n")
    log = read_log(path, case="case", activity="activity")
    for value in ("True", "true"):
        assert [parse_outcome(f"attribute:granted={value}")(case) for case in log.cases] == [True, False, True]
