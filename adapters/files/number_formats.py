"""Show numbers as spreadsheet programs show them, according to the format code of a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

GENERAL = "General"
"""The format code of cells without a number format."""

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
"""The format codes that files name by number only (ECMA-376, part 1, 18.8.30)."""

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

_ENGLISH = 9  # the primary language of a locale id

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

_LARGEST_PLAIN = Decimal(10) ** 21

_SMALLEST_PLAIN = 9  # digits after the decimal point before the first digit that is not 0


def is_ambiguous_date(text: str) -> bool:
    """Return whether a date may be read with the day or with the month first.

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
    """A section of a format code: its tokens, its condition, and whether it shows a date."""

    tokens: tuple[_Token, ...]
    condition: str
    is_date: bool
    is_readable: bool

    @property
    def is_text(self) -> bool:
        """Whether the section shows texts."""
        return _Token("mark", "@") in self.tokens

    def kinds(self) -> list[str]:
        """Return the kinds of the tokens."""
        return [token.kind for token in self.tokens]


@lru_cache(maxsize=1000)
def _sections(code: str) -> tuple[_FormatSection, ...]:
    """Return the sections of a format code."""
    sections: list[_FormatSection] = []
    tokens: list[_Token] = []
    condition = ""
    is_readable = True
    for match in _TOKEN.finditer(f"{code};"):
        kind = match.lastgroup or ""
        text = match[0]
        if kind == "mark" and text == ";":
            is_date = any(token.kind in ("date", "elapsed") for token in tokens)
            sections.append(_FormatSection(tuple(tokens), condition, is_date, is_readable))
            tokens = []
            condition = ""
            is_readable = True
        elif kind in ("currency", "locale"):
            tokens.append(_Token("text", match["currency"]))
            is_readable = is_readable and _is_english(match["locale"] or "")
        elif kind == "text":
            tokens.append(
                _Token("text", text[1:].removesuffix('"') if text[0] == '"' else text[1:])
            )
        elif kind == "condition":
            condition = match["condition"]
        elif kind == "elapsed":
            tokens.append(_Token(kind, match["elapsed"].lower()))
        elif kind == "date":
            tokens.append(_Token(kind, text.lower()))
        elif kind not in ("skipped", "ignored"):
            tokens.append(_Token("text" if kind == "other" else kind, text))
    return tuple(sections)


def _is_english(locale: str) -> bool:
    """Return whether names of months are known in a locale, given as a hexadecimal id."""
    if locale.upper() in _SYSTEM_LOCALES:
        return False
    if re.fullmatch("[0-9a-fA-F]+", locale):
        return int(locale, 16) & 0xFF in (0, _ENGLISH)
    return not locale or locale.lower().startswith("en")


def is_date_format(code: str) -> bool:
    """Return whether a format code shows dates, times or durations.

    Example:
        >>> is_date_format("d. mmm yyyy"), is_date_format('0 "days"')
        (True, False)
    """
    return _sections(code)[0].is_date


