"""Parse items that a model extracted from a passage, such as keywords or question-answer pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .answer_text import clean, unique
from .chinese_script import chinese_pattern
from .items import read_items
from .keywords import parse_keywords
from .lines import strip_markup
from .missing_passage import check_passage_given
from .pairs import parse_pairs
from .questions import is_question, split_questions
from .summary import parse_summary

# A question without a question mark.
_REQUEST = chinese_pattern(
    r"(?:explain|describe|list|name|compare|define|discuss|outline|summari[sz]e|state|give)\b"
    r"|(?:请)?(?:解释|描述|说明|列出|比较|简述|概括|谈谈|举例)",
    re.I,
)


def parse_questions(answer: str) -> list[str]:
    """Return the questions in an answer, without duplicates.

    Raises:
        ValueError: If the answer does not contain a question, or states that the passage is
            missing.

    Example:
        >>> parse_questions("1. What is tea?\\n2. **Who drinks it?**")
        ['What is tea?', 'Who drinks it?']
    """
    items = read_items(answer, ("questions", "question", "问题"))
    if not items or not items[0].listed:
        check_passage_given(clean(answer))
    if items is None:
        return []
    questions: list[str] = []
    for item in items:
        asked = split_questions(item.text)
        if item.listed and not asked and _REQUEST.match(item.text):
            asked = [strip_markup(item.text)]
        questions += asked
    questions = questions or [strip_markup(item.text) for item in items if is_question(item.text)]
    if not questions:
        raise ValueError("the answer has no question")
    return unique(questions)


PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    "summary": parse_summary,
    "keywords": parse_keywords,
    "questions": parse_questions,
    "qa": parse_pairs,
}
