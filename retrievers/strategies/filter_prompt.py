"""A prompt with which a model extracts a search query and metadata filters from a question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial

from ...nodegraph.models.templates import Language
from ..prompts.choice_prompts import SELF_QUERY
from .filter_field import MAX_VALUE_LENGTH, MAX_VALUES, Fields, FieldType, FilterField
from .filter_reply import Reply, parse_reply
from .model_prompt import ModelPrompt

_WEEKDAYS: Mapping[Language, Sequence[str]] = {
    "zh": ("星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


_TYPES: Mapping[Language, Mapping[FieldType, str]] = {
    "zh": {"any": "值", "text": "文本", "number": "数字", "date": "日期", "bool": "true 或 false"},
    "en": {
        "any": "values",
        "text": "text",
        "number": "number",
        "date": "date",
        "bool": "true or false",
    },
}


_RANGE: Mapping[Language, str] = {"zh": "从 {} 到 {}", "en": "from {} to {}"}


_COMMA: Mapping[Language, str] = {"zh": "，", "en": ", "}


class FilterPrompt(ModelPrompt):
    """A prompt that extracts a search query and filter conditions from a question.

    The prompt has the placeholders ``{query}`` and ``{fields}``, and optionally ``{today}``. The
    arguments are described in ``ModelPrompt``.
    """

    name = "self query"
    PROMPT = SELF_QUERY

    async def read(self, question: str, fields: Fields, today: date) -> Reply:
        """Extract the search query and the conditions from a question.

        Args:
            question: The question of the user.
            fields: The fields that the model may use in conditions.
            today: The current date, which resolves expressions such as "last year".

        Raises:
            ModelError: If the model fails, or none of its replies can be parsed.
        """
        language = self.prompt_language(question)
        weekday = _WEEKDAYS[language][today.weekday()]
        lines = [_field_line(name, field, language) for name, field in fields.items()]
        return await self.ask(
            question,
            partial(parse_reply, question=question, fields=fields),
            fields="\n".join(lines),
            today=f"{today:%Y-%m-%d} ({weekday})",
        )


def _field_line(name: str, field: FilterField, language: Language) -> str:
    """Format the name, type, range and values of a field as one line of the prompt."""
    facts = [_TYPES[language][field.type]]
    if field.minimum is not None and field.maximum is not None:
        facts.append(_RANGE[language].format(_shown(field.minimum), _shown(field.maximum)))
    if field.description:
        facts.append(" ".join(field.description.split()))
    line = f"- {_quoted(name)} ({_COMMA[language].join(facts)})"
    values = [_quoted(value) for value in field.values[:MAX_VALUES]]
    if not values:
        return line
    if not field.is_complete:
        values.append("…")
    return f"{line}: {', '.join(values)}"


def _quoted(value: object) -> str:
    """Return a value as JSON. Texts are truncated to ``MAX_VALUE_LENGTH`` characters."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(_shown(value), ensure_ascii=False)


def _shown(value: object) -> str:
    text = value.isoformat() if isinstance(value, date) else str(value)
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    return f"{text[: MAX_VALUE_LENGTH - 1]}…"
