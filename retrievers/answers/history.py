"""Read a conversation in the forms people have it, and shorten it to its newest pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...nodegraph.llm.language import Language
from .cutting import cut

Pair = tuple[str, str]
"""A question and its answer; either may be empty."""

_ASKS = frozenset(("user", "human"))
_ANSWERS = frozenset(("assistant", "ai", "model", "chatbot", "bot"))
_ASIDE = frozenset(("system", "developer", "tool", "function"))
_LABELS: Mapping[Language, Pair] = {"zh": ("用户：", "助手："), "en": ("User: ", "Assistant: ")}


def pairs_of(history: Iterable[Any] | None) -> tuple[list[Pair], list[str]]:
    """Return the pairs of a conversation, the oldest first, and what was passed over.

    Args:
        history: Pairs of question and answer; or messages, ``{"role": ..., "content": ...}`` or
            objects with such (``type`` instead of ``role`` as in LangChain). Messages of one role
            that follow each other are one; those of a system or a tool are passed over.

    Raises:
        TypeError: If it is one text, or has something else in it.
        ValueError: If a role is not known.

    Example:
        >>> pairs_of([("Who was Lu Xun?", "A writer.")])
        ([('Who was Lu Xun?', 'A writer.')], [])
        >>> pairs_of([{"role": "user", "content": "Hi"}, {"role": "system", "content": "?"}])
        ([('Hi', '')], ['1 messages of a system or tool in the history were passed over'])
    """
    if isinstance(history, str | Mapping):
        raise TypeError(
            "history is a list of pairs (question, answer) or of messages "
            f'{{"role": ..., "content": ...}}, not {history!r:.80}'
        )
    pairs: list[Pair] = []
    passed_over = 0
    answered = True  # whether the last pair is complete
    for item in history or ():
        if isinstance(item, Sequence) and not isinstance(item, str) and len(item) == 2:
            if not all(isinstance(text, str) for text in item):
                raise TypeError(f"a pair of a history is two texts, not {item!r:.80}")
            pairs.append((item[0], item[1]))
            answered = True
            continue
        role, text = _message(item)
        if role in _ASIDE:
            passed_over += 1
        elif role in _ANSWERS:
            question, answer = pairs.pop() if pairs else ("", "")
            pairs.append((question, f"{answer}\n{text}" if answer else text))
            answered = True
        elif role not in _ASKS:
            raise ValueError(f"a message of a history is by 'user' or 'assistant', not {role!r}")
        elif answered:
            pairs.append((text, ""))
            answered = False
        else:
            pairs[-1] = (f"{pairs[-1][0]}\n{text}", "")
    notes = [f"{passed_over} messages of a system or tool in the history were passed over"]
    return pairs, notes if passed_over else []


def newest(
    pairs: Sequence[Pair], limit: int, length: Callable[[str], int], language: Language
) -> tuple[list[Pair], list[str]]:
    """Return the newest pairs that are no longer than a limit together, and what was left out.

    Where the newest alone is too long its answer is cut; where its question is, nothing is left.
    """
    kept: list[Pair] = []
    notes = []
    for pair in reversed(pairs):
        if length(told([pair, *kept], language)) > limit:
            break
        kept.insert(0, pair)
    if pairs and not kept:
        question, answer = pairs[-1]

        def fits(text: str) -> bool:
            return length(told([(question, text)], language)) <= limit

        if fits(""):
            kept = [(question, cut(answer, fits))]
            notes.append("the last answer in the history was cut for the budget")
    if gone := len(pairs) - len(kept):
        notes.append(f"the history's first {gone} of {len(pairs)} pairs were left out: budget")
    return kept, notes


def told(pairs: Iterable[Pair], language: Language) -> str:
    """Return a conversation as a prompt has it."""
    labels = _LABELS[language]
    lines = (f"{label}{text}" for pair in pairs for label, text in zip(labels, pair, strict=True))
    return "\n".join(line for line in lines if line not in labels)


def _message(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping):
        role, content = item.get("role", item.get("type")), item.get("content")
    else:
        role = getattr(item, "role", None) or getattr(item, "type", None)
        content = getattr(item, "content", None)
    role = getattr(role, "value", role)
    if isinstance(content, Sequence) and not isinstance(content, str):  # parts, some of them texts
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "\n".join(part for part in parts if isinstance(part, str))
    if not isinstance(role, str) or not isinstance(content, str | None):
        raise TypeError(
            'a history has pairs (question, answer) or messages {"role": ..., "content": ...}, '
            f"not {item!r:.80}"
        )
    return role.casefold(), content or ""
