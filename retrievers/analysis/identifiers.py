"""Extract terms for versions, codes, dates, amounts, units, and compound names in programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...nodegraph.lazy_names import lazy_pattern
from ...nodegraph.splitters.chunking import UNSPACED
from .numerals import (
    begins_long_number,
    chinese_numbers,
    han_dates,
    has_han_dates,
    long_numbers,
)

_LETTER = rf"[^\W_{UNSPACED}]"

_SEPARATOR = r"(?:[-./:@^]|(?<=[0-9])[,'’](?=[0-9])|(?<=\bo)['’])"

# A word with separators, or with letters and digits.
_NAME = r"(?<!{0})(?:{0}+(?:" + _SEPARATOR + r"{0}+)+|[0-9]+(?![0-9]){0}+|{0}+?[0-9]{0}*)"

_ASCII_NAME = re.compile(_NAME.replace("{0}", "[a-z0-9]"))

_ANY_NAME = lazy_pattern(_NAME.replace("{0}", _LETTER))

# The text after the first digits of an amount, a date or a number in groups. Seven digits may be a
# date or a telephone number.
_MORE = (
    r"[-.,/'’ ()][- ./(]?[0-9]|[-/][a-z]{3}| ?[%‰°€$£¥]| ?[年년] ?[0-9]| ?[a-zωμ]{1,5}(?!\w)"
    r"|(?<![0-9]{3})(?:st|nd|rd|th|er|º)?[.,]? [^\W_]|(?<=[0-9]{7})"
)

# A sign of a name. Every name contains at least one of three signs:
# - the first digits of an amount or a date (only this sign sets the group of the match)
# - a separator between letters or digits
# - a digit next to a letter
# The first character class skips text without names quickly.
_SIGN = (
    rf"[-./:@^,'’0-9](?:(?<=[0-9])(?:(?<![0-9].)([0-9]*)(?![0-9])(?={_MORE})"
    r"|(?={letter})|(?<={letter}.)(?=[^\W_]))"
    r"|(?<={any}[-./:@^])(?={any})|(?<=[0-9][,'’])(?=[0-9])|(?<=\bo['’])(?={any}))"
)

_ASCII_SIGN = re.compile(_SIGN.replace("{letter}", "[a-z]").replace("{any}", "[a-z0-9]"))

_ANY_SIGN = lazy_pattern(
    _SIGN.replace("{letter}", rf"[^\W_0-9{UNSPACED}]").replace("{any}", r"[^\W_]")
)


def _shapes() -> bytes:
    """Return a table that replaces each byte of a text by its role in names."""
    shapes = bytearray(b" " * 256)
    for code in range(256):
        character = chr(code)
        if character in "0123456789":
            shapes[code] = ord("0")
        elif character in "abcdefghijklmnopqrstuvwxyz" or code > 127:
            shapes[code] = ord("a")
        elif character in "-./:@^":
            shapes[code] = ord("-")
    return bytes(shapes)


_SHAPES = _shapes()

_PHRASES = {"ie", "eg", "andor"}  # i.e., e.g. and and/or are not identifiers

# The characters after the digits of an amount with thousands, of a number with a unit, and of the
# first number of a date. Comparing one character is faster than a regular expression.
_AFTER_THOUSANDS = frozenset(",.'’ ")

_BEFORE_UNIT = frozenset("abcdefghijklmnopqrstuvwxyzωμ°%‰€$£¥ .,")

_BEFORE_MONTH = frozenset("-/. ,snrteº")

_AFTER_YEAR = frozenset("年년")

_DIGITS = re.compile("[0-9]+")

_HAN = lazy_pattern("[一-九十百千万亿〇零壹贰叁肆伍陆柒捌玖两拾佰仟年년]")

_WORDS = re.compile(r"[^\W_]+")

_KIND = re.compile(r"[0-9]+|[^\W\d]+")

_THAI = "\u0e00"  # the first of the scripts without spaces

_MAX_PARTS = 4  # the maximum number of groups of letters or digits in a word; hashes have more

_CODE_NUMBER = re.compile(r"(?=.{8})(?=.*[a-z])(?=.*[0-9]-[0-9])[a-z0-9]+(?:-[a-z0-9]+)+")

_NUMBERS = re.compile(r"[0-9]+(?:[-.:/^][0-9]+)+")

_OUTER = re.compile(r"[/:@]")

_THOUSANDS = re.compile(
    r"[0-9](?<![0-9.,/:-].)[0-9]{0,2}(?:(?P<mark>[,.'’ ])[0-9]{3})(?:(?P=mark)[0-9]{3})*(?![0-9])"
    r"(?:(?!(?P=mark))[.,][0-9]+)?(?![.,]?[0-9])"
)

_UNITS = set(
    """% ‰ ° °c °f m km cm dm mm nm μm g kg mg μg t l ml cl dl v kv mv w kw mw gw a ma
