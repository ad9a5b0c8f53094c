"""Format numbers like spreadsheet programs do, according to the format code of a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

GENERAL = "General"
"""The format code of cells for which no number format is set."""

BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0;-"$"#,##0',
    6: '"$"#,##0;-"$"#,##0',
    7: '"$"#,##0.00;-"$"#,##0.00',
    8: '"$"#,##0.00;-"$"#,##0.00',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "m/d/yyyy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yyyy h:mm",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Built-in format codes by number (ECMA-376, part 1, 18.8.30). Files contain only the numbers."""

_TOKEN = re.compile(
    r"""(?P<text>"[^"]*"|\\.|!.)
    |(?P<skipped>[_*].)
    |\[(?P<elapsed>h+|m+|s+)\]
    |\[(?P<condition>[<>=]+-?[\d.]+)\]
    |\[\$(?P<currency>[^\]-]*)(?:-(?P<locale>[^\]]*))?\]
    |(?P<ignored>\[[^\]]*\])
    |(?P<general>General)
    |(?P<half>AM/PM|A/P|上午/下午)
    |(?P<exponent>E[+-])
    |(?P<fraction_of_second>(?<=s)\.0+|(?<=s\])\.0+)
    |(?P<date>y+|m+|d+|h+|s+|e+|g+|b+|a{3,4})
    |(?P<digit>[0#?])
    |(?P<mark>[.,%/@;])
    |(?P<other>.)""",
    re.X | re.I | re.S,
)

_ENGLISH = 9  # the primary language in the locale ids of English locales

_SYSTEM_LOCALES = ("F400", "F800", "X-SYSTIME", "X-SYSDATE")

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_AMBIGUOUS_DATE = re.compile(r"(?<!\d)\d{1,2}[/-]\d{1,2}[/-]\d{2}(?:\d\d)?(?!\d)")

_DIGITS_OF_PROGRAMS = Context(prec=15, rounding=ROUND_HALF_UP)

_ALL_DIGITS = Context(prec=2_000)

_LARGEST_PLAIN = Decimal(10) ** 21

# largest position of the first nonzero decimal for which numbers are not in scientific notation
_SMALLEST_PLAIN = 9


def is_ambiguous_date(text: str) -> bool:
    """Return whether it is unclear if a date starts with the day or the month.

    Example:
        >>> is_ambiguous_date("03/04/2026"), is_ambiguous_date("3.4.2026")
        (True, False)
    """
    return _AMBIGUOUS_DATE.search(text) is not None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _FormatSection:
    """A section of a format code, with its tokens and the condition under which it applies."""

    tokens: tuple[_Token, ...]
    condition: str
    is_date: bool
    is_readable: bool

    @property
    def is_text(self) -> bool:
        """Whether the section is used for text values."""
        return _Token("mark", "@") in self.tokens

    def kinds(self) -> list[str]:
        """Return the kind of each token."""
        return [token.kind for token in self.tokens]


@lru_cache(maxsize=1000)
def _sections(code: str) -> tuple[_FormatSection, ...]:
    """Split a format code into its sections."""
    sections: list[_FormatSection] = []
    matches: list[re.Match[str]] = []
    for match in _TOKEN.finditer(f"{code};"):
        if match["mark"] == ";":
            sections.append(_section(matches))
            matches = []
        else:
            matches.append(match)
    return tuple(sections)


def _section(matches: Sequence[re.Match[str]]) -> _FormatSection:
    """Create a section from the matches of ``_TOKEN``."""
    tokens = [_token(match) for match in matches if match.lastgroup not in _NOT_SHOWN]
    conditions = [match["condition"] for match in matches if match["condition"]]
    locales = [match["locale"] for match in matches if match["locale"]]
    return _FormatSection(
        tokens=tuple(tokens),
        condition="".join(conditions[-1:]),
        is_date=any(token.kind in _DATE_KINDS for token in tokens),
        is_readable=all(_is_english(locale) for locale in locales),
    )


_NOT_SHOWN = ("skipped", "ignored", "condition")

_DATE_KINDS = ("date", "elapsed")


def _token(match: re.Match[str]) -> _Token:
    kind = match.lastgroup or ""
    text = match[0]
    if kind in ("currency", "locale"):
        return _Token("text", match["currency"])
    if kind == "text":
        return _Token(kind, _literal(text))
    if kind == "other":
        return _Token("text", text)
    if kind == "elapsed":
        return _Token(kind, match["elapsed"].lower())
    if kind == "date":
        return _Token(kind, text.lower())
    return _Token(kind, text)


