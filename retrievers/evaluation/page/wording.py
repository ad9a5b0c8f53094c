"""The page's own words in each of its languages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Literal, TypeAlias, get_args

from ...validation import choice

PageLanguage = Literal["en", "zh"]
"""A language that the page and the plots speak."""

Attributes: TypeAlias = Mapping[str, str | float]
"""Of an element: texts, and numbers, which are written with a digit behind the point."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Wording:
    """Write the page's own words in one language, as markup that can change to another.

    Args:
        language: ``"en"`` or ``"zh"``.

    Raises:
        ValueError: If the page does not speak the language.
    """

    language: PageLanguage = "en"

    def __post_init__(self) -> None:
        choice(self.language, "language", get_args(PageLanguage))

    def text(self, key: str, **values: str) -> str:
        """Return the words of a key, with values in their places."""
        return words()[self.language][key].format(**values)

    def attributes(self, key: str, **values: str) -> dict[str, str]:
        """Return the attributes by which the page's script rewrites the words."""
        data = {"data-word": key}
        if values:
            data["data-values"] = json.dumps(values, ensure_ascii=False)
        return data

    def span(self, key: str, **values: str) -> str:
        """Return the words as an HTML element."""
        return element("span", markup(self.text(key, **values)), self.attributes(key, **values))


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    """Return the words by language and key."""
    loaded: dict[str, dict[str, str]] = json.loads(asset("words.json"))
    return loaded


@cache
def phrases() -> Mapping[str, Sequence[Sequence[str]]]:
    """Return by language what is made of what evaluations say: patterns, and what to write.

    What ``$1`` stands for is translated in the same way.
    """
    loaded: dict[str, list[list[str]]] = json.loads(asset("phrases.json"))
    return loaded


def translated(text: str, language: str) -> str:
    """Return a note, a reason or evidence in a language, unchanged if there is no pattern.

    Example:
        >>> translated("the set-up failed: OSError", "zh")
        '方案失败：OSError'
    """
    for pattern, wording in phrases().get(language, ()):
        if match := re.fullmatch(pattern, text, re.DOTALL):
            parts = ["", *(translated(part, language) for part in match.groups(""))]
            texts = re.split(r"\$(\d)", wording)  # texts, and between them numbers of parts
            return "".join(parts[int(t)] if n % 2 else t for n, t in enumerate(texts))
    return text


def asset(name: str) -> str:
    """Return a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def stylesheet() -> str:
    """Return the page's style, for other pages that look like it."""
    return asset("page.css")


def markup(text: str) -> str:
    """Return a text as markup: escaped, without what HTML and XML can't hold."""
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def element(name: str, content: str = "", attributes: Attributes | None = None) -> str:
    """Return an element of HTML or SVG, its attributes escaped.

    Args:
        name: Of the element.
        content: Markup.
        attributes: Its attributes.
    """
    pairs = (
        f' {key}="{markup(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")}"'
        for key, value in (attributes or {}).items()
    )
    return f"<{name}{''.join(pairs)}>{content}</{name}>"
