"""Values in event logs: numbers, instants and truth values as files have them, how two compare, when a timestamp is."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

Value = str | int | float | bool | datetime
Time = datetime | int | float | None
"""A timestamp: an instant, a number whose unit `clock` tells, or none that can be read."""

NO_VALUE = frozenset({"", "NA", "NaN", "nan", "null", "NULL"})
"""Cells of a CSV file that hold no value (R, pandas and SQL write them so)."""
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
"""XML Schema's, in any case."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNITS = ((1e11, 1), (1e14, 1_000), (1e17, 1_000_000), (math.inf, 1_000_000_000))  # below, how many make a second


def is_number(text: str) -> bool:
    """Whether a text is a decimal number: Python's "1_0", "inf" and foreign digits are none."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_whole(text: str) -> bool:
    """Whether a text is a number of digits only, perhaps with a sign."""
    return _WHOLE.fullmatch(text.strip()) is not None


def number(text: str) -> int | float | None:
    """A decimal number, whole ones exactly, others as floats; None if a text is none, or too large for a float."""
    if not is_number(text):
        return None
    try:
        value = int(text) if is_whole(text) else float(text)
    except ValueError:  # more digits than Python reads
        return None
    return value if abs(value) <= sys.float_info.max else None


def instant(text: str) -> datetime | None:
    """ISO 8601, with slashes or dashes; without a time zone it is UTC, a day alone its beginning.

    None if a text is none; digits alone are always a number, though ISO 8601 would read 20240101 as a day.
    """
    if is_number(text):
        return None
    try:
        found = datetime.fromisoformat(text.strip().replace("/", "-"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def typed(cell: str) -> Value:
    """A cell's truth value (true or false) or number, otherwise its text."""
    if cell.lower() in ("true", "false"):
        return cell.lower() == "true"
    value = number(cell)
    return cell if value is None else value


# --- comparing ----------------------------------------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def compare(value: Value, sign: str, text: str) -> bool:
    """Whether a value is =, !=, >=, <=, > or < a text: as numbers where both are, as instants where both are, else as text.

    Numbers are not rounded. Texts and truth values are equal or not, and in no order.
    """
    if isinstance(value, bool):
        same = BOOLEANS.get(text.strip().lower()) is value
    else:
        for read in (_exact, _instant):
            mine, theirs = read(value), read(text)
            if mine is not None and theirs is not None:
                return bool(_COMPARISONS[sign](mine, theirs))
        same = str(value) == text
    return same if sign == "=" else sign == "!=" and not same


def is_ordered(text: str) -> bool:
    """Whether a text is a number or an instant, so that something can be larger."""
    return _exact(text) is not None or _instant(text) is not None


def _exact(value: Value) -> Decimal | None:
    if isinstance(value, datetime) or not is_number(str(value)):
        return None
    try:
        return Decimal(str(value).strip())
    except ArithmeticError:  # an exponent of twenty digits
        return None


def _instant(value: Value) -> datetime | None:
    return instant(value) if isinstance(value, str) else value if isinstance(value, datetime) else None


# --- timestamps ---------------------------------------------------------------------------------------------------


def clock(times: Sequence[Time], lost: Counter[str]) -> Callable[[Time], float]:
    """Time → seconds since 1970 UTC, NaN where there is none, by one rule for all timestamps of a file.

    Their largest number tells the unit of all: below 10¹¹ (the year 5138) seconds, below 10¹⁴ milli-, below 10¹⁷
    microseconds, otherwise nanoseconds. Where both dates and numbers occur, the rarer kind (if equal, numbers) counts as
    missing and is noted in `lost`.
    """
    numbers = [time for time in times if isinstance(time, (int, float))]
    dates = sum(time is not None for time in times) - len(numbers)
    by_number = len(numbers) > dates
    if numbers and dates:
        rarer, others = ("dates", "numbers") if by_number else ("numbers", "dates")
        lost[f"timestamps that are {rarer} where most are {others}: as if missing"] += min(len(numbers), dates)
    largest = max(map(abs, numbers), default=0)
    per_second = next(per for below, per in _UNITS if largest < below)

    def seconds(time: Time) -> float:
        if time is None or isinstance(time, (int, float)) != by_number:
            return math.nan
        return time / per_second if isinstance(time, (int, float)) else time.timestamp()

    return seconds
