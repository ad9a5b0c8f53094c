"""Count the calls and tokens of language models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of model calls and tokens that were used for an answer, a search or an evaluation.

    Attributes:
        calls: The number of model calls, including calls that were answered from a cache.
        cached_calls: The number of calls that were answered from a cache. They use no tokens.
        prompt_tokens: The number of tokens in the prompts, or None if it was not reported for all
            calls.
        completion_tokens: The number of tokens in the answers, or None if it was not reported for
            all calls.

    Example:
        >>> Usage(1, 0, 900, 40) + Usage(1, cached_calls=1)
        Usage(calls=2, cached_calls=1, prompt_tokens=900, completion_tokens=40)
        >>> (Usage(1, 0, 900, 40) + Usage(1, 0, None, None)).prompt_tokens is None
        True
    """

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.cached_calls + other.cached_calls,
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
        )

    def to_dict(self) -> dict[str, int | None]:
        """Convert the usage to a dictionary that can be serialized as JSON."""
        return asdict(self)


UNREPORTED = Usage(1, 0, None, None)
"""The usage of a call for which no token counts were reported."""

CACHED = Usage(1, 1)
"""The usage of a call that was answered from a cache."""


def _sum(first: int | None, other: int | None) -> int | None:
    return None if first is None or other is None else first + other


class ModelText(str):
    """The text of a model's answer, together with the token usage of the call.

    Attributes:
        usage: The token usage of the call.

    Example:
        >>> text = ModelText("Tea.", Usage(1, 0, 9, 2))
        >>> text == "Tea.", text.usage.completion_tokens
        (True, 2)
    """

    usage: Usage

    def __new__(cls, text: str, usage: Usage = UNREPORTED) -> ModelText:
        """Create a string with an attribute ``usage``."""
        created = super().__new__(cls, text)
        created.usage = usage
        return created


_PROMPT_KEYS = ("prompt_tokens", "input_tokens", "prompt_eval_count", "prompt_token_count")

_COMPLETION_KEYS = ("completion_tokens", "output_tokens", "eval_count", "candidates_token_count")

# The attributes in which answers of servers, LangChain and LlamaIndex contain token counts.
_PLACES = ("usage", "usage_metadata", "token_usage", "additional_kwargs", "raw", "message")


def usage_of(answer: Any) -> Usage:
    """Return the token usage that is reported in a model's answer.

    Args:
        answer: A text, or a message, completion or chunk of OpenAI, LangChain or LlamaIndex.

    Example:
        >>> usage_of({"text": "Tea.", "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
        Usage(calls=1, cached_calls=0, prompt_tokens=9, completion_tokens=2)
        >>> usage_of("Tea.").prompt_tokens is None
        True
    """
    if isinstance(answer, ModelText):
        return answer.usage
    if answer is None or isinstance(answer, str | list):
        return UNREPORTED
    prompt = _count(answer, _PROMPT_KEYS)
    completion = _count(answer, _COMPLETION_KEYS)
    if prompt is not None or completion is not None:
        return Usage(1, 0, prompt, completion)
    for name in _PLACES:
        value = _field(answer, name)
        if value is not None and not isinstance(value, str):
            usage = usage_of(value)
            if usage != UNREPORTED:
                return usage
    return UNREPORTED


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    try:
        return getattr(value, name, None)
    except Exception:  # The attribute is computed by the model object, which may raise an error.
        return None


def _count(value: Any, names: tuple[str, ...]) -> int | None:
    for name in names:
        count = _field(value, name)
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
    return None
