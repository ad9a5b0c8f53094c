"""Read which of some names a model chose."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...nodegraph.llm.lines import strings
from .answer_lines import KEYS, json_in, read_answer

_ROUTE_KEYS = ("names", "name", "routes", "route", "choices", "choice", "selections", "selection")


def read_routes(answer: str, names: Sequence[str], multiple: bool = False) -> list[str]:
    """Return which of some names a model chose, by name or number, in the order it says them.

    Raises:
        ValueError: If it chose none of them.

    Example:
        >>> read_routes('{"names": ["web"]}', ["docs", "web"]), read_routes("2", ["docs", "web"])
        (['web'], ['web'])
    """
    text = read_answer(answer)
    value = json_in(text)
    if value is not None:
        text = "\n".join(strings(value, (*_ROUTE_KEYS, *KEYS)))
    for part in (text.split("\n")[0], text):
        chosen = _named(part, names) or _numbered(part, names)
        if chosen:
            everywhere = _named(text, names) or _numbered(text, names)
            return everywhere if multiple else chosen[:1]
    raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")


def _named(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that stand in a text as words of their own, as they come."""
    found: dict[str, int] = {}
    taken = text.casefold()
    for name in sorted(names, key=len, reverse=True):  # a name may be part of another
        word = re.escape(name.casefold())
        begin = r"(?<![a-z0-9_])" if name[0].isascii() else ""
        end = r"(?![a-z0-9_])" if name[-1].isascii() else ""
        if match := re.search(begin + word + end, taken):
            found[name] = match.start()
            taken = re.sub(begin + word + end, lambda m: "\0" * len(m[0]), taken)
    return sorted(found, key=found.__getitem__)


def _numbered(text: str, names: Sequence[str]) -> list[str]:
    """Return the names whose numbers a short text says, as they come."""
    numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", text)]
    short = len(re.findall(r"\w+", text)) <= 3 * len(numbers) + 2
    chosen = [names[number - 1] for number in numbers if short and 1 <= number <= len(names)]
    return list(dict.fromkeys(chosen))