s ms ns min h hr hrs hz khz mhz ghz b kb mb gb tb pb kib mib gib tib bit kbit mbit gbit wh kwh mwh
gwh ev kev mev j kj pa hpa kpa mpa bar psi km/h kmh mph kn rpm dpi px pt in ft yd mi ha lb lbs oz
gal mol db cal kcal ohm ω va kva ah mah lm lx cd nm € $ £ ¥ usd eur euro euros gbp jpy chf cny rmb
sek""".split()
)

_UNIT = re.compile(
    r"([0-9](?<![\w.,].)[0-9]*(?:[.,][0-9]+)*) ?(km/h|[a-zωμ]{1,5}|°[cf]?|[%‰€$£¥])(?!\w)"
)

_CURRENCIES = {"eur": "€", "euro": "€", "euros": "€", "usd": "$", "gbp": "£", "jpy": "¥"}

_SYMBOLS = lazy_pattern(
    "[\u00a2-\u00a7\u00a9\u00ac\u00ae\u00b0\u00b1\u00b6\u00d7\u00f7\u20a0-\u20cf\u2190-\u23ff"
    "\u2460-\u24ff\u2500-\u27bf\u2900-\u2bff\U0001f000-\U0001faff]"
)

# Read at import, since the first search may be in an event loop.
_MONTH_NAMES = Path(__file__).with_name("months.txt").read_text("utf-8").splitlines()[1:]


def _numbers_of_months(lines: list[str]) -> dict[str, int]:
    """Return the number of each name of a month. Each line contains the names of one month."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        numbers |= dict.fromkeys(line.split(), number)
    return numbers


_MONTHS = _numbers_of_months(_MONTH_NAMES)

_NUMERIC_DATE = re.compile(
    r"[0-9](?<![0-9].)(?:[0-9]{3}([-/.]) ?[0-9]{1,2}\1 ?[0-9]{1,2}"
    r"|[0-9]?([/.-]) ?[0-9]{1,2}\2 ?[12][0-9]{3}"
    r"|[0-9]([/.-])[0-9]{2}\3[0-9]{2}"
    r"|[0-9]{3} ?[年년] ?[0-9]{1,2} ?[月월] ?[0-9]{1,2} ?[日号號일])(?![0-9])"
)

# The beginning of every date. Most numbers are not dates, and this pattern rejects them quickly.
_MAYBE_DATE = re.compile(
    r"[0-9]+(?:[-/.] ?[0-9]| ?[年년]"
    r"|(?:st|nd|rd|th|er|º)?(?:,? [12][0-9]{3}"
    r"|[.,]?[ /-](?:de |of )?[^\W\d_]+\.?,?[ /-](?:del? )?[0-9]))"
)

_DAY = r"([0-9](?<!\w.)[0-9]?)(?:st|nd|rd|th|er|º)?"

_DAY_FIRST = re.compile(
    _DAY + r"\.?[ /-](?:de |of )?([^\W\d_]+)\.?,?[ /-](?:de |del )?([12][0-9]{3})(?![0-9])"
)

_YEAR_FIRST = re.compile(r"([12][0-9]{3}),?[ /-]([^\W\d_]+)\.?[ /-]([0-9]{1,2})(?![0-9])")