@lru_cache(maxsize=20_000)
def shown_number(number: str, code: str, *, starts_1904: bool = False) -> str | None:
    """Return a number as a program shows it.

    Args:
        number: The number in decimal notation.
        code: The format code of its cell.
        starts_1904: Whether the days of the workbook are counted from 1904.

    Returns:
        The displayed text, or None if the format is unknown, depends on the settings of the
        system, or leaves the order of day and month open.

    Example:
        >>> shown_number("0.075", "0.0%"), shown_number("1234.5", "$#,##0.00")
        ('7.5%', '$1,234.50')
        >>> shown_number("1.2534722", "[h]:mm"), shown_number("-5", "0;(0)")
        ('30:05', '(5)')
    """
    try:
        value = Decimal(number.strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or abs(value.adjusted()) > 400:
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
        return None if text is None or is_ambiguous_date(text) else " ".join(text.split())
    magnitude = abs(value) if has_sign else value
    return " ".join(_number_text(section, magnitude).split())


def shown_text(text: str, code: str) -> str:
    """Return a text as a program shows it in a cell with a number format.

    Example:
        >>> shown_text("green", '"Tea: "@'), shown_text("secret", ";;;")
        ('Tea: green', '')
    """
    if "@" not in code and code.count(";") < 3:
        return text
    sections = _sections(code)
    if len(sections) < 4 and not sections[-1].is_text:
        return text
    section = sections[3] if len(sections) > 3 else sections[-1]
    parts = [text if token.text == "@" else token.text for token in section.tokens]
    return "".join(parts)


def general(value: Decimal | float) -> str:
    """Return a number without a format: integers in full, others with 15 digits.

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
    if value == value.to_integral_value() and abs(value) < _LARGEST_PLAIN:
        return str(int(value))
    rounded = _DIGITS_OF_PROGRAMS.plus(value).normalize(_DIGITS_OF_PROGRAMS)
    return f"{rounded:f}" if -_SMALLEST_PLAIN <= rounded.adjusted() < 21 else f"{rounded:E}"


def _section_of(
    sections: Sequence[_FormatSection], value: Decimal
) -> tuple[_FormatSection | None, bool]:
    """Return the section of a value, and whether the section has its own sign for it."""
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
    """Return a number by a section for numbers."""
    kinds = section.kinds()
    if "general" in kinds or section.is_text:
        texts = {"general": general(value), "mark": general(value)}
        return "".join(texts.get(token.kind, token.text) for token in section.tokens)
    if "digit" not in kinds:
        literal = "".join(token.text for token in section.tokens)
        return f"-{literal}" if value < 0 and literal else literal
    tokens = list(section.tokens)
    marks = [token.text for token in tokens if token.kind == "mark"]
    if "exponent" in kinds:
        return _scientific(tokens, value)
    if "/" in marks and "%" not in marks and _fraction_slash(tokens):
        return _fraction(tokens, value)
    value *= 100 ** marks.count("%")
    last = max(at for at, token in enumerate(tokens) if token.kind == "digit")
    while last + 1 < len(tokens) and tokens[last + 1] == _Token("mark", ","):
        value /= 1000
        del tokens[last + 1]
    return _decimal_text(tokens, value)


def _decimal_text(tokens: list[_Token], value: Decimal) -> str:
    """Fill the places of a format with the digits of a number."""
    point = next((at for at, token in enumerate(tokens) if token.text == "."), len(tokens))
    before = tokens[:point]
    after = tokens[point:]
    places = sum(token.kind == "digit" for token in after)
    rounded = _rounded(value, places)
    whole, _, decimals = f"{abs(rounded):f}".partition(".")
    text = _integer_text(before, whole.lstrip("0")) + _decimals_text(after, decimals)
    return f"-{text}" if rounded < 0 else text


def _rounded(value: Decimal, places: int) -> Decimal:
    """Round a number half up, from the 15 digits that programs keep."""
    kept = value if value == value.to_integral_value() else _DIGITS_OF_PROGRAMS.plus(value)
    return kept.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=500))


def _integer_text(tokens: list[_Token], digits: str) -> str:
    """Fill the places before the decimal point, from the right."""
    firsts = [at for at, token in enumerate(tokens) if token.kind == "digit"]
    first = firsts[0] if firsts else -1
    commas = [at for at, token in enumerate(tokens) if token == _Token("mark", ",")]
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
    """Fill the places from the decimal point on, without zeros at the end of optional places."""
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
    """Return a number in scientific notation."""
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
    """Return the index of the slash between two numbers, or 0 if there is no fraction."""
    for at, token in enumerate(tokens):
        is_between = 0 < at < len(tokens) - 1
        if token.text == "/" and is_between and tokens[at - 1].kind == "digit":
            return at
    return 0


def _fraction(tokens: list[_Token], value: Decimal) -> str:
    """Return a number as a fraction, with a whole number before it if the format has one."""
    slash = _fraction_slash(tokens)
    start = slash
    while start and tokens[start - 1].kind == "digit":
        start -= 1
    end = slash + 1
    while end < len(tokens) and (tokens[end].kind == "digit" or tokens[end].text.isdigit()):
        end += 1
    denominator = "".join(token.text for token in tokens[slash + 1 : end])
    has_whole = any(token.kind == "digit" for token in tokens[:start])
    magnitude = Fraction(abs(value))
    whole = int(magnitude) if has_whole else 0
    numerator, fixed = _nearest_fraction(magnitude - whole, denominator)
    if has_whole and numerator == fixed:
        whole += 1
        numerator = 0
    prefix = "".join(token.text for token in tokens[:start] if token.kind == "text").strip()
    suffix = "".join(token.text for token in tokens[end:])
    parts = [str(whole)] if has_whole and (whole or not numerator) else []
    if numerator or not has_whole:
        parts.append(f"{numerator}/{fixed}")
    sign = "-" if value < 0 and (whole or numerator) else ""
    return f"{sign}{prefix}{' '.join(parts)}{suffix}"


def _nearest_fraction(value: Fraction, denominator: str) -> tuple[int, int]:
    """Return the numerator and the denominator: a fixed one, or one with as many digits."""
    if denominator.strip("0").isdigit():
        fixed = int(denominator)
        return int(value * fixed + Fraction(1, 2)), fixed
    nearest = value.limit_denominator(10 ** len(denominator) - 1)
    return nearest.numerator, nearest.denominator


_SIMPLE = re.compile(
    r"""(?P<before>(?:"[^"#0?%.,]*"|\[\$[^]#0-]*\]|\$)?)
    (?P<grouped>\#,\#\#)?0(?:\.(?P<places>0+))?
    (?P<after>%|(?:\\?\ )?(?:"[^"]*")?)""",
    re.X,
)
"""The most frequent formats, which need no tokens."""


@dataclass(frozen=True, slots=True)
class _Simple:
    """A format with a fixed number of decimals, and texts around the number."""

    before: str
    after: str
    places: int
    specification: str
    is_percent: bool

    def shown(self, value: Decimal) -> str:
        """Return the displayed number."""
        rounded = _rounded(value * 100 if self.is_percent else value, self.places)
        sign = "-" if rounded < 0 else ""
        text = f"{sign}{self.before}{format(abs(rounded), self.specification)}{self.after}"
        return " ".join(text.split())


@lru_cache(maxsize=1000)
def _simple_format(code: str) -> _Simple | None:
    match = _SIMPLE.fullmatch(code)
    if match is None:
        return None
    places = len(match["places"] or "")
    separator = "," if match["grouped"] else ""
    before = match["before"].strip('"').removeprefix("[$").removesuffix("]")
    after = match["after"].replace("\\", "").replace('"', "")
    return _Simple(before, after, places, f"{separator}.{places}f", match["after"] == "%")


@dataclass(frozen=True, slots=True)
class _Moment:
    """A date and a time, with the seconds since the start of the count."""

    day: date | None
    seconds: Decimal


def _date_text(section: _FormatSection, value: Decimal, starts_1904: bool) -> str | None:
    """Return a date, a time or a duration by a section for dates."""
    tokens = section.tokens
    letters = [token.text for token in tokens if token.kind == "date"]
    has_names = any(letters_[0] in "md" and len(letters_) > 2 for letters_ in letters)
    if any(letters_[0] in "gba" for letters_ in letters):
        return None
    if not section.is_readable and (has_names or _names_system(section)):
        return None
    is_duration = "elapsed" in section.kinds()
    if value < 0 and not is_duration:
        return None
    places = next((len(t.text) - 1 for t in tokens if t.kind == "fraction_of_second"), 0)
    seconds = _rounded(abs(value) * 86_400, places)
    moment = _Moment(_day(int(seconds // 86_400), starts_1904), seconds)
    parts: list[str] = []
    for at, token in enumerate(tokens):
        part = _date_part(tokens, at, token, moment)
        if part is None:
            return None
        parts.append(part)
    return f"{'-' if value < 0 else ''}{''.join(parts)}"


def _names_system(section: _FormatSection) -> bool:
    """Return whether the settings of the system replace the format."""
    return not section.is_readable and section.tokens[0] == _Token("text", "")


def _day(serial: int, starts_1904: bool) -> date | None:
    """Return the date of a serial number, or None if the calendar of dates ends before it."""
    start = date(1904, 1, 1) if starts_1904 else date(1899, 12, 30)
    is_before_leap_day = not starts_1904 and 0 < serial < 60  # 1900 counts as a leap year
    try:
        return start + timedelta(days=serial + is_before_leap_day)
    except OverflowError:
        return None


def _date_part(tokens: tuple[_Token, ...], at: int, token: _Token, moment: _Moment) -> str | None:
    """Return the text of a token of a date, or None if the date is out of range."""
    seconds = int(moment.seconds)
    width = len(token.text)
    if token.kind == "elapsed":
        units = {"h": 3600, "m": 60, "s": 1}
        return f"{seconds // units[token.text[0]]:0{width}}"
    if token.kind == "half":
        is_morning = seconds % 86_400 < 43_200
        names = token.text.split("/")
        return names[0] if is_morning else names[1]
    if token.kind == "fraction_of_second":
        places = width - 1
        return f".{moment.seconds % 1:.{places}f}".replace(".0.", ".", 1)
    if token.kind != "date":
        return token.text
    letter = token.text[0]
    if letter == "h":
        hour = seconds // 3600 % 24
        if any(other.kind == "half" for other in tokens):
            hour = hour % 12 or 12
        return f"{hour:0{min(width, 2)}}"
    if letter == "s":
        return f"{seconds % 60:0{min(width, 2)}}"
    if letter == "m" and _is_minute(tokens, at):
        return f"{seconds // 60 % 60:0{min(width, 2)}}"
    return None if moment.day is None else _day_part(letter, width, moment.day)


def _day_part(letter: str, width: int, day: date) -> str:
    """Return the year, the month, the day of the month or the weekday of a date."""
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
    return name[:1] if width == 5 and letter == "m" else name


def _is_minute(tokens: tuple[_Token, ...], at: int) -> bool:
    """Return whether an m stands for minutes: after hours, or before seconds."""
    dates = [n for n, token in enumerate(tokens) if token.kind in ("date", "elapsed")]
    place = dates.index(at)
    before = tokens[dates[place - 1]].text[0] if place else ""
    after = tokens[dates[place + 1]].text[0] if place + 1 < len(dates) else ""
    return before == "h" or after == "s"
