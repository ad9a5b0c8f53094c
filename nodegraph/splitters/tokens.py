"""Estimate how many tokens a language model sees in a text, without a download."""

from __future__ import annotations

import re

from .characters import UNSPACED

_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]{{1,6}}|\d{{1,3}}|[^\w\s]|_+")


def count_tokens(text: str) -> int:
    """Count characters of scripts without spaces, pieces of words, of numbers, and marks.

    An estimate: byte-pair vocabularies differ from it, and from each other, by some 20 %. Where
    the exact number matters, give a splitter the model's own counter as ``length``.

    Example:
        >>> count_tokens("长江有多长？6300 kilometres")
        10
    """
    return len(_TOKEN.findall(text))