_MONTH_FIRST = re.compile(_DAY + r",? ([12][0-9]{3})(?![0-9])")

_LAST_WORD = re.compile(r"([^\W\d_]+)\.? \Z")


def identifiers(normal: str, is_spaced: bool = False) -> Iterator[tuple[str, str]]:
    """Yield additional search terms for the names in a normalized text.

    Each term is yielded together with the original spelling of the name.

    Compound names are joined. Separators between digits are kept, and other separators are removed.
    Letters and digits within a word are separated. Separators of thousands are removed, numbers are
    joined with their units, and dates are converted to ISO 8601. Emoji and other symbols are terms
    as well.

    Args:
        normal: The normalized text.
        is_spaced: Whether the text is known to contain only scripts that separate words by spaces.

    Example:
        >>> [term for term, name in identifiers("version 3.1.0 of the wi-fi, 5 ghz, 1,500 ml")]
        ['3.1.0', 'wifi', '5ghz', '1500', '1500ml', '1.500']
    """
    if _may_have_signs(normal):
        yield from _names_at_signs(normal)
    if not normal.isascii():
        if not is_spaced:
            yield from _han_names(normal)
        for symbol in _SYMBOLS.findall(normal):
            yield symbol, symbol


def _may_have_signs(normal: str) -> bool:
    """Return whether a text has a digit, or a separator between letters, as every name has.

    This is faster than a search for the signs of names.
    """
    shapes = normal.encode("utf-8", "surrogatepass").translate(_SHAPES)
    if b"0" in shapes or b"a-a" in shapes:
        return True
    return "o'" in normal or "o’" in normal


def _names_at_signs(normal: str) -> Iterator[tuple[str, str]]:
    """Yield the terms for names that contain a digit or a separator."""
    names, signs = _patterns_for(normal)
    match_name = names.match
    end = 0  # the end of the last name
    amount_end = 0  # the end of the last amount with separators of thousands
    has_long = False  # whether the text may contain long numbers, such as telephone numbers
    for sign in signs.finditer(normal):
        start, sign_end = sign.span()
        is_number = bool(sign.lastindex)
        if start >= end and (not is_number or _has_letters(normal, start, sign_end)):
            match = match_name(normal, _start_of_name(normal, end, start))
            if match:
                name = match[0]
                end = match.end()
                for term in _name_terms(name):
                    yield term, name
        if not is_number:
            continue
        digits = sign_end - start
        following = normal[sign_end : sign_end + 1]
        if digits < 4 and start >= amount_end and following in _AFTER_THOUSANDS:
            amount = _THOUSANDS.match(normal, start)
            if amount:
                amount_end = amount.end()
                for number in _spellings(amount[0]):
                    yield number, amount[0]
        if following in _BEFORE_UNIT:
            match = _UNIT.match(normal, start)
            if match and match[2] in _UNITS:
                yield from _with_unit(match)
        if following in _AFTER_YEAR:
            yield from _numeric_date(normal, start)
        elif following in _BEFORE_MONTH and _MAYBE_DATE.match(normal, start):
            yield from _dates(normal, start, digits)
        has_long = has_long or begins_long_number(normal, start)
    if has_long:
        yield from long_numbers(normal)


