"""Parse conversations, and rewrite follow-up questions as standalone questions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...nodegraph.models.output.queries import parse_query
from ...nodegraph.models.templates import Language, json_instruction, schema_of
from ..plans.prompting import ask_and_parse
from ..tracing import start_span
from .context import AnswerContext
from .sources import cut

logger = logging.getLogger(__name__)

Pair = tuple[str, str]
"""A question and its answer. Either of them can be empty."""

_FORM = '{"query": "..."}'
"""An example of the JSON answer, for models that support structured output."""

_USER_ROLES = frozenset(("user", "human"))

_ASSISTANT_ROLES = frozenset(("assistant", "ai", "model", "chatbot", "bot"))

_IGNORED_ROLES = frozenset(("system", "developer", "tool", "function"))

_FORMS = 'a list of pairs (question, answer) or of messages {"role": ..., "content": ...}'

_LABELS: Mapping[Language, Pair] = {"zh": ("用户：", "助手："), "en": ("User: ", "Assistant: ")}


async def condense(context: AnswerContext, pairs: Sequence[Pair]) -> str:
    """Let the model rewrite a question so that it can be understood without the conversation.

    If the model fails, or if the prompt has no space for the conversation, the question is returned
    unchanged. Failures and omitted parts of the conversation are added to the notes.
    """
    question = context.question
    engine = context.engine
    instruction = json_instruction(_FORM, context.language) if engine.llm.structured else ""

    def prompt_of(history: str) -> str:
        return context.prompt("condense", history=history) + instruction

    def is_short(selected: Sequence[Pair]) -> bool:
        history = format_history(selected, context.language)
        is_in_window = engine.length(history) <= engine.history_window
        return is_in_window and context.is_short(prompt_of(history))

    with start_span("condense", question=question, pairs=len(pairs)) as span:
        selected, notes = newest_pairs(pairs, is_short)
        context.notes += notes
        if not selected:
            context.notes.append("the prompt has no space for the conversation")
            return question
        prompt = prompt_of(format_history(selected, context.language))
        parse = partial(parse_query, query=question)
        try:
            condensed = await ask_and_parse(
                engine.llm,
                prompt,
                parse,
                context.language,
                schema=schema_of(_FORM),
                timeout=engine.timeout,
            )
        except Exception as error:
            note = f"condensing the question failed: {type(error).__name__}: {error}"
            logger.warning("the question %r is searched unchanged: %s", question[:80], note)
            span.attributes["failed"] = note
            context.notes.append(f"{note}; the question was searched unchanged")
            return question
        span.attributes["condensed"] = condensed
    return condensed


def parse_history(history: Iterable[Any] | None) -> list[Pair]:
    """Convert a conversation to pairs of a question and an answer, oldest first.

    Args:
        history: Pairs ``(question, answer)``, or messages. A message is a mapping with ``role`` and
            ``content``, or an object with these attributes. (LangChain uses ``type`` instead of
            ``role``.) Consecutive messages with the same role are joined. System and tool messages
            are ignored.

    Raises:
        TypeError: If the history is a single string, or an item is invalid.
        ValueError: If a role is unknown.

    Example:
        >>> parse_history([("Who was Lu Xun?", "A writer.")])
        [('Who was Lu Xun?', 'A writer.')]
        >>> parse_history([{"role": "user", "content": "Hi"}, {"role": "system", "content": "?"}])
        [('Hi', '')]
    """
    if isinstance(history, str | Mapping):
        raise TypeError(f"history must be {_FORMS}, got {history!r:.80}")
    pairs: list[Pair] = []
    for item in history or ():
        if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
            if not all(isinstance(text, str) for text in item):
                raise TypeError(f"a pair of a history must have two strings, got {item!r:.80}")
            pairs.append((item[0], item[1]))
            continue
        role, text = _message(item)
        if role in _IGNORED_ROLES:
            continue
        question, answer = pairs[-1] if pairs else ("", "")
        if role in _ASSISTANT_ROLES:
            pairs[-1:] = [(question, f"{answer}\n{text}" if answer else text)]
        elif role not in _USER_ROLES:
            raise ValueError(f"the role of a message must be 'user' or 'assistant', got {role!r}")
        elif pairs and not answer:
            pairs[-1] = (f"{question}\n{text}", "")
        else:
            pairs.append((text, ""))
    return pairs


def _message(item: Any) -> tuple[str, str]:
    """Return the role and the text of a message."""
    get: Callable[[str], Any] = (
        item.get if isinstance(item, Mapping) else lambda name: getattr(item, name, None)
    )
    role = get("role") or get("type")
    content = get("content")
    role = getattr(role, "value", role)
    # The message consists of parts, some of which may not be text.
    if isinstance(content, Sequence) and not isinstance(content, str):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str | None):
        raise TypeError(f"a history must be {_FORMS}, got {item!r:.80}")
    return role.casefold(), content or ""


def newest_pairs(
    pairs: Sequence[Pair], is_short: Callable[[Sequence[Pair]], bool]
) -> tuple[list[Pair], list[str]]:
    """Return as many of the newest pairs as fit, and notes on omitted pairs.

    If the newest pair is too long, its answer is truncated. If even its question is too long, no
    pair is returned.
    """
    selected: list[Pair] = []
    notes = []
    for pair in reversed(pairs):
        if not is_short([pair, *selected]):
            break
        selected.insert(0, pair)
    if pairs and not selected and is_short([(pairs[-1][0], "")]):
        question, answer = pairs[-1]
        selected = [(question, cut(answer, lambda text: is_short([(question, text)])))]
        notes.append("the last answer in the history was cut: it is too long for the prompt")
    if omitted := len(pairs) - len(selected):
        notes.append(
            f"the history's first {omitted} of {len(pairs)} pairs were left out: they are too long "
            "for the prompt"
        )
    return selected, notes


def format_history(pairs: Iterable[Pair], language: Language) -> str:
    """Format a conversation for a prompt."""
    lines: list[str] = []
    for pair in pairs:
        labeled = zip(_LABELS[language], pair, strict=True)
        lines += [f"{label}{text}" for label, text in labeled if text]
    return "\n".join(lines)
