"""Read dates as people and programs write them, and compare them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

YEAR, MONTH, DAY, INSTANT = 1, 2, 3, 4

_LONGEST = 64  # characters of a date that is written in words, with a time and a zone

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()

_NAME = (
    r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|january|february|march|april|june"
    r"|july|august|september|october|november|december)\.?"
)

_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"

_TIME = (
    r"(?:(?:t|,?\s+)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?\s?(?P<half>[ap]m)?"
    r"\s?(?P<zone>z|utc|gmt|[+-][0-9]{2}:?(?:[0-9]{2})?)?)?"
)

_FORMS = tuple(
    re.compile(form + "$")
    for form in (
        rf"(?P<year>[0-9]{{4}})(?:-(?P<month>[0-9]{{1,2}})(?:-(?P<day>[0-9]{{1,2}}){_TIME})?)?",
        rf"(?P<year>[0-9]{{4}})(?P<mark>[/.])(?P<month>[0-9]{{1,2}})(?P=mark)(?P<day>[0-9]{{1,2}})"
        rf"{_TIME}",
        r"(?:d:)?(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
        r"(?:t?(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2})?"
        r"(?P<zone>z|[+-][0-9]{2}[:']?(?:[0-9]{2}'?)?)?)?",
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?[\s.-]\s?{_NAME}[\s,-]\s?"
        rf"(?P<year>[0-9]{{4}}){_TIME}",
        rf"{_WEEKDAY}{_NAME}\s(?:(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s)?(?P<year>[0-9]{{4}})"
        rf"{_TIME}",
        r"(?P<year>[0-9]{4})\s?年\s?(?P<month>[0-9]{1,2})\s?月(?:\s?(?P<day>[0-9]{1,2})\s?[日号號]"
        rf"{_TIME})?",
        rf"(?P<day>[0-9]{{1,2}})\.(?P<month>[0-9]{{1,2}})\.(?P<year>[0-9]{{4}}){_TIME}",
        rf"(?P<first>[0-9]{{1,2}})/(?P<other>[0-9]{{1,2}})/(?P<year>[0-9]{{4}}){_TIME}",
    )
)

_USUAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:$|[Tt ][0-9]{2}:[0-9]{2}(?:$|[:.Z+-]))")

_YEAR = re.compile(r"[0-9]{4}")

_AMBIGUOUS = re.compile(r"\s*([0-9]{1,2})/([0-9]{1,2})/[0-9]{4}(?![0-9])")


class CalendarTime(NamedTuple):
    """A date as it was given: a year, a month, a day, or an instant.

    Attributes:
        precision: ``YEAR``, ``MONTH``, ``DAY`` or ``INSTANT``.
        calendar: Year, month and day, as written, in whatever zone.
        instant: The time since the year 1 in UTC; None without a time of day.
    """

    precision: int
    calendar: tuple[int, int, int]
    instant: timedelta | None = None

    def compare(self, other: CalendarTime) -> int:
        """Return -1, 0 or 1: before, the same, after, by what both of them tell.

        An instant and a day are compared as days, a day and a year as years.
        """
        if self.instant is not None and other.instant is not None:
            return (self.instant > other.instant) - (self.instant < other.instant)
        size = min(self.precision, other.precision)
        mine, others = self.calendar[:size], other.calendar[:size]
        return (mine > others) - (mine < others)


def read_date(value: Any) -> CalendarTime | None:
    """Read a date, a datetime, or a text that is one; None for anything else.

    Texts are ISO 8601, also shortened to a month or a year, RFC 2822, dates of PDF files, and
    ``2024/1/31``, ``31.1.2024``, ``31 January 2024``, ``Jan 31, 2024``, ``2024年1月31日``,
    ``1/31/2024``, each with or without a time and its zone. A text with slashes of which both
    numbers may be the month is no date. A time without a zone is UTC.

    Example:
        >>> read_date("Wed, 31 Jan 2024 10:00:00 GMT").compare(read_date("2024-01-31T11:00+01:00"))
        0
        >>> read_date("1 May 2024").compare(read_date("2024-05"))
        0
        >>> read_date("1/2/2024") is None
        True
    """
    if type(value) is DatedText:
        return value.when
    try:
        if isinstance(value, datetime):
            return _instant(value, value.utcoffset())
        if isinstance(value, date):
            return CalendarTime(DAY, (value.year, value.month, value.day))
        return _read_text(value) if isinstance(value, str) else None
    except (ValueError, TypeError, OverflowError):  # no day of the calendar
        return None


class DatedText(str):
    """A text that was read as a date once, and is what it was otherwise."""

    when: CalendarTime | None

    @classmethod
    def read(cls, text: str) -> DatedText:
        """Read a text."""
        dated = cls(text)
        dated.when = read_date(text)
        return dated


def is_ambiguous(value: Any) -> bool:
    """Return whether a value is a text like ``1/2/2024``, in which either may be the month."""
    match = _AMBIGUOUS.match(value) if isinstance(value, str) else None
    return match is not None and match[1] != match[2] and max(int(match[1]), int(match[2])) <= 12


def _instant(value: datetime, offset: timedelta | None) -> CalendarTime:
    calendar = (value.year, value.month, value.day)
    # Not by subtraction: what pandas derives from datetime does not reach back to the year 1.
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    since = timedelta(date.toordinal(value), seconds, value.microsecond)
    return CalendarTime(INSTANT, calendar, since if offset is None else since - offset)


def _read_text(text: str) -> CalendarTime | None:
    text = text.strip()
    if _USUAL.match(text):  # most are so, and this is the quickest
        with suppress(ValueError):
            value = datetime.fromisoformat(text)
            if len(text) > len("2024-01-31"):
                return _instant(value, value.utcoffset())
            return CalendarTime(DAY, (value.year, value.month, value.day))
    if len(text) > _LONGEST or not _YEAR.search(text):
        return None
    text = text.lower()
    for form in _FORMS:
        if match := form.match(text):
            return _read_match(match.groupdict())
    return None


def _read_match(parts: dict[str, str | None]) -> CalendarTime | None:
    year, month, day = int(parts["year"] or 0), _month(parts), parts.get("day")
    if first := parts.get("first"):  # 31/1/2024 or 1/31/2024
        one, other = int(first), int(parts["other"] or 0)
        if one != other and max(one, other) <= 12:
            return None
        month, day = min(one, other), str(max(one, other))
    start = date(year, month or 1, int(day or 1))
    calendar = (start.year, start.month, start.day)
    if not day:
        return None if parts.get("hour") else CalendarTime(MONTH if month else YEAR, calendar)
    hour = parts.get("hour")
    if hour is None:
        return CalendarTime(DAY, calendar)
    number, half = int(hour), parts.get("half")
    if half:
        if not 1 <= number <= 12:
            return None
        number = number % 12 + (12 if half == "pm" else 0)
    micro = int((parts.get("fraction") or "0").ljust(6, "0")[:6])
    second = int(parts.get("second") or 0)
    moment = datetime(*calendar, number, int(parts.get("minute") or 0), second, micro)
    zone = _zone(parts.get("zone"))
    return _instant(moment, zone.utcoffset(None))


def _month(parts: dict[str, str | None]) -> int | None:
    if name := parts.get("name"):
        return _MONTHS.index(name[:3]) + 1
    month = parts.get("month")
    return int(month) if month else None


def _zone(text: str | None) -> tzinfo:
    if text is None or text[0] not in "+-":
        return timezone.utc
    digits = [character for character in text[1:] if "0" <= character <= "9"]
    hours, minutes = int("".join(digits[:2])), int("".join(digits[2:]) or 0)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(offset if text[0] == "+" else -offset)