def _literal(text: str) -> str:
    """Remove the quotation marks or the escape character from a literal text."""
    if text.startswith('"'):
        return text[1:].removesuffix('"')
    return text[1:]


def _is_english(locale: str) -> bool:
    """Return whether a locale, given as a hexadecimal id, has English month names."""
    if locale.upper() in _SYSTEM_LOCALES:
        return False
    if re.fullmatch("[0-9a-fA-F]+", locale):
        return int(locale, 16) & 0xFF in (0, _ENGLISH)
    return not locale or locale.lower().startswith("en")


def is_date_format(code: str) -> bool:
    """Return whether a format code displays dates, times or durations.

    Example:
        >>> is_date_format("d. mmm yyyy"), is_date_format('0 "days"')
        (True, False)
    """
    return _sections(code)[0].is_date


@lru_cache(maxsize=20_000)
def shown_number(number: str, code: str, *, starts_1904: bool = False) -> str | None:
    """Format a number in the same way as a spreadsheet program.

    Args:
        number: The number in decimal notation.
        code: The format code of the cell.
        starts_1904: Whether the workbook counts days from 1904 instead of 1900.

    Returns:
        The displayed text. The result is None if the format is unknown or depends on system
        settings, or if the order of day and month is ambiguous.

    Example:
        >>> shown_number("0.075", "0.0%"), shown_number("1234.5", "$#,##0.00")
        ('7.5%', '$1,234.50')
        >>> shown_number("1.2534722", "[h]:mm"), shown_number("-5", "0;(0)")
        ('30:05', '(5)')
    """
    value = _parsed(number)
    if value is None:
        return None
    if code == GENERAL:
        return general(value)
    if simple := _simple_format(code):
        return simple.shown(value)
    section, has_sign = _section_of(_sections(code), value)
    if section is None:
        return None
    if section.is_date:
        text = _date_text(section, value, starts_1904)
        if text is None or is_ambiguous_date(text):
            return None
    else:
        text = _number_text(section, abs(value) if has_sign else value)
    return " ".join(text.split())


_LIMIT = 401  # maximum number of digits before or after the decimal point


def _parsed(number: str) -> Decimal | None:
    """Parse a number. Return None if spreadsheet programs cannot display it."""
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or not -_LIMIT < value.adjusted() < _LIMIT:
        return None
    return value


def shown_text(text: str, code: str) -> str:
    """Format a text in the same way as a spreadsheet program, in a cell with a number format.

    Example:
        >>> shown_text("green", '"Tea: "@'), shown_text("secret", ";;;")
        ('Tea: green', '')
    """
    if "@" not in code and code.count(";") < 3:
        return text
    sections = _sections(code)[:4]
    section = sections[-1]
    if len(sections) < 4 and not section.is_text:
        return text
    parts = [text if token.text == "@" else token.text for token in section.tokens]
    return "".join(parts)


def general(value: Decimal | float) -> str:
    """Format a number without a format code: integers in full, other numbers with 15 digits.

    Example:
        >>> general(0.1 + 0.2), general(1234567890123456.0)
        ('0.3', '1234567890123456')
    """
    if isinstance(value, float):
        text = f"{value:.15g}"
        if "e" not in text and "n" not in text:
            return text
        value = Decimal(repr(value))
        if not value.is_finite():
            return str(value)
    is_whole = value == value.to_integral_value()
    if is_whole and abs(value) < _LARGEST_PLAIN:
        return str(int(value))
    rounded = _DIGITS_OF_PROGRAMS.plus(value).normalize(_DIGITS_OF_PROGRAMS)
    if -_SMALLEST_PLAIN <= rounded.adjusted() < 21:
        return f"{rounded:f}"
    return f"{rounded:E}"


def _section_of(
    sections: Sequence[_FormatSection], value: Decimal
) -> tuple[_FormatSection | None, bool]:
    """Return the section that applies to a value, and whether this section displays the sign."""
    numeric = [section for section in sections[:3] if not section.is_text] or sections[:1]
    if any(section.condition for section in numeric):
        for section in numeric:
            if not section.condition or _holds(section.condition, value):
                is_negative_only = section.condition.startswith("<") and value < 0
                return section, is_negative_only and len(numeric) > 1
        return None, False
    if value < 0 and len(numeric) > 1:
        return numeric[1], True
    if value == 0 and len(numeric) > 2:
        return numeric[2], False
    return numeric[0], False


