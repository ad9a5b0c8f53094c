"""Use query transforms as steps of LangChain chains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from ...nodegraph.errors import explain_names
from ...nodegraph.models.templates import Language
from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.strategies.model_prompt import OnError, QueryTransform
from ...retrievers.strategies.strategy_registry import TransformName, make_transform
from ...retrievers.validation import choice
from ..argument_types import LanguageModel
from .callbacks import child_runs


@explain_names
def transform_query(
    llm: LanguageModel,
    transform: TransformName | Literal["route"],
    *,
    output: Literal["texts", "text"] = "texts",
    max_queries: int | None = None,
    include_query: bool | None = None,
    routes: Mapping[str, str] | None = None,
    default: str | None = None,
    prompt: PromptReplacement | None = None,
    language: Language | None = None,
    retries: int | None = None,
    timeout: float | None = None,
    on_error: OnError | None = None,
) -> Runnable[str, Any]:
    """Return a chain step that transforms a query with a language model.

    The step can be combined with other steps by ``|``. The model does not need to support
    structured output. If the model fails, the step returns the original query by default.

    Args:
        llm: A LangChain model, or any other model that ``LLM`` accepts.
        transform: ``"rewrite"``, ``"expand"`` (several phrasings), ``"decompose"`` (simpler
            questions), ``"hyde"`` (a passage that could be the answer) or ``"route"`` (the name of
            one of the ``routes``).
        output: ``"texts"`` for a list of texts, or ``"text"`` for the first text of this list.
        max_queries: The maximum number of queries that the model writes.
        include_query: Whether the result includes the original query. If None, the default of the
            transform is used.
        routes: A mapping from the names of the routes to their descriptions.
        default: The route to use if the model fails. Defaults to the first route.
        prompt: A prompt that replaces the built-in prompt. It may be a LangChain prompt template.
        language: The language of the prompt. Defaults to the language of the query.
        retries: How many times the model is called again if its answer cannot be parsed. Defaults
            to 1.
        timeout: The time limit for each model call in seconds. If None, the timeout of the client
            applies.
        on_error: What to do if the model fails: ``"keep"`` to return the original query, or
            ``"raise"`` to raise the error. Defaults to ``"keep"``.

    Raises:
        TypeError: If ``llm`` or an option has the wrong type.
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
    options = dict(
        max_queries=max_queries,
        include_query=include_query,
        routes=routes,
        default=default,
        prompt=prompt,
        language=language,
        retries=retries,
        timeout=timeout,
        on_error=on_error,
    )
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    made = make_transform(transform, llm, **given)
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
