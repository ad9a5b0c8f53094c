"""Ask a model until its answer can be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..nodegraph import LLM, ModelError
from ..nodegraph.errors import ModelTimeoutError
from ..nodegraph.llm.language import Language
from ..nodegraph.llm.prompts import AGAIN, fill
from .effects import Ask
from .plan import Plan

T = TypeVar("T")
_IN_JSON = {
    "zh": "\n\n（请用 JSON 输出，格式为：{form}）",
    "en": "\n\n(Answer in JSON, in this form: {form})",
}


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
        ModelTimeoutError: If an answer takes too long; the model is not asked again.
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
        except ModelTimeoutError:
            raise  # to ask again would be to wait as long again
        except ModelError:
            if wanted is None:
                raise  # a model that can't be held to a schema may still answer; this one failed
        wanted = None  # the next answer is in its own words
    raise ModelError(
        f"no answer of the language model {llm.name!r} can be used: {why}; it answered "
        f"{answer!r:.300}"
    )


def in_json(form: str, language: Language) -> str:
    """Return what a prompt ends with where the answer is to be JSON of a form.

    Example:
        >>> in_json('{"query": "..."}', "en").strip()
        '(Answer in JSON, in this form: {"query": "..."})'
    """
    return _IN_JSON[language].replace("{form}", form)


def unechoed(answer: str, prompt: str) -> str:
    """Return an answer without the prompt, where a model says that first.

    Example:
        >>> unechoed("Question: Why? Answer: So it is.", "Question: Why? Answer:")
        ' So it is.'
    """
    asked = prompt.strip()
    at = answer.find(asked) if asked else -1
    return answer if at < 0 else answer[at + len(asked) :]
