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
    for _ in range(1 + retries):
        again = fill(AGAIN[language], why=why) if why else ""
        try:
            answer = yield Ask(llm, prompt + again, wanted, timeout)
            return read(answer)
        except ValueError as error:
            why = str(error)
        except ModelError:
            if wanted is None:
                raise
        wanted = None  # the next answer is in its own words
    why = why or "it failed when it was held to a JSON schema"
    raise ModelError(
        f"no answer of the language model {llm.name!r} can be used: {why}; it answered "
        f"{answer!r:.300}"
    )
