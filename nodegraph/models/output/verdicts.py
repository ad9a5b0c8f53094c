"""Read the numbered yes-or-no decisions in a model's answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from .answer_text import usable_text
from .chinese_script import chinese_pattern
from .json_values import find_json
from .lines import unwrap
from .tables import read_table
from .tags import tagged_value
from .verdict_lines import (
    MAX_LINES,
    VERDICT_WORDS,
    NumberedVerdict,
    listed_verdicts,
    number_of,
    verdicts_of_blocks,
    verdicts_of_lines,
)
from .verdict_values import verdicts_of_value
from .verdict_words import is_bare_verdict, read_verdict

_VERDICT_COLUMN = chinese_pattern(
    rf"\W*(?:{VERDICT_WORDS})\W*(?:\([^()]{{1,20}}\)\W*)?", re.I | re.X
)

_NUMBER_COLUMN = chinese_pattern(
    r"\W*(?:#|no\.?|nr\.?|number|id|statement|claim|编号|序号|陈述)?\W*", re.I
)


def read_verdicts(answer: str, count: int) -> list[tuple[bool, str]]:
    """Return the decisions about ``count`` statements with their reasons, ordered by number.

    Raises:
        ValueError: If the answer is empty or a refusal, or if it does not contain exactly ``count``
            clear decisions.

    Example:
        >>> read_verdicts("yes, no, yes", 3)
        [(True, ''), (False, ''), (True, '')]
        >>> read_verdicts("| # | Verdict |\\n|---|---|\\n| 1 | ✓ |\\n| 2 | ✗ |", 2)
        [(True, ''), (False, '')]
    """
    text = unwrap(usable_text(answer))
    verdicts = _read(text, count)
    clear = [(verdict.yes, verdict.reason) for verdict in verdicts if verdict.yes is not None]
    numbers = [verdict.number for verdict in verdicts if verdict.number is not None]
    if len(clear) != count or len(verdicts) != count:
        raise ValueError(f"the answer must have {count} clear yes or no, got {len(clear)}")
    if numbers and [*sorted(numbers)] not in ([*range(1, count + 1)], [*range(count)]):
        raise ValueError(f"the decisions must have the numbers 1 to {count}, got {numbers}")
    if not numbers:
        return clear
    order = sorted(range(count), key=lambda at: numbers[at])
    return [clear[at] for at in order]


def _read(text: str, count: int) -> list[NumberedVerdict]:
    """Return the decisions in a cleaned answer. Some of them may be unclear."""
    listed = listed_verdicts(text)
    if listed is not None:
        return listed
    value = tagged_value(text)
    if isinstance(value, str):
        text = value
        value = None
    if value is None:
        value = find_json(text)
    if value is not None:
        verdicts = verdicts_of_value(value)
        if verdicts or text.lstrip().startswith(("{", "[{")):
            return verdicts
    plain = unicodedata.normalize("NFKC", text.replace("\ufe0f", "").replace("\u20e3", ""))
    if "\n" not in plain.strip() and _FIRST_MARK.match(plain):
        plain = _INLINE_MARK.sub("\n", plain)
    lines = [line for line in plain.split("\n")[:MAX_LINES] if line.strip()]
    return _of_table(lines) or verdicts_of_blocks(lines, count) or verdicts_of_lines(lines)


_FIRST_MARK = re.compile(r"\s{0,9}[(\[]?1[.):、\]]")

# The space before a number in a line of several decisions: "1) yes 2) no".
_INLINE_MARK = re.compile(r"(?<=\S)[\s,;]{1,3}(?=[(\[]?\d{1,2}[.):、\]]{1,2}\s?[^\W\d])")


def _of_table(lines: Sequence[str]) -> list[NumberedVerdict]:
    """Return the decisions in a column of a table."""
    rows = read_table(lines, _VERDICT_COLUMN)
    if not rows:
        return []
    names = [name for name in rows[0] if _is_verdict_column(rows, name)]
    named = [name for name in names if _VERDICT_COLUMN.fullmatch(name)] or names
    if len(named) != 1:
        return []
    first = next(iter(rows[0]))
    is_numbered = first != named[0] and _NUMBER_COLUMN.fullmatch(first) is not None
    verdicts: list[NumberedVerdict] = []
    for row in rows:
        number = number_of(row.get(first)) if is_numbered else None
        verdicts.append(NumberedVerdict(number, read_verdict(row.get(named[0]))[0], ""))
    return verdicts


def _is_verdict_column(rows: Sequence[Mapping[str, str]], name: str) -> bool:
    """Return whether a column has the name of decisions, or contains nothing else."""
    if _VERDICT_COLUMN.fullmatch(name):
        return any(read_verdict(row.get(name))[0] is not None for row in rows)
    return all(is_bare_verdict(row.get(name, "")) for row in rows)
