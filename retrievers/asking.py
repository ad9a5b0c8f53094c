"""Ask a model until its answer can be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..nodegraph import LLM, ModelError
from ..nodegraph.language import Language
from ..nodegraph.llm_prompts import AGAIN, fill
from .plan import Ask, Plan

T = TypeVar("T")


def answered(
    llm: LLM,
    prompt: str,
    read: Callable[[str], T],
    language: Language,
    *,
    schema: Mapping[str, Any] | None = None,
    retries: int = 1,
    timeout: float | None = None,
) -> Plan[T]:
    """Ask a model, and return what is read out of its answer.

    Args:
        llm: The model.
        prompt: What it is asked; it describes the form of the answer, also where there is a schema.
        read: Reads an answer, in JSON or as the model writes it; raises ValueError where there is
            nothing to be read.
        language: Of the prompt.
        schema: A JSON schema the model is held to, where it offers that.
        retries: How often it is asked again, in its own words, where its answer can't be read.
        timeout: Seconds to wait for each answer.

    Raises:
        ModelError: If the model fails, or none of its answers can be read.
    """
    why, answer = "", ""
    wanted = schema if llm.structured else None
    tries = 1 + retries
    while tries:
        asked = prompt + (fill(AGAIN[language], why=why) if why else "")
        try:
            answer = yield Ask(llm, asked, wanted, timeout)
            return read(unechoed(answer, asked))
        except ValueError as error:
            why = str(error)
            tries -= 1
        except ModelError:
            if wanted is None:
                raise  # a model that can't be held to a schema may still answer; this one failed
        wanted = None  # the next answer is in its own words
    raise ModelError(
        f"no answer of the language model {llm.name!r} can be used: {why}; it answered "
        f"{answer!r:.300}"
    )


def unechoed(answer: str, prompt: str) -> str:
    """Return an answer without the prompt, where a model says that first.

    Example:
        >>> unechoed("Question: Why? Answer: So it is.", "Question: Why? Answer:")
        ' So it is.'
    """
    asked = prompt.strip()
    at = answer.find(asked) if asked else -1
    return answer if at < 0 else answer[at + len(asked) :]
