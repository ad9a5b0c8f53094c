"""Query transforms as steps of a LangChain chain."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from ...retrievers.strategies.model_prompt import QueryTransform
from ...retrievers.strategies.strategy_registry import make_transform
from ...retrievers.validation import choice
from .callbacks import child_runs


def transform_query(
    llm: object, transform: str, *, output: Literal["texts", "text"] = "texts", **options: Any
) -> Runnable[str, Any]:
    """Return a step that transforms a query with a language model, for chains with ``|``.

    The step works with models without structured output. It returns the query itself if the model
    fails.

    Args:
        llm: The model: a LangChain model, or any other model that ``LLM`` takes.
        transform: ``"rewrite"``, ``"expand"`` (several phrasings), ``"decompose"`` (simpler
            questions), ``"hyde"`` (a passage that could be the answer) or ``"route"`` (the name of
            one of the ``routes``).
        output: ``"texts"`` for a list, ``"text"`` for its first text.
        **options: Options of the transform, such as ``max_queries``, ``include_query``, ``routes``,
            ``prompt``, ``language`` and ``on_error``. A prompt may be a LangChain prompt template.

    Raises:
        TypeError: If the model or an option is wrong.
        ValueError: If the transform is unknown, or an option is out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["1. Nile length\\n2. How many km is the Nile?"])
        >>> transform_query(model, "expand").invoke("How long is the Nile?")
        ['How long is the Nile?', 'Nile length', 'How many km is the Nile?']
        >>> model = FakeListChatModel(responses=["Rewritten question: How long is the Nile?"])
        >>> (transform_query(model, "rewrite", output="text") | str.upper).invoke("nile lenght?")
        'HOW LONG IS THE NILE?'
    """
    choice(output, "output", ("texts", "text"))
    made = make_transform(transform, llm, **options)
    call, acall = (partial(function, made, output) for function in (_transform, _atransform))
    return RunnableLambda(call, acall, name=f"transform_query:{transform}")


def _transform(made: QueryTransform, output: str, query: str, config: RunnableConfig) -> Any:
    with child_runs(config):
        texts = made(query)
    return texts[0] if output == "text" else texts


async def _atransform(made: QueryTransform, output: str, query: str, config: RunnableConfig) -> Any:
    with child_runs(config):
        texts = await made.acall(query)
    return texts[0] if output == "text" else texts