def _holds(condition: str, value: Decimal) -> bool:
    match = re.fullmatch(r"([<>=]+)(-?[\d.]+)", condition)
    if match is None:
        return False
    limit = Decimal(match[2])
    outcomes = {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "=": value == limit,
        "<>": value != limit,
    }
    return outcomes.get(match[1], False)


def _number_text(section: _FormatSection, value: Decimal) -> str:
    """Format a number with a section for numbers."""
    kinds = section.kinds()
    if "general" in kinds or section.is_text:
        texts = {"general": general(value), "mark": general(value)}
        return "".join(texts.get(token.kind, token.text) for token in section.tokens)
    if "digit" not in kinds:
        literal = "".join(token.text for token in section.tokens)
        return f"{_sign(value)}{literal}" if literal else ""
    tokens = list(section.tokens)
    marks = [token.text for token in tokens if token.kind == "mark"]
    if "exponent" in kinds:
        return _scientific(tokens, value)
    if "/" in marks and "%" not in marks and _fraction_slash(tokens):
        return _fraction(tokens, value)
    value *= 100 ** marks.count("%")
    after = max(at for at, token in enumerate(tokens, start=1) if token.kind == "digit")
    while tokens[after : after + 1] == [_COMMA]:
        value /= 1000
        del tokens[after]
    return _decimal_text(tokens, value)


_COMMA = _Token("mark", ",")


def _sign(value: Decimal) -> str:
    return "-" if value < 0 else ""


def _decimal_text(tokens: list[_Token], value: Decimal) -> str:
    """Fill the digit placeholders of a format with the digits of a number."""
    point = next((at for at, token in enumerate(tokens) if token.text == "."), len(tokens))
    before = tokens[:point]
    after = tokens[point:]
    places = sum(token.kind == "digit" for token in after)
    rounded = _rounded(value, places)
    whole, _, decimals = f"{rounded.copy_abs():f}".partition(".")
    text = _integer_text(before, whole.lstrip("0")) + _decimals_text(after, decimals)
    return f"{_sign(rounded)}{text}"


def _rounded(value: Decimal, places: int) -> Decimal:
    """Round a number half up, after reducing it to the 15 digits that spreadsheet programs keep."""
    if value != value.to_integral_value():
        value = _DIGITS_OF_PROGRAMS.plus(value)
    return value.quantize(_unit(places), ROUND_HALF_UP, _ALL_DIGITS)


@lru_cache(maxsize=100)
def _unit(places: int) -> Decimal:
    """Return one unit in the last decimal place."""
    return Decimal(1).scaleb(-places)


def _integer_text(tokens: list[_Token], digits: str) -> str:
    """Fill the placeholders before the decimal point from right to left."""
    first = next((at for at, token in enumerate(tokens) if token.kind == "digit"), -1)
    commas = [at for at, token in enumerate(tokens) if token == _COMMA]
    is_grouped = any(first < at for at in commas)
    reversed_text: list[str] = []
    filled = 0

    def put(digit: str) -> None:
        nonlocal filled
        if is_grouped and filled and filled % 3 == 0:
            reversed_text.append(",")
        reversed_text.append(digit)
        filled += 1

    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if token.kind == "digit":
            if digits:
                put(digits[-1])
                digits = digits[:-1]
            elif token.text == "0":
                put("0")
            while at == first and digits:
                put(digits[-1])
                digits = digits[:-1]
        elif at not in commas or at < first:
            reversed_text.append(token.text[::-1])
    return "".join(reversed_text)[::-1]


def _decimals_text(tokens: list[_Token], digits: str) -> str:
    """Fill the decimal point and the placeholders after it. Optional trailing zeros are omitted."""
    places = [token.text for token in tokens if token.kind == "digit"]
    needed = max((at + 1 for at, place in enumerate(places) if place == "0"), default=0)
    shown = max(needed, len(digits.rstrip("0")))
    text = ""
    at = 0
    for token in tokens:
        if token.kind != "digit":
            text += token.text
            continue
        if at < shown:
            text += digits[at]
        at += 1
    return text


def _scientific(tokens: list[_Token], value: Decimal) -> str:
    """Format a number in scientific notation."""
    at = next(at for at, token in enumerate(tokens) if token.kind == "exponent")
    mantissa_tokens = tokens[:at]
    point = next((n for n, token in enumerate(mantissa_tokens) if token.text == "."), at)
    step = max(1, sum(token.kind == "digit" for token in mantissa_tokens[:point]))
    places = sum(token.kind == "digit" for token in mantissa_tokens[point:])
    exponent = value.adjusted() if value else 0
    exponent -= exponent % step
    mantissa = _rounded(value.scaleb(-exponent), places)
    if abs(mantissa) >= Decimal(10) ** step:
        exponent += step
        mantissa = _rounded(value.scaleb(-exponent), places)
    sign = ""
    if exponent < 0:
        sign = "-"
    elif tokens[at].text.endswith("+"):
        sign = "+"
    power = _integer_text(tokens[at + 1 :], str(abs(exponent)).lstrip("0"))
    return f"{_decimal_text(mantissa_tokens, mantissa)}E{sign}{power}"


