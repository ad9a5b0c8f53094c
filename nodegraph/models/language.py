"""Tell Chinese text from English, to choose the prompt's language."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["zh", "en"]

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

_KANA = re.compile("[\u3041-\u30ff]")

_WORD = re.compile(r"[^\W\d_\u3041-\u9fff\uf900-\ufaff]+")


def language_of(text: str) -> Language:
    """Return ``"zh"`` where Chinese characters outweigh words in letters, ``"en"`` otherwise.

    A word in letters weighs as much as two characters. Japanese, known by its kana, is not
    Chinese; it and every other language are ``"en"``, whose prompts ask for the text's language.

    Example:
        >>> language_of("OpenAI 的模型有多大？"), language_of("Who was 鲁迅?")
        ('zh', 'en')
    """
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    if not han or 4 * kana > han:
        return "en"
    return "zh" if han >= 2 * len(_WORD.findall(text)) else "en"
