"""Parse the name that a model selected from a list of names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from .answer_text import read_json
from .chinese_script import chinese_pattern
from .json_values import TEXT_KEYS, objects_in, texts_in, value_of
from .tool_names import ToolNames, pattern_of

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
    "selected_source",
    "selected_tool",
    "selection",
    "index",
    "选择",
    "工具",
    "名称",
)


# Boundaries between a clause about a selected name and a clause about other names.
_CLAUSE_END = chinese_pattern(
    r"[.;；。\n，]|,\s|\b(?:but|so|rather than|instead of)\b|而[是非]|不[是选用]", re.I
)

# Words of a clause about names that were not selected.
_REJECTED = chinese_pattern(
    r"\b(?:not?|neither|nor|never|cannot|rather than|instead of|while|although|though)\b|n['’]t\b"
    r"|\b(?:exclud\w*|eliminat\w*|rul(?:e|ed|ing) out|irrelevant|unrelated|unsuitable)\b"
    r"|[不没无]|排除|而非|虽然|尽管|[✗✘❌]",
    re.I,
)

# Words of a clause that states the decision, after clauses that describe the names.
_CHOSEN = chinese_pattern(
    r"\b(?:chosen|choose|selected?|(?:choice|selection|decision)(?!\ (?:of|for|about|on)\b)"
    r"|final\ (?:answer|route|source|tool))\b"
    r"|应选|选择(?!了)|选用|选定|所选|最终(?=[选答路结决为是应：:])|结论",
    re.I,
)

# A choice of the user is not the decision.
_USER_CHOICE = chinese_pattern(
    r"\b(?:users?|customers?|clients?|employees?)(?:['’]s?)?\ (?:\w+\ ){0,2}"
    r"(?:select|cho[so]|choice|decision)|(?:用户|客户|顾客)[^，。]{0,4}(?:选|最终)",
    re.I,
)

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
    tools = ToolNames.of(names)
    only = tools.known(answer.strip())
    if only is not None:
        return only
    text, value = read_json(answer, (*_ROUTE_KEYS, *TEXT_KEYS))
    best = _best_of(value, tools) or _argument_in(value, tools)
    if best is not None:
        return best
    if value is not None:
        text = "\n".join(texts_in(value, (*_ROUTE_KEYS, *TEXT_KEYS)))
    chosen = [tools.known(word) for word in _selected(text, names)]
    chosen = chosen or [*_numbered(text, names)]
    if not chosen or chosen[0] is None:
        raise ValueError(f"the answer names none of {', '.join(repr(name) for name in names)}")
    return chosen[0]


def _selected(text: str, names: Sequence[str]) -> list[str]:
    """Return the names in clauses that state the decision.

    If there is no such clause, return the names that are not rejected, or else all names.
    """
    name = re.compile(rf"(?<![a-z0-9_])(?:{pattern_of(names)})(?![a-z0-9_])", re.I)
    selected: list[str] = []
    preferred: list[str] = []
    for clause in _clauses(text, name):
        words = name.sub("", clause)
        if _REJECTED.search(words):
            continue
        selected += name.findall(clause)
        if _CHOSEN.search(words) and not _USER_CHOICE.search(words):
            preferred += name.findall(clause)
    return preferred or selected or name.findall(text)


_MAX_WORDS = 5  # maximum number of words of a text that selects a name by its number


def _numbered(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that a short text selects by their numbers, such as "the second"."""
    if len(re.findall(r"\w+", text)) > _MAX_WORDS:
        return []
    # Circled numbers such as "②" become digits.
    plain = _ORDINAL.sub(_number, unicodedata.normalize("NFKC", text))
    numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", plain)]
    return [names[number - 1] for number in numbers if 1 <= number <= len(names)]


def _argument_in(value: Any, tools: ToolNames) -> str | None:
    """Return the name in the arguments of a function call."""
    if not isinstance(value, Mapping):
        return None
    for record in objects_in(value):
        values = [value_of(record, (key,)) for key in _ROUTE_KEYS]
        names = [tools.known(name) for name in values]
        known = [name for name in names if name is not None]
        if known:
            return known[0]
    return None


def _best_of(value: Any, tools: ToolNames) -> str | None:
    """Return the name with the highest score, or with true, in an object with a value per name."""
    if not isinstance(value, Mapping) or len(value) < 2:
        return None
    scores = {tools.known(name): score for name, score in value.items()}
    if None in scores or not all(isinstance(score, int | float) for score in scores.values()):
        return None
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] > 0 else None


def _clauses(text: str, name: re.Pattern[str]) -> list[str]:
    """Split a text into clauses. Signs within names do not end a clause."""
    masked = name.sub(lambda found: "x" * len(found[0]), text)
    starts = [0, *(end.start() for end in _CLAUSE_END.finditer(masked)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]
