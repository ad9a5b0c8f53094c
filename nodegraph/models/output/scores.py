"""Read a score from 0 to 100 in a model's answer, such as "85", "8/10", "80 %" or 0.8."""

from __future__ import annotations

import re
import unicodedata

from .chinese_script import chinese_pattern

MAX_SCORE = 100
"""The score of a model that is certain."""

_WORDS = r"""(?:(?:very\ |fairly\ |quite\ |pretty\ )?(?:high|medium|moderate|low|good|certain)|about
    |around|approximately|approx\.?|roughly|[~≈]|[较很极非][高低常]{1,2}|[高中低]|[大约]{1,2}|[为是]|满分10{1,2}分[,，]?)"""

_SCORE = chinese_pattern(
    rf"""[\s*_`"'“(\[<]{{0,9}}(?:{_WORDS}[\s,:(–-]{{0,5}}){{0,2}}
    (?P<number>\d{{1,4}}(?:\.\d{{1,9}})?)(?!\d|\.\d)
    (?:\s?(?P<percent>%|percent\b|per\ cent\b)
      |\s?(?:/|out\ of|of|分之)\s?(?P<scale>\d{{1,4}})(?!\d|\.\d|/)
      |\s?(?:分|points?\b|pts\b)?[\s,(]{{0,3}}
        (?:满分|max(?:imum)?\.?:?|out\ of|/)\s?(?P<max>\d{{1,4}}))?
    (?!\s?[:–—/-]\s?\d|\s?(?:to|至|到|~)\s?\d)""",
    re.I | re.X,
)

_CHINESE_DIGITS = "零一二三四五六七八九十"

# Matches "八成", "九成五" and "百分之九十".
_CHINESE = chinese_pattern(
    r"\W{0,5}(?:[大约]{0,2}(?P<tenths>[一二三四五六七八九十])成(?P<half>[半五]?)"
    r"|百分之(?P<tens>[一二三四五六七八九])?十(?P<ones>[一二三四五六七八九])?|百分之(?P<digits>\d{1,3})"
    r"|(?P<full>百分之?百|百分百|十成))"
)

_SCALES = (5, 10, 20, 50, 100)


def read_score(value: object) -> float | None:
    """Return a score from 0 to 100, or None if the value is not a score.

    Scores with a scale, such as "8/10", are converted. A fraction such as 0.8 or 1.0 is a
    probability. A plain 1 is the score 1, since the prompt asks for whole numbers up to 100.

    Example:
        >>> [read_score(value) for value in (85, 0.97, "8/10", "80 % (clear)", "九成", 1, 250)]
        [85.0, 97.0, 80.0, 80.0, 90.0, 1.0, None]
        >>> [read_score(value) for value in ("3:2", "80-90", "high", None, True)]
        [None, None, None, None, None]
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = unicodedata.normalize("NFKC", str(value))
    chinese = _CHINESE.match(text)
    if chinese is not None:
        return _chinese_score(chinese)
    found = _SCORE.match(text)
    if found is None:
        return None
    number = float(found["number"])
    scale = found["scale"] or found["max"]
    if scale is not None:
        return _scaled(number, int(scale))
    is_fraction = "." in found["number"] and number <= 1
    if is_fraction and found["percent"] is None:
        number *= MAX_SCORE
    return _limited(number)


def _scaled(number: float, scale: int) -> float | None:
    """Convert a number on a scale from 0. Return None if the scale is unusual."""
    if scale not in _SCALES:
        return None
    return _limited(number * MAX_SCORE / scale)


def _limited(number: float) -> float | None:
    """Return a rounded score, or None if the number exceeds the maximum."""
    if number > MAX_SCORE:
        return None
    return round(number, 6)


def _chinese_score(found: re.Match[str]) -> float:
    """Convert Chinese words for a share to a score."""
    if found["full"]:
        return float(MAX_SCORE)
    if found["tenths"]:
        tens = _CHINESE_DIGITS.index(found["tenths"])
        return float(min(MAX_SCORE, 10 * tens + (5 if found["half"] else 0)))
    if found["digits"]:
        return float(min(MAX_SCORE, int(found["digits"])))
    tens = _CHINESE_DIGITS.index(found["tens"] or "一")
    ones = _CHINESE_DIGITS.index(found["ones"] or "零")
    return float(10 * tens + ones)
