"""Let a nodekin query transform be a LlamaIndex one."""

from __future__ import annotations

from typing import Any, get_args

from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import QueryBundle, QueryType

from ...retrievers.plans.plan import Plan, arun, run
from ...retrievers.strategies.query_transform import QueryTransform
from ...retrievers.strategies.strategy_registry import TransformName, make_transform
from .instrumentation import report_spans
from .prompt_templates import changed_prompts, llm_or_settings, to_templates

dispatcher = get_dispatcher(__name__)


class NodeGraphQueryTransform(BaseQueryTransform):
    """Rewrite or expand queries in LlamaIndex, in ``TransformQueryEngine`` and elsewhere.

    A rewritten query replaces ``query_str``. Passages (HyDE) and other phrasings leave it as it
    is, for the answer, and become ``custom_embedding_strs``: vector retrievers, LlamaIndex's and a
    ``NodeGraphRetriever`` with a ``Retriever`` of embeddings, search for their mean. To let other
    retrievers search for them, use nodekin's ``HyDERetriever`` or ``MultiQueryRetriever`` in a
    ``NodeGraphRetriever``.

    The input bundle is not changed. If the model fails the query stays as it is, with a warning in
    the log, or an error is raised with ``on_error="raise"``. ``TransformQueryEngine`` calls any
    transform synchronously, also on an event loop; there await ``arun``, or use the strategy of a
    ``NodeGraphQueryEngine``.

    Args:
        transform: ``"rewrite"``, ``"hyde"``, ``"expand"``, ``"decompose"``; or a nodekin
            ``QueryTransform``.
        llm: The model, in any form that ``LLM`` takes; None for ``Settings.llm`` when it is needed.
        callback_manager: Gets an event for each call of the model.
        **options: Those of the transform: ``glossary``, ``count``, ``prompt``, ``on_error``.

    Raises:
        TypeError: If it is no transform, or there is no such option.
        ValueError: If there is no transform of that name.

    Example:
        >>> rewrite = NodeGraphQueryTransform("rewrite", lambda prompt: "How long is the Nile?")
        >>> rewrite.run("how logn is nile").query_str
        'How long is the Nile?'
        >>> hyde = NodeGraphQueryTransform("hyde", lambda prompt: "The Nile has 6,650 km.")
        >>> hyde.run("How long is the Nile?").embedding_strs
        ['How long is the Nile?', 'The Nile has 6,650 km.']
    """

    def __init__(
        self,
        transform: TransformName | QueryTransform = "rewrite",
        llm: object = None,
        *,
        callback_manager: CallbackManager | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._callback_manager = callback_manager
        if isinstance(transform, QueryTransform):
            if llm is not None or options:
                raise TypeError(
                    "a QueryTransform has its model and settings; give them to "
                    f"{type(transform).__name__}(...) itself"
                )
            self._transform = transform
            return
        if not isinstance(transform, str):
            raise TypeError(
                f"transform is a name ({', '.join(get_args(TransformName))}) or a nodekin "
                f"QueryTransform, not {transform!r:.80}"
            )
        self._transform = make_transform(transform, llm_or_settings(llm), **options)

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return run(self._plan(query_bundle))

    @dispatcher.span
    async def arun(
        self, query_bundle_or_str: QueryType, metadata: dict[str, Any] | None = None
    ) -> QueryBundle:
        """Return what ``run`` returns, without blocking the event loop."""
        query = query_bundle_or_str
        return await arun(self._plan(QueryBundle(query) if isinstance(query, str) else query))

    def _plan(self, bundle: QueryBundle) -> Plan[QueryBundle]:
        """Return a new bundle without the vector of the old one, which is of another query."""
        query = bundle.query_str
        with report_spans(self._callback_manager):
            variants = list((yield from self._transform.plan(query)).queries)
        if len(variants) == 1 and not self._transform.supplements:
            return QueryBundle(variants[0], image_path=bundle.image_path)
        texts = None if variants == [query] else variants or None
        return QueryBundle(query, image_path=bundle.image_path, custom_embedding_strs=texts)

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return to_templates(self._transform.prompts)

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        changed = changed_prompts(self._transform.prompts, prompts_dict)
        if changed:
            self._transform = self._transform.with_prompts(changed)
