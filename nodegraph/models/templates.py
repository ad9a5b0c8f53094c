"""Fill prompts with values, and ask again where an answer could not be used."""

from __future__ import annotations

import re

from .language import Language

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