def _fraction_slash(tokens: list[_Token]) -> int:
    """Return the index of the slash in a fraction format, or 0 if the format is not a fraction."""
    for at in range(1, len(tokens) - 1):
        before = tokens[at - 1]
        if tokens[at].text == "/" and before.kind == "digit" and _is_in_denominator(tokens[at + 1]):
            return at
    return 0


class _FractionFormat(NamedTuple):
    """The parts of a format section that displays fractions."""

    prefix: str
    has_whole: bool
    denominator: str
    suffix: str


def _fraction_format(tokens: list[_Token]) -> _FractionFormat:
    slash = _fraction_slash(tokens)
    before = tokens[:slash]
    while before and before[-1].kind == "digit":
        before.pop()
    after = tokens[slash + 1 :]
    denominator = list(takewhile(_is_in_denominator, after))
    return _FractionFormat(
        prefix="".join(token.text for token in before if token.kind == "text").strip(),
        has_whole=any(token.kind == "digit" for token in before),
        denominator="".join(token.text for token in denominator),
        suffix="".join(token.text for token in after[len(denominator) :]),
    )


def _is_in_denominator(token: _Token) -> bool:
    return token.kind == "digit" or token.text.isdigit()


def _fraction(tokens: list[_Token], value: Decimal) -> str:
    """Format a number as a fraction, with a separate whole number if the format contains one."""
    form = _fraction_format(tokens)
    magnitude = Fraction(abs(value))
    whole = int(magnitude) if form.has_whole else 0
    numerator, denominator = _nearest_fraction(magnitude - whole, form.denominator)
    if form.has_whole and numerator == denominator:
        whole += 1
        numerator = 0
    if form.has_whole and numerator == 0:
        text = str(whole)
    elif whole:
        text = f"{whole} {numerator}/{denominator}"
    else:
        text = f"{numerator}/{denominator}"
    sign = _sign(value) if whole or numerator else ""
    return f"{sign}{form.prefix}{text}{form.suffix}"


def _nearest_fraction(value: Fraction, denominator: str) -> tuple[int, int]:
    """Return the numerator and the denominator of the fraction that is nearest to a value.

    The format specifies either the denominator itself or its number of digits.
    """
    if denominator.strip("0").isdigit():
        fixed = int(denominator)
        return int(value * fixed + Fraction(1, 2)), fixed
    nearest = value.limit_denominator(10 ** len(denominator) - 1)
    return nearest.numerator, nearest.denominator


_SIMPLE = re.compile(
    r"""(?P<before>(?:"[^"#0?%.,]*"|\[\$[^]#0-]*\]|\$)?)
    (?:\#(?P<separator>,)\#\#)?0(?:\.(?P<places>0+))?
    (?P<after>%|(?:\\?\ )?(?:"[^"]*")?)""",
    re.X,
)
"""The most common formats, which can be applied without splitting them into tokens."""


@dataclass(frozen=True, slots=True)
class _Simple:
    """A format with a fixed number of decimals, and with literal texts around the number."""

    before: str
    after: str
    places: int
    specification: str
    is_percent: bool

    def shown(self, value: Decimal) -> str:
        """Return the displayed text of a number."""
        if self.is_percent:
            value *= 100
        rounded = _rounded(value, self.places)
        digits = format(rounded.copy_abs(), self.specification)
        text = f"{_sign(rounded)}{self.before}{digits}{self.after}"
        return " ".join(text.split())


@lru_cache(maxsize=1000)
def _simple_format(code: str) -> _Simple | None:
    match = _SIMPLE.fullmatch(code)
    if match is None:
        return None
    places = len(match["places"] or "")
    separator = match["separator"] or ""
    before = match["before"].strip('"').removeprefix("[$").removesuffix("]")
    after = match["after"].replace("\\", "").replace('"', "")
    return _Simple(before, after, places, f"{separator}.{places}f", match["after"] == "%")


@dataclass(frozen=True, slots=True)
class _Moment:
    """A date, together with the total number of seconds that have passed since day zero."""

    day: date | None
    seconds: Decimal


