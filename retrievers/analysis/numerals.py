"""Convert Chinese numerals, Roman numerals and long sequences of digits to standard numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache

_DIGITS = {
    **dict(zip("〇零一二三四五六七八九", "00123456789", strict=True)),
    **dict(zip("壹贰叁肆伍陆柒捌玖两", "1234567892", strict=True)),
}

_TENS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1_000, "仟": 1_000}

_MYRIADS = {"万": 10_000, "亿": 100_000_000}

_NUMERAL = "".join([*_DIGITS, *_TENS, *_MYRIADS])

# What follows a numeral of one character that is a number: 三月, 五条.
_COUNTED = "年月日号条章节款项编篇期届岁页卷级时"

# Digits with 万 or 亿, a numeral, or a numeral of one character that is a number: 第三, 三月. The
# first character class skips other text quickly.
_CHINESE = re.compile(
    rf"[0-9{_NUMERAL}](?:(?<=[0-9])(?<![0-9].)[0-9]*(?:\.[0-9]+)?[{_NUMERAL}]*[万亿千][{_NUMERAL}0-9]*"
    rf"|(?<![0-9])(?:[{_NUMERAL}][{_NUMERAL}0-9]*(?:点[{''.join(_DIGITS)}]+)?"
    rf"|点[{''.join(_DIGITS)}]+|(?<=第.)|(?<=分之.)|(?<![几数每].)(?=[{_COUNTED}])))"
)

_SHARES = {"百分之": "%", "千分之": "‰"}

_ARABIC = re.compile(r"[0-9]+(?:\.[0-9]+)?")

_ROMAN = re.compile(r"[IVX](?<![\w'’-].)[IVX]{0,6}(?![\w'’-])")

_ROMAN_VALUE = re.compile(r"(X{0,3})(IX|IV|V?I{0,3})")

_UNITS = {"IX": 9, "IV": 4}


_CAPITALIZED = re.compile(r"([^\W\d_][\w'’-]+)[ \xa0]\Z")

# Numbers of telephones, cards, books and accounts, which are written in groups.
_GROUPED = re.compile(
    r"[0-9](?:"
    r"(?:(?P<phone>(?<=\+.)[0-9]{0,2}(?:[ ./-]?(?:\(0\) ?)?\(?[0-9]{1,12}\)?(?![0-9])){1,7}"
    r"|(?<=0)(?<![\w.,/-].)[0-9]{1,5}\)?(?:[ /.-][0-9]{2,8}(?![0-9])){1,5})"
    r"|(?<![\w.,/-].)(?:[0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}"
    r"|(?:[0-9]{2}[ -][0-9]{4}|[0-9]{3}(?:[ -][0-9]{4}){2})[ -][0-9]{4}(?:[ -]?[0-9]{1,3})?"
    r"|78[ -]?[0-9][ -][0-9]{1,7}[ -][0-9]{1,7}[ -][0-9]"
    r"|[0-9]*(?:-[0-9]+)+(?:-x)?))(?![\w-])"
    r"|[0-9](?<=\b[a-z]{2}..)(?: [a-z0-9]{4}){2,7}(?: [a-z0-9]{1,4})?(?!\w))"
)

_LEAST_DIGITS = 7

_MOST_DIGITS = 34

_YEARS = re.compile(r"[12][0-9]{3}-[12][0-9]{3}")

_DATE = re.compile(
    r"[12][0-9]{3}-[01]?[0-9]-[0-3]?[0-9]|[0-3]?[0-9][./-][0-3]?[0-9][./-](?:[12][0-9])?[0-9]{2}"
)


def chinese_numbers(normal: str) -> Iterator[tuple[str, str]]:
    """Yield the values of Chinese numerals in a normalized text, each with the numeral.

    Example:
        >>> [number for number, _ in chinese_numbers("第十二条,二〇二四年三月,3000万元,百分之五")]
        ['12', '2024', '3', '30000000', '5%']
    """
    for match in _CHINESE.finditer(normal):
        numeral = match[0]
        start = match.start()
        number = _value_of(numeral)
        if not number:
            continue
        before = normal[max(0, start - 3) : start]
        if before in _SHARES:
            yield f"{number}{_SHARES[before]}", f"{before}{numeral}"
        else:
            yield number, numeral


@lru_cache(4096)  # numerals are often repeated
def _value_of(numeral: str) -> str:
    """Convert a Chinese numeral to digits.

    Return an empty string for a word that is not a number, such as 千万 ("by all means").
    """
    whole, _, decimals = numeral.partition("点")
    if all(character in _DIGITS for character in whole):
        if len(whole) == 2 and not decimals:  # 三五: three to five
            return ""
        value = _digits_of(whole)
    else:
        value = _product_of(whole)
    if value and decimals:
        return f"{value}.{_digits_of(decimals)}"
    return value


def _digits_of(numeral: str) -> str:
    return "".join([_DIGITS[character] for character in numeral])


def _product_of(whole: str) -> str:
    """Return the value of a numeral that contains 十, 百, 千, 万 or 亿."""
    if whole[0] in "百佰千仟万亿":
        return ""
    total = 0.0  # the total of the parts with 万 and 亿
    part = 0.0  # the part below the next 万 or 亿
    number: float | None = None
    last = 1
    at = 0
    while at < len(whole):
        character = whole[at]
        match = _ARABIC.match(whole, at)
        if match:
            number = float(match[0])
            at = match.end()
            continue
        if character in _DIGITS:
            number = float(_DIGITS[character])
            if character in "零〇":
                last = 1
        elif character in _TENS:
            last = _TENS[character]
            part += (1 if number is None else number) * last
            number = None
        else:
            last = _MYRIADS[character]
            part += number or 0
            if last > 10_000:  # 亿 also counts the 万 before it
                total = (total + part) * last
            else:
                total += part * last
            part = 0
            number = None
        at += 1
    if number is not None:  # 三百二 is 320
        is_short = last >= 100 and whole[-1] in _DIGITS
        part += number * (last // 10 if is_short else 1)
    value = total + part
    if value == int(value):
        return str(int(value))
    return str(value)


# Begins with a digit, because digits are rarer than capitals.
_APART = re.compile(r"[0-9](?<=[A-Z] .)[0-9]{1,5}(?![\w-]|[.,][0-9])")

_CAPITALS = re.compile(r"(?<![\w'’.-])(?:[A-Z]{2,4}|[B-HJ-Z]) \Z")

_MOST_CAPITALS = 5  # the maximum length of the capitals, including the space


def codes_apart(text: str) -> Iterator[tuple[str, str]]:
    """Yield codes in which a space separates capital letters from digits, each joined to one word.

    Example:
        >>> list(codes_apart("Error E 105"))
        [('e105', 'e 105')]
    """
    for match in _APART.finditer(text):
        start = match.start()
        capitals = _CAPITALS.search(text, max(0, start - _MOST_CAPITALS), start)
        if capitals:
            letters = capitals[0].lower()
            yield f"{letters[:-1]}{match[0]}", f"{letters}{match[0]}"


_HAN_DATE = re.compile(
    r"[0-9元](?<![0-9].)[0-9]{0,3} ?年(?: ?([0-9]{1,2}) ?月 ?([0-9]{1,2}) ?[日号號](?![0-9]))?"
)

_WRITTEN_YEAR = re.compile(f"[一二〇零][{_NUMERAL}]{{1,3}}年")

has_han_dates = re.compile(f"[一二令平昭大民](?:和|成|正|国|[{_NUMERAL}]{{1,3}}年)").search
"""Check whether a text may contain dates that ``han_dates`` finds."""

_FIRST_YEARS = {"令和": 2019, "平成": 1989, "昭和": 1926, "大正": 1912, "民国": 1912}


def han_dates(normal: str) -> Iterator[tuple[str, str]]:
    """Yield dates in ISO 8601 format whose year is written in numerals or belongs to an era.

    The years of eras are also yielded.

    Example:
        >>> [date for date, _ in han_dates("二〇二六年三月九日,令和8年3月9日")]
        ['2026-03-09', '2026', '2026-03-09']
    """
    if _WRITTEN_YEAR.search(normal):
        normal = _CHINESE.sub(lambda match: _value_of(match[0]) or match[0], normal)
    for match in _HAN_DATE.finditer(normal):
        start = match.start()
        era = normal[max(0, start - 2) : start]
        written = _ARABIC.match(match[0])
        year = int(written[0]) if written else 1
        if era in _FIRST_YEARS:
            year += _FIRST_YEARS[era] - 1
            yield str(year), f"{era}{match[0]}"
        if match[1] and year > 999:
            yield f"{year}-{int(match[1]):02}-{int(match[2]):02}", match[0]


def has_roman_numbers(text: str) -> bool:
    """Return whether a text may contain Roman numerals. For most texts, the result is False."""
    if "I" not in text and "V" not in text and "X" not in text:  # one letter is found fastest
        return False
    return (
        " II" in text
        or " V" in text
        or " X" in text
        or " IV" in text
        or " IX" in text
        or "\xa0" in text
    )


def roman_numbers(text: str) -> Iterator[tuple[str, str]]:
    """Yield the values of Roman numerals from 2 to 39 that follow a capitalized word.

    Example:
        >>> list(roman_numbers("World War II, Chapter IV, and I"))
        [('2', 'ii'), ('4', 'iv')]
    """
    for match in _ROMAN.finditer(text):
        value = _ROMAN_VALUE.fullmatch(match[0])
        if value is None or match[0] == "I":
            continue
        before = _CAPITALIZED.search(text, max(0, match.start() - 30), match.start())
        if before is None or not before[1][0].isupper():
            continue
        tens, units = value.groups()
        number = 10 * len(tens) + _UNITS.get(units, 5 * units.count("V") + units.count("I"))
        yield str(number), match[0].lower()


_LONG = re.compile("[0-9](?<![0-9].)[0-9 ,./()-]{5,}[0-9]")

# Frequent in texts: the end of "March 9, 2026", and years.
_NOT_LONG = re.compile(r"[0-9]{1,2}, [12][0-9]{3}|[12][0-9]{3}-[12][0-9]{3}")

_AROUND = 20  # the number of characters around digits that may belong to a number

_OTHER = re.compile(
    r"[0-9](?<![\w.,/'’-].)(?:"
    r"(?P<date>(?<=[12])[09][0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
    r"(?!\w|[.,/-][0-9]))"
    r"|(?P<whole>[0-9]{3,}(?=[.,]00(?![0-9]|[.,][0-9])))"
    r"|[0-9]?(?:,[0-9]{2})+,[0-9]{3}(?![0-9,]))"
)


def begins_long_number(normal: str, start: int) -> bool:
    """Return whether the digits at ``start`` can begin a number that ``long_numbers`` finds."""
    run = _LONG.match(normal, start)
    return run is not None and _NOT_LONG.fullmatch(run[0]) is None


def long_numbers(normal: str) -> Iterator[tuple[str, str]]:
    """Yield other spellings of numbers with at least seven characters.

    Compact dates are converted to ISO 8601, zero cents and the separators of lakhs are removed from
    amounts, and numbers in groups are joined.

    Example:
        >>> [number for number, _ in long_numbers("on 20260309 for 1106500.00 or 11,06,500")]
        ['2026-03-09', '1106500', '1106500']
    """
    end = 0
    for run in _LONG.finditer(normal):
        start = max(end, run.start() - _AROUND)
        end = run.end()
        if _NOT_LONG.fullmatch(run[0]):
            continue
        yield from grouped_numbers(normal, start, end)
        for match in _OTHER.finditer(normal, start, end + _AROUND):
            number = match[0]
            if match.start() >= end:
                break
            if match["date"]:
                yield f"{number[:4]}-{number[4:6]}-{number[6:]}", number
            elif match["whole"]:
                yield number, f"{number}.00"
            else:
                yield number.replace(",", ""), number


def grouped_numbers(
    normal: str, begin: int = 0, end: int = sys.maxsize
) -> Iterator[tuple[str, str]]:
    """Yield numbers with at least seven digits that are written in groups, without their
    separators.

    Args:
        normal: The normalized text.
        begin: The first position at which a number can start.
        end: The position before which a number must start.

    Example:
        >>> list(grouped_numbers("+49 30 1234567"))
        [('49301234567', '49 30 1234567'), ('0301234567', '49 30 1234567')]
        >>> [number for number, _ in grouped_numbers("de89 3704 0044 0532 0130 00, 0-306-40615-x")]
        ['de89370400440532013000', '030640615x']
    """
    for match in _GROUPED.finditer(normal, begin, min(end + _AROUND, len(normal))):
        if match.start() >= end:
            break
        written = match[0]
        start = match.start()
        before = normal[start - 1 : start]
        if before.isalpha() and written[:1].isdigit():
            written = normal[start - 2 : start] + written  # include the letters of a country code
        plain = re.sub(r"[^a-z0-9]", "", written.replace("(0)", ""))
        if not _LEAST_DIGITS <= len(plain) <= _MOST_DIGITS or plain == written:
            continue
        if _YEARS.fullmatch(written) or _DATE.fullmatch(written):
            continue
        yield plain, written
        if not match["phone"]:
            continue
        if plain.startswith("00"):
            yield plain[2:], written
        elif plain[0] != "0" and not written[:4].isdigit():
            country = re.match("[0-9]+", written)
            assert country is not None
            yield f"0{plain[country.end() :]}", written
