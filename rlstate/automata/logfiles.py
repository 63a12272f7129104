"""Files of event logs, read as a stream of traces: XES (plain or gzip, with or without the namespace) and CSV.

XES is IEEE 1849-2016. Nothing is decided here about which events count: see `rlstate.automata.eventlog`.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

from rlstate.automata.logvalues import BOOLEANS, NO_VALUE, Time, Value, instant, is_whole, number, typed

Progress = Callable[[int, int], None]
"""Called now and then with the bytes of the file read so far and its size (0 where a pipe has none)."""

NAMES = {
    "case": ("case:concept:name", "case_id", "case id", "caseid", "case"),
    "activity": ("concept:name", "activity"),
    "timestamp": ("time:timestamp", "timestamp"),
    "transition": ("lifecycle:transition", "lifecycle"),
}
"""The columns that hold what, by the names that are recognized (in any case)."""
_HEADER_LINES = 100  # a header whose quotes are not closed by then never will be


class Event(NamedTuple):
    """An event as the file has it."""

    activity: str | None
    timestamp: Time
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
        """The file's traces, one at a time; the file may be a pipe.

        Raises:
            ValueError: one sentence that names the file, the place and the fault.
        """
        done = 0
        try:
            with open(self.path, "rb", buffering=0) as raw:
                size = os.fstat(raw.fileno()).st_size
                source = _Source(raw)
                stream: Any = source.buffered()
                head, stream = _peeked(stream)
                if head[:2] == b"\x1f\x8b":
                    head, stream = _peeked(gzip.GzipFile(fileobj=stream))
                if not head.strip():
                    raise ValueError(f"{self.path} is empty: give an event log, XES or CSV.")
                if head[:4] == b"PK\x03\x04":
                    raise ValueError(f"{self.path} is a zip archive: unpack it and give the log inside.")
                wide = head[:2] in (b"\xff\xfe", b"\xfe\xff")
                text = head[: len(head) // 2 * 2].decode("utf-16" if wide else "latin-1", "replace")
                if "\0" in text:
                    raise ValueError(
                        f"{self.path} is binary, or text in UTF-16 or UTF-32 that does not say so: convert it to UTF-8."
                    )

                def tell() -> None:
                    if self.progress is not None:
                        self.progress(source.done, size)

                is_xml = text.lstrip("\xef\xbb\xbf\ufeff \t\r\n")[:1] == "<"
                encoding = "utf-16" if wide else "utf-8-sig"
                for trace in self._xes(stream, tell) if is_xml else self._csv(stream, encoding, tell):
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
        activity, timestamp = self.activity or "concept:name", self.timestamp or "time:timestamp"
        keys = (activity, timestamp, "lifecycle:transition")
        of_events: dict[str | None, None] = {}  # the keys that there are
        of_traces: dict[str, None] = {}
        root = None
        for element in self._elements(stream):
            root = element  # the last element that ends is the outermost one
            if element.tag.endswith("trace") and _local(element) == "trace":
                trace = self._trace(element, keys, of_events)
                of_traces.update(dict.fromkeys(trace.attributes))
                yield trace
                element.clear()  # the events are the bulk: what stays in memory is an empty element a trace
                tell()
        assert root is not None  # otherwise the parser has raised
        if _local(root) != "log":
            raise ValueError(f"{self.path}: the outermost element is <{_local(root)}>, but in XES it is <log>.")
        self.lost["events outside of any trace: left out"] += sum(_local(child) == "event" for child in root)
        for role, what, key, there in (
            ("activity", "event", activity, [key for key in of_events if key is not None]),
            ("timestamp", "event", self.timestamp, [key for key in of_events if key is not None]),
            ("case", "trace", self.case, list(of_traces)),
        ):
            if there and key is not None and key not in there:
                raise ValueError(
                    f"{self.path}: no {what} has an attribute {key!r}; name the {role}'s attribute ({role}=…) among "
                    f"{_listing(there)}."
                )

    def _elements(self, stream: IO[bytes]) -> Iterator[ElementTree.Element]:
        try:
            for _, element in ElementTree.iterparse(stream, events=("end",)):
                yield element
        except (LookupError, ValueError) as error:  # the parser knows single-byte encodings, UTF-8 and UTF-16
            raise ValueError(
                f"{self.path}: the encoding that the file declares cannot be read ({error}); convert it to UTF-8."
            ) from error

    def _trace(
        self, element: ElementTree.Element, keys: tuple[str, str, str], of_events: dict[str | None, None]
    ) -> Trace:
        attributes: dict[str, Value] = {}
        events = []
        for child in element:
            kind = _local(child)
            if kind != "event":
                self._attribute(attributes, child, kind)
                continue
            values = {part.get("key"): part.get("value") for part in child}
            of_events.update(dict.fromkeys(values))
            activity, timestamp, transition = (values.get(key) for key in keys)
            events.append(Event(_intern(activity), self._time(timestamp), _intern(transition)))
        name = attributes.get(self.case or "concept:name")
        return Trace(None if name is None else str(name), attributes, events)

    def _attribute(self, attributes: dict[str, Value], element: ElementTree.Element, kind: str) -> None:
        key, text = element.get("key"), element.get("value")
        if key is None or text is None:
            self.lost["trace attributes without a single value (lists, containers): left out"] += 1
            return
        value: Value | None = text
        if kind == "int":
            value = number(text) if is_whole(text) else None
        elif kind == "float":
            value = None if (found := number(text)) is None else float(found)
        elif kind == "date":
            value = instant(text)
        elif kind == "boolean":
            value = BOOLEANS.get(text.strip().lower())
        if value is None:
            self.lost[f"trace attributes that are not the {kind} they are said to be: kept as text"] += 1
        attributes[key] = text if value is None else value

    # --- CSV --------------------------------------------------------------------------------------------------

    def _csv(self, stream: IO[bytes], encoding: str, tell: Callable[[], None]) -> Iterator[Trace]:
        """Rows may be interleaved, so cases come out when all is read, in the order of their first rows."""
        text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        rows: Any = csv.reader(())
        above, begins = 0, 1  # the header's last line, and the first of what is being read
        try:
            header, lines = self._header(text)
            unquoted = re.sub(r'"[^"]*"', "", header)
            delimiter = max(",;\t|", key=unquoted.count)  # the first of equals
            columns = [name.strip() for name in next(csv.reader([header], delimiter=delimiter, strict=True))]
            case, activity, timestamp, transition = self._columns(columns)
            others = [i for i in range(len(columns)) if i not in (case, activity, timestamp, transition)]
            varying: set[int] = set()
            cells: dict[str, dict[int, str]] = {}
            events: dict[str, list[Event]] = {}
            rows = csv.reader(text, delimiter=delimiter, strict=True)
            above, begins = lines, lines + 1
            for row in rows:
                line, begins = begins, above + rows.line_num + 1
                row = [cell.strip() for cell in row]
                if not row or (row == [""] and len(columns) > 1):
                    continue
                if len(row) != len(columns):
                    raise ValueError(
                        f"{self.path}: line {line} has {len(row)} cells, but the header names {len(columns)} columns."
                    )
                name = row[case]
                if not name:
                    self.lost["rows without a case: left out"] += 1
                    continue
                if name not in events:
                    events[name], cells[name] = [], {}
                time = None if timestamp is None else self._time(row[timestamp])
                state = None if transition is None else _intern(row[transition])
                events[name].append(Event(_intern(row[activity]), time, state))
                mine = cells[name]
                for i in others:
                    if row[i] not in NO_VALUE and mine.setdefault(i, row[i]) != row[i]:
                        varying.add(i)
                if not rows.line_num % 1000:
                    others = [i for i in others if i not in varying]
                    tell()
        except UnicodeError as error:
            name = "UTF-8" if encoding == "utf-8-sig" else encoding.upper()
            raise ValueError(
                f"{self.path}: line {above + rows.line_num + 1} or soon after is not {name} ({error.args[-1]}); convert "
                f"the file to UTF-8 first."
            ) from error
        except csv.Error as error:
            fault = f"a cell of more than {csv.field_size_limit()} characters" if "limit" in str(error) else str(error)
            raise ValueError(
                f"{self.path}: broken CSV at line {begins}, where the row begins ({fault}): is a quote not closed?"
            ) from error
        finally:
            text.detach()  # otherwise its end would close the file
        for name, listed in events.items():
            own = {columns[i].removeprefix("case:"): typed(cell) for i, cell in cells[name].items() if i not in varying}
            yield Trace(name, own, listed)

    def _header(self, text: IO[str]) -> tuple[str, int]:
        """The first line that is not blank, with those that its quotes go on in; how many lines that and above are."""
        header: list[str] = []
        lines = 0
        while line := text.readline():
            lines += 1
            if header or line.strip():
                header.append(line)
                if "".join(header).count('"') % 2 == 0 or len(header) == _HEADER_LINES:
                    break
        return "".join(header), lines

    def _columns(self, columns: list[str]) -> tuple[int, int, int | None, int | None]:
        """The columns of case, activity, timestamp and lifecycle transition; the first two must be there."""
        found: list[int | None] = []
        for role, known in NAMES.items():
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

    def _time(self, text: str | None) -> Time:
        if text is None or text.strip() in NO_VALUE:
            return None
        time: Time = number(text)
        if time is None:
            time = instant(text)
        if time is None:
            self.lost["unreadable timestamps (neither ISO 8601 nor a number): as if missing"] += 1
        return time


class _Source(io.RawIOBase):
    """The bytes of a stream behind those already taken from it, counted; it never seeks, so that a pipe will do."""

    def __init__(self, stream: Any, head: bytes = b"") -> None:
        self.stream, self.head, self.done = stream, head, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.head or self.stream.read(len(buffer))
        self.head = data[len(buffer) :]
        taken = data[: len(buffer)]
        buffer[: len(taken)] = taken
        self.done += len(taken)
        return len(taken)

    def buffered(self) -> io.BufferedReader:
        return io.BufferedReader(self)


def _peeked(stream: Any) -> tuple[bytes, io.BufferedReader]:
    """The first bytes, as many as it takes to see some that are not blank, and the stream with them in place again."""
    head = stream.read(512)
    while not head.strip() and (more := stream.read(512)):
        head += more
    return head, _Source(stream, head).buffered()


def _local(element: ElementTree.Element) -> str:
    """The element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _intern(text: str | None) -> str | None:
    """One object for equal texts; a blank one is None."""
    return sys.intern(text) if text and text.strip() else None


def _listing(names: list[str], limit: int = 12) -> str:
    return ", ".join(map(repr, names[:limit])) + (f", … ({len(names)})" if len(names) > limit else "")
