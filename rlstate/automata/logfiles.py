"""Files of event logs, read as a stream of traces: XES (plain or gzip, with or without the namespace) and CSV.

XES is IEEE 1849-2016. Nothing is decided here about which events count: see `rlstate.automata.eventlog`.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

Value = str | int | float | bool | datetime
Progress = Callable[[int, int], None]
"""Called now and then with the bytes of the file read so far and its size."""

NO_VALUE = frozenset({"", "NA", "NaN", "nan", "null", "NULL"})
"""Cells of a CSV file that hold no value (R, pandas and SQL write them so)."""

_NAMES = {
    "case": ("case:concept:name", "case_id", "case id", "caseid", "case"),
    "activity": ("concept:name", "activity"),
    "timestamp": ("time:timestamp", "timestamp"),
    "transition": ("lifecycle:transition", "lifecycle"),
}


class Event(NamedTuple):
    """An event as the file has it; the timestamp in seconds since 1970 UTC (NaN: none or unreadable)."""

    activity: str | None
    timestamp: float
    transition: str | None


class Trace(NamedTuple):
    """A case as the file has it: events in the file's order, its own attributes typed."""

    name: str | None
    attributes: dict[str, Value]
    events: list[Event]


@dataclass
class Reading:
    """What is asked of a file, and what was lost on the way (`lost`: how often, by description)."""

    path: str
    case: str | None = None
    activity: str | None = None
    timestamp: str | None = None
    progress: Progress | None = None
    lost: Counter[str] = field(default_factory=Counter)

    def traces(self) -> Iterator[Trace]:
        """The file's traces, one at a time.

        Raises:
            ValueError: one sentence that names the file, the place and the fault.
        """
        done = 0
        try:
            with open(self.path, "rb") as raw:
                size = os.fstat(raw.fileno()).st_size
                stream: Any = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
                head = stream.peek(512)[:512]
                if not head.strip():
                    raise ValueError(f"{self.path} is empty: give an event log, XES or CSV.")
                if head[:4] == b"PK\x03\x04":
                    raise ValueError(f"{self.path} is a zip archive: unpack it and give the log inside.")

                def tell() -> None:
                    if self.progress is not None:
                        self.progress(raw.tell(), size)

                is_xml = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<" or head[:2] in (b"\xff\xfe", b"\xfe\xff")
                for trace in self._xes(stream, tell) if is_xml else self._csv(stream, tell):
                    yield trace
                    done += 1
                tell()
        except ElementTree.ParseError as error:
            line, column = error.position
            fault = str(error).partition(": line")[0]
            raise ValueError(
                f"{self.path}: broken XML at line {line}, column {column} ({fault}), after {done} whole cases; "
                f"repair the file or get it again."
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self.path}: the gzip data are cut short or damaged ({error}), after {done} whole cases; get the "
                f"file again."
            ) from error

    # --- XES --------------------------------------------------------------------------------------------------

    def _xes(self, stream: IO[bytes], tell: Callable[[], None]) -> Iterator[Trace]:
        keys = (self.activity or "concept:name", self.timestamp or "time:timestamp", "lifecycle:transition")
        root, n_traces = None, 0
        for _, element in ElementTree.iterparse(stream, events=("end",)):
            root = element  # the last element that ends is the outermost one
            if element.tag.endswith("trace") and _local(element) == "trace":
                n_traces += 1
                yield self._trace(element, keys)
                element.clear()  # the events are the bulk: what stays in memory is an empty element a trace
                tell()
        assert root is not None  # otherwise the parser has raised
        if _local(root) != "log":
            raise ValueError(f"{self.path}: the outermost element is <{_local(root)}>, but in XES it is <log>.")
        self.lost["events outside of any trace"] += sum(_local(child) == "event" for child in root)

    def _trace(self, element: ElementTree.Element, keys: tuple[str, str, str]) -> Trace:
        attributes: dict[str, Value] = {}
        events = []
        for child in element:
            kind = _local(child)
            if kind != "event":
                self._attribute(attributes, child, kind)
                continue
            values = {part.get("key"): part.get("value") for part in child}
            activity, timestamp, transition = (values.get(key) for key in keys)
            events.append(Event(_intern(activity), self._seconds(timestamp), _intern(transition)))
        name = attributes.get(self.case or "concept:name")
        return Trace(None if name is None else str(name), attributes, events)

    def _attribute(self, attributes: dict[str, Value], element: ElementTree.Element, kind: str) -> None:
        key, text = element.get("key"), element.get("value")
        if key is None or text is None:
            self.lost["trace attributes without a single value (lists, containers)"] += 1
            return
        value: Value = text
        with suppress(ValueError):
            if kind == "int":
                value = int(text)
            elif kind == "float":
                value = float(text)
            elif kind == "date":
                value = _instant(text)
            elif kind == "boolean":
                value = text.strip().lower() == "true"
        attributes[key] = value

    # --- CSV --------------------------------------------------------------------------------------------------

    def _csv(self, stream: IO[bytes], tell: Callable[[], None]) -> Iterator[Trace]:
        """Rows may be interleaved, so cases come out when all is read, in the order of their first rows."""
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        rows: Any = csv.reader(())
        try:
            header = text.readline()
            delimiter = max(",;\t|", key=header.count)  # the first of equals
            columns = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
            case, activity, timestamp, transition = self._columns(columns)
            others = [i for i in range(len(columns)) if i not in (case, activity, timestamp, transition)]
            varying: set[int] = set()
            cells: dict[str, dict[int, str]] = {}
            events: dict[str, list[Event]] = {}
            rows = csv.reader(text, delimiter=delimiter, strict=True)
            for row in rows:
                if not row:
                    continue
                if len(row) != len(columns):
                    raise ValueError(
                        f"{self.path}: line {rows.line_num + 1} has {len(row)} cells, but the header names "
                        f"{len(columns)} columns."
                    )
                name = row[case]
                if not name:
                    self.lost["rows without a case"] += 1
                    continue
                if name not in events:
                    events[name], cells[name] = [], {}
                time = math.nan if timestamp is None else self._seconds(row[timestamp])
                state = None if transition is None else _intern(row[transition] or None)
                events[name].append(Event(_intern(row[activity] or None), time, state))
                mine = cells[name]
                for i in others:
                    if row[i] not in NO_VALUE and mine.setdefault(i, row[i]) != row[i]:
                        varying.add(i)
                if not rows.line_num % 1000:
                    others = [i for i in others if i not in varying]
                    tell()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}: line {rows.line_num + 2} or soon after is not UTF-8 ({error.reason}); convert the file "
                f"to UTF-8 first."
            ) from error
        except csv.Error as error:
            raise ValueError(f"{self.path}: broken CSV at line {rows.line_num + 1} ({error}).") from error
        finally:
            text.detach()  # otherwise its end would close the file
        for name, listed in events.items():
            own = {
                columns[i].removeprefix("case:"): _typed(cell) for i, cell in cells[name].items() if i not in varying
            }
            yield Trace(name, own, listed)

    def _columns(self, columns: list[str]) -> tuple[int, int, int | None, int | None]:
        """The columns of case, activity, timestamp and lifecycle transition; the first two must be there."""
        found: list[int | None] = []
        for role, known in _NAMES.items():
            asked = getattr(self, role, None)
            if asked is None:
                lower = [name.lower() for name in columns]
                at = next((lower.index(name) for name in known if name in lower), None)
                if at is None and role in ("case", "activity"):
                    raise ValueError(
                        f"{self.path}: no column is called {known[0]!r}; name the {role}'s column ({role}=…) among "
                        f"{', '.join(map(repr, columns))}."
                    )
            elif asked in columns:
                at = columns.index(asked)
            else:
                raise ValueError(
                    f"{self.path}: no column is called {asked!r}; the columns are {', '.join(map(repr, columns))}."
                )
            found.append(at)
        case, activity, timestamp, transition = found
        assert case is not None
        assert activity is not None
        return case, activity, timestamp, transition

    # --- values -----------------------------------------------------------------------------------------------

    def _seconds(self, text: str | None) -> float:
        if text is None or text in NO_VALUE:
            return math.nan
        try:
            return _instant(text).timestamp()
        except (ValueError, OverflowError):
            with suppress(ValueError):
                return float(text)
            self.lost["unreadable timestamps (neither ISO 8601 nor a number of seconds)"] += 1
            return math.nan


def _instant(text: str) -> datetime:
    """ISO 8601, with slashes or dashes; an instant without a time zone is taken as UTC."""
    instant = datetime.fromisoformat(text.strip().replace("/", "-"))
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _typed(cell: str) -> Value:
    if cell.lower() in ("true", "false"):
        return cell.lower() == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(cell)
    return cell


def _local(element: ElementTree.Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _intern(text: str | None) -> str | None:
    return None if text is None else sys.intern(text)
