"""Parse the name that a model selected from a list of names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from .answer_text import read_text
from .json_values import TEXT_KEYS

_ROUTE_KEYS = (
    "names",
    "name",
    "routes",
    "route",
    "choice",
    "tool",
    "tool_name",
    "source",
    "datasource",
    "destination",
    "selected",
    "selection",
    "index",
    "选择",
    "工具",
    "名称",
)


# Words before a name that was not selected.
_NOT = r"(?:\b(?:not|rather than|instead of)\s(?:the\s)?|不是|而非|不选)[\"'`“*]{0,3}"

_ORDINALS = (("first", "一"), ("second", "二"), ("third", "三"), ("fourth", "四"), ("fifth", "五"))

_ORDINAL = re.compile(r"\b(?:first|second|third|fourth|fifth)\b|第([一二三四五])", re.I)


def _number(found: re.Match[str]) -> str:
    """Return the number of an ordinal word."""
    word = found[1] or found[0].casefold()
    return next(f" {at} " for at, words in enumerate(_ORDINALS, 1) if word in words)


def parse_route(answer: str, names: Sequence[str]) -> str:
    """Return the first name that a model selected, by the name itself or by its number.

    Raises:
        ValueError: If the model selected none of the names.

    Example:
        >>> parse_route('{"name": "web"}', ["docs", "web"]), parse_route("2", ["docs", "web"])
        ('web', 'web')
    """
    text = read_text(answer, (*_ROUTE_KEYS, *TEXT_KEYS))
    by_name = {name.casefold(): name for name in names}
    longest_first = "|".join(re.escape(name) for name in sorted(by_name, key=len, reverse=True))
    found = re.findall(rf"(?<![a-z0-9_])(?:{longest_first})(?![a-z0-9_])", text.casefold())
    rejected = re.findall(rf"{_NOT}({longest_first})(?![a-z0-9_])", text.casefold())
    found = [name for name in found if name not in rejected] or found
    chosen = [by_name[name] for name in found]
    if not chosen and len(re.findall(r"\w+", text)) <= 5:
        # Circled numbers such as "②" become digits.
        plain = _ORDINAL.sub(_number, unicodedata.normalize("NFKC", text))
        numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", plain)]
        chosen = [names[number - 1] for number in numbers if 1 <= number <= len(names)]
    if not chosen:
        raise ValueError(f"the answer names none of {', '.join(repr(name) for name in names)}")
    return chosen[0]
