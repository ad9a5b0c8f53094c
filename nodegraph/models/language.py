"""The languages of prompts: which one a text is in, and templates filled in it."""

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


_RETRY_NOTES: dict[Language, str] = {
    "zh": "\n\n（上一次的回答无法使用：{why}。请严格按照要求的格式重新回答。）",
    "en": "\n\n(The last answer could not be used: {why}. Answer again, in exactly that form.)",
}


def fill_template(template: str, **values: object) -> str:
    """Put values in their places, ``{name}``; other braces stay as they are.

    Example:
        >>> fill_template('Write {"k": 1} for {text}', text="{limit}", limit=3)
        'Write {"k": 1} for {limit}'
    """
    return re.sub(r"\{(\w+)\}", lambda place: str(values.get(place[1], place[0])), template)


def retry_note(language: Language, why: str) -> str:
    """Return what is added to a prompt after an answer that could not be used.

    Example:
        >>> retry_note("en", "there is no question in the answer").strip()[:60]
        '(The last answer could not be used: there is no question in '
    """
    return fill_template(_RETRY_NOTES[language], why=why)