def _patterns_for(normal: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of names and of their signs for the alphabet of a text."""
    if normal.isascii():
        return _ASCII_NAME, _ASCII_SIGN
    return _ANY_NAME, _ANY_SIGN


def _han_names(normal: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers and dates in Chinese characters."""
    if _HAN.search(normal):
        yield from chinese_numbers(normal)
        if "年" in normal and has_han_dates(normal):
            yield from han_dates(normal)


def _start_of_name(normal: str, begin: int, sign: int) -> int:
    """Return the start of the letters and digits before a separator, but at least ``begin``."""
    start = sign
    while start > begin and normal[start - 1] < _THAI and normal[start - 1].isalnum():
        start -= 1
    return start


def _with_unit(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Yield the different ways to write a number with its unit."""
    symbol = _CURRENCIES.get(match[2], match[2])
    for number in _spellings(match[1]):
        unit = number + symbol
        if match[0] != unit or not unit.isalnum():
            yield unit, match[0]


def _has_letters(normal: str, start: int, end: int) -> bool:
    """Return whether a number is adjacent to letters. A single digit after letters is ignored."""
    before = normal[start - 1 : start]
    following = normal[end : end + 1]
    if following in _AFTER_YEAR:  # most numbers in Chinese texts
        return before < _THAI and before.isalnum()
    if following.isalnum():
        return True
    return start < end - 1 and before.isalnum()


@lru_cache(4096)  # names are often repeated
def _name_terms(name: str) -> tuple[str, ...]:
    terms: dict[str, None] = {}
    if _is_separated(name):
        pieces = [piece for piece in _OUTER.split(name) if _is_separated(piece)]
        compounds = [name, *pieces, *_NUMBERS.findall(name)]
        terms |= dict.fromkeys([_joined(compound) for compound in compounds])
    if _CODE_NUMBER.fullmatch(name):  # AK-12-345X is also written AK12345X
        terms[name.replace("-", "")] = None
    for word in _WORDS.findall(name):
        parts = _KIND.findall(word)
        if 1 < len(parts) <= _MAX_PARTS:
            # A single letter is not a useful term.
            terms |= dict.fromkeys(part for part in parts if len(part) > 1 or part.isdigit())
    return tuple(term for term in terms if term not in _PHRASES)


def _is_separated(compound: str) -> bool:
    return not compound.isalnum()


def _joined(compound: str) -> str:
    """Remove all separators from a name, except for those between digits."""
    joined = re.sub(r"(?<![0-9])\W|\W(?![0-9])", "", compound)
    return joined.replace(",", ".").replace("’", "'")


def _dates(normal: str, start: int, digits: int) -> Iterator[tuple[str, str]]:
    """Yield the dates that begin with a number of ``digits`` digits at position ``start``."""
    yield from _numeric_date(normal, start)
    if digits == 4:
        match = _YEAR_FIRST.match(normal, start)
        if match and (month := _MONTHS.get(match[2])):
            yield _date(match[1], month, int(match[3])), match[0]
    if digits > 2:
        return
    match = _DAY_FIRST.match(normal, start)
    if match and (month := _MONTHS.get(match[2])):
        yield _date(match[3], month, int(match[1])), match[0]
    if match := _MONTH_FIRST.match(normal, start):
        before = _LAST_WORD.search(normal[max(0, start - 15) : start])
        if before and (month := _MONTHS.get(before[1])):
            yield _date(match[2], month, int(match[1])), before[0] + match[0]


def _numeric_date(normal: str, start: int) -> Iterator[tuple[str, str]]:
    """Yield the date that is written in digits at position ``start``."""
    if match := _NUMERIC_DATE.match(normal, start):
        yield from ((date, match[0]) for date in _numeric_dates(match[0]) if date != match[0])


def _number(written: str) -> str:
    """Remove the separators of thousands from a number."""
    match = _THOUSANDS.fullmatch(written)
    if match is None:
        return written.replace(",", ".")
    return written.replace(match["mark"], "").replace(",", ".")


def _spellings(written: str) -> list[str]:
    """Return a number without separators of thousands, and also without ``.00`` at its end."""
    number = _number(written)
    return [*dict.fromkeys([number, _without_cents(number)])]


def _without_cents(number: str) -> str:
    """Remove ``.00`` from the end of an amount."""
    if len(number) > 4:
        return number.removesuffix(".00")
    return number


def _numeric_dates(written: str) -> Iterator[str]:
    """Return the possible readings of a date that is written in digits.

    There are two readings if the month can come first.
    """
    first, second, last = [int(digits) for digits in _DIGITS.findall(written)]
    if first > 31:  # the first number is the year
        if second <= 12:
            yield _date(first, second, last)
        return
    if last < 100:  # 09.03.26
        last += 2000 if last < 50 else 1900
    if second <= 12:
        yield _date(last, second, first)
    if first <= 12 and "/" in written and first != second:
        yield _date(last, first, second)


def _date(year: str | int, month: int, day: int) -> str:
    return f"{year}-{month:02}-{day:02}"


_DECIMAL = re.compile(r"[0-9]\.[0-9]")

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_date(term: str) -> bool:
    """Return whether a term is a date in ISO 8601 format."""
    return _ISO_DATE.fullmatch(term) is not None


def is_common(term: str, name: str) -> bool:
    """Return whether a term is a short decimal number, or was converted from a date in words.

    Such terms often occur in several passages, not all of which are relevant to the name.
    """
    if _DECIMAL.fullmatch(term):
        return True
    return term != name and is_date(term)


_CAMEL = re.compile(r"[A-Z](?<=[a-zA-Z].)(?:(?<=[a-z].)|(?=[a-z]))")

_CHARACTER = rf"[^\W{UNSPACED}]"

_SMALL = rf"[^\WA-Z_{UNSPACED}]"

# A possible compound name: it contains a capital or an underscore after its first character.
_COMPOUND = lazy_pattern(rf"(?<!{_CHARACTER})(?:{_SMALL}+|[A-Z_]{_SMALL}*)[A-Z_]{_CHARACTER}*")

_ASCII_COMPOUND = re.compile(r"\b(?:[a-z0-9]+|[A-Z_][a-z0-9]*)[A-Z_]\w*", re.ASCII)

_SEVERAL_PARTS = re.compile(r"[a-z][A-Z]|[A-Z][A-Z][a-z]|[^\W_]_+[^\W_]")

# The alternatives: a plural of capitals, capitals before a word, a word, a number.
_PART = re.compile(r"[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?(?:(?![A-Z])[^\W\d_])+|\d+")


# McDonald, YouTube, PlayStation: class names in programs, but single words in prose.
_CLASS_NAME = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")

# Frequent in programs, rare in prose.
_SIGNS_OF_CODE = ("{", "}", "=", "()", "::", "->")

_UNDERSCORE = re.compile(r"_(?<=[^\W_]_)[^\W_]")


def _is_code(text: str) -> bool:
    """Return whether a text looks like a program."""
    if any([sign in text for sign in _SIGNS_OF_CODE]):
        return True
    return "_" in text and _UNDERSCORE.search(text) is not None


def with_parts(text: str) -> str:
    """Insert the parts of each compound name after the name.

    Underscores are removed from the name, so that all spellings of a name become the same term.
    Names that consist of two capitalized words, such as ``PlayStation``, are split only in
    programs. The running time is linear in the length of the text.

    Example:
        >>> with_parts("call getUserName or run_target")
        'call getUserName get User Name or runtarget run target'
    """
    is_code = _is_code(text)
    compounds = _ASCII_COMPOUND if text.isascii() else _COMPOUND
    return compounds.sub(lambda match: _with_parts(match[0], is_code), text)


@lru_cache(4096)  # names are often repeated in programs
def _with_parts(name: str, is_code: bool) -> str:
    if not _SEVERAL_PARTS.search(name) or (not is_code and _CLASS_NAME.fullmatch(name)):
        return name
    full = name.replace("_", "")
    expanded = " ".join([full, *(part for part in _parts_of(name) if part != full)])
    # A combining sign may follow the underscore, which separates the words.
    return f"{'_' * (name[0] == '_')}{expanded}{'_' * (name[-1] == '_')}"


def _parts_of(name: str) -> list[str]:
    parts: list[str] = []
    has_underscore = "_" in name
    for word in name.split("_"):
        subwords = _PART.findall(word)
        if len(subwords) > 1:  # the single letter of xAxis and iPhone is not a useful term
            stored = [part for part in subwords if len(part) > 1 or part.isdigit()]
            # As a query, the word is split only at capitals, and single letters are dropped.
            if has_underscore and (stored != subwords or not _CAMEL.search(word)):
                stored.append(word)
            subwords = stored
        if has_underscore or len(subwords) > 1:
            parts += subwords
    return parts