# maximum number of digits in a number of days, which is more than programs support
_LARGEST_DAYS = 12


def _date_text(section: _FormatSection, value: Decimal, starts_1904: bool) -> str | None:
    """Format a date, time or duration with a section for dates."""
    tokens = section.tokens
    is_duration = "elapsed" in section.kinds()
    if not _has_known_dates(section) or (value < 0 and not is_duration):
        return None
    if value.adjusted() > _LARGEST_DAYS:
        return None
    places = next((len(t.text) - 1 for t in tokens if t.kind == "fraction_of_second"), 0)
    seconds = _rounded(abs(value) * 86_400, places)
    moment = _Moment(_day(int(seconds // 86_400), starts_1904), seconds)
    parts = [_sign(value)]
    for at in range(len(tokens)):
        part = _date_part(tokens, at, moment)
        if part is None:
            return None
        parts.append(part)
    return "".join(parts)


def _has_known_dates(section: _FormatSection) -> bool:
    """Return whether dates can be formatted without knowing the language, calendar or system."""
    letters = [token.text for token in section.tokens if token.kind == "date"]
    if any(letter[0] in "gba" for letter in letters):
        return False
    if section.is_readable:
        return True
    is_of_system = section.tokens[0] == _Token("text", "")
    has_names = any(letter[0] in "md" and len(letter) > 2 for letter in letters)
    return not is_of_system and not has_names


def _day(serial: int, starts_1904: bool) -> date | None:
    """Convert a serial number to a date, or return None if it is after the last valid date."""
    start = date(1899, 12, 30)
    if starts_1904:
        start = date(1904, 1, 1)
    elif 0 < serial < 60:
        serial += 1  # spreadsheets treat 1900 as a leap year
    try:
        return start + timedelta(days=serial)
    except OverflowError:
        return None


_UNITS = {"h": 3600, "m": 60, "s": 1}
"""The number of seconds in each unit of a duration."""


def _date_part(tokens: tuple[_Token, ...], at: int, moment: _Moment) -> str | None:
    """Return the text for a date token, or None if the date is out of range."""
    token = tokens[at]
    letter = token.text[:1]
    width = len(token.text)
    seconds = int(moment.seconds)
    if token.kind == "elapsed":
        return f"{seconds // _UNITS[letter]:0{width}}"
    if token.kind == "half":
        is_afternoon = seconds % 86_400 >= 43_200
        return token.text.split("/")[is_afternoon]
    if token.kind == "fraction_of_second":
        return f"{moment.seconds % 1:.{width - 1}f}".removeprefix("0")
    if token.kind != "date":
        return token.text
    if _is_time(tokens, at):
        has_half = any(other.kind == "half" for other in tokens)
        return f"{_time_part(letter, seconds, has_half):0{min(width, 2)}}"
    if moment.day is None:
        return None
    return _day_part(letter, width, moment.day)


def _time_part(letter: str, seconds: int, has_half: bool) -> int:
    """Return the hour, minute or second of a time of day."""
    if letter == "s":
        return seconds % 60
    if letter == "m":
        return seconds // 60 % 60
    hour = seconds // 3600 % 24
    if has_half:
        return hour % 12 or 12
    return hour


def _day_part(letter: str, width: int, day: date) -> str:
    """Return the year, month, day of the month or weekday of a date."""
    if letter == "e":
        return str(day.year)
    if letter == "y":
        return f"{day.year % 100:02}" if width < 3 else f"{day.year:04}"
    if letter == "m":
        number = day.month
        name = _MONTHS[day.month - 1]
    else:
        number = day.day
        name = _WEEKDAYS[day.weekday()]
    if width < 3:
        return f"{number:0{width}}"
    if width == 3:
        return name[:3]
    if width == 5 and letter == "m":
        return name[:1]
    return name


def _is_time(tokens: tuple[_Token, ...], at: int) -> bool:
    """Return whether a letter in a date format represents hours, minutes or seconds.

    The letter m represents minutes if it follows hours or precedes seconds. Otherwise, it
    represents months.
    """
    letter = tokens[at].text[0]
    if letter != "m":
        return letter in "hs"
    before = _first_letter(reversed(tokens[:at]))
    after = _first_letter(tokens[at + 1 :])
    return before == "h" or after == "s"


def _first_letter(tokens: Iterable[_Token]) -> str:
    """Return the first token letter that represents a part of a date or time."""
    return next((token.text[0] for token in tokens if token.kind in _DATE_KINDS), "")
