"""Let any nodekin retriever be a LangChain retriever."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    AsyncParentRunManager,
    CallbackManagerForRetrieverRun,
    ParentRunManager,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import patch_config, set_config_context
from pydantic import ConfigDict, Field, SkipValidation, field_validator

from ...retrievers import Retrieves, ScoredNode
from ..evidence import evidence_dicts
from .documents import NODE_KEY, to_documents


class NodeGraphRetriever(BaseRetriever):
    """Give any nodekin retriever to LangChain: chains, tools, agents.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``. Nothing else is needed, no key
        and no network.

    Key init args:
        retriever: Any nodekin retriever: an object with ``retrieve`` and ``aretrieve``.
        k: How many documents to return at most; None for the retriever's own ``top_k``. They
            are counted as they are returned, after lifting to the target group.
        filter: Conditions on metadata, checked before ranking, beside the retriever's own.
        score_threshold: Keeps results that score this or more.
        score_key: The metadata field that holds the score, a float, higher is better; None
            leaves it out.
        details: Whether ``metadata["nodekin"]`` tells a result's place in the graph and in its
            document (``start``, ``end``), and its ``evidence``; ``from_document`` needs it.

    Instantiate:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> retriever = NodeGraphRetriever(retriever=search, k=2)

    Usage:
        >>> (document,) = retriever.invoke("Which tea is black?")
        >>> document.page_content
        'Green tea is unfermented. Black tea is not.'
        >>> document.metadata["nodekin"]["evidence"][0]["text"]
        'Black tea is not.'

        ``k``, ``filter`` and ``score_threshold`` can be given with each call, and a field of that
        filter replaces one of the retriever's:

        >>> retriever.invoke("tea", k=1, filter={"language": "en"})
        []

        Whoever traces a call sees one run for the retriever and below it one named ``search``
        with what was searched for and the evidence for each result. All documents of an answer
        have the same metadata fields, None where a node lacks one.

    Use within a chain:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.output_parsers import StrOutputParser
        >>> from langchain_core.prompts import ChatPromptTemplate
        >>> from langchain_core.runnables import RunnablePassthrough
        >>> prompt = ChatPromptTemplate.from_template("{context}\\n\\nQuestion: {question}")
        >>> model = FakeListChatModel(responses=["Black tea is fermented."])
        >>> def joined(documents):
        ...     return "\\n".join(document.page_content for document in documents)
        >>> chain = (
        ...     {"context": retriever | joined, "question": RunnablePassthrough()}
        ...     | prompt | model | StrOutputParser()
        ... )
        >>> chain.invoke("Which tea is fermented?")
        'Black tea is fermented.'

    Raises:
        TypeError: If the retriever is none, or a call has a keyword that there is not.
        pydantic.ValidationError: If an argument is unknown or out of range.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: Annotated[Retrieves, SkipValidation]
    """Any nodekin retriever."""

    k: int | None = Field(default=None, ge=1, strict=True)
    """How many documents to return at most; None for the retriever's own ``top_k``."""

    filter: dict[str, Any] | None = None
    """Conditions on metadata, checked before ranking."""

    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    """Keeps results that score this or more."""

    score_key: str | None = "relevance_score"
    """The metadata field for the score; None leaves it out."""

    details: bool = True
    """Whether ``metadata["nodekin"]`` tells a result's place and evidence."""

    @field_validator("retriever", mode="before")
    @classmethod
    def _check_retriever(cls, value: object) -> object:
        if not all(callable(getattr(value, name, None)) for name in ("retrieve", "aretrieve")):
            raise TypeError(
                f"retriever is an object with retrieve() and aretrieve(), such as "
                f"nodekin.retrievers.Retriever(graph, 'group'), not {value!r:.80}"
            )
        return value

    @field_validator("score_key")
    @classmethod
    def _check_score_key(cls, value: str | None) -> str | None:
        if value in ("", NODE_KEY):
            raise ValueError(
                f"score_key can't be {value!r}; give another name, or None to leave the score out"
            )
        return value

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the documents found, best first.

        Args:
            input: The query; a blank one finds nothing.
            config: As everywhere in LangChain; its ``run_id`` is that of the retriever's run.
            **kwargs: ``k``, ``filter``, ``score_threshold``, in place of the retriever's own.
        """
        config, around = _configs(config, kwargs)
        with set_config_context(around) as context:
            return context.run(super().invoke, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the same without blocking the event loop."""
        config, around = _configs(config, kwargs)
        with set_config_context(around) as context:
            return await context.run(asyncio.create_task, super().ainvoke(input, config, **kwargs))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
    ) -> list[Document]:
        asked = self._asked(query, k, filter, score_threshold)
        found: list[ScoredNode] = []

        def search(asked: dict[str, Any]) -> list[dict[str, Any]]:
            found.extend(self.retriever.retrieve(query, top_k=asked["k"], filters=asked["filter"]))
            return _traced(found)

        RunnableLambda(search).invoke(asked, _child_config(run_manager))
        return self._documents(found, asked)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
    ) -> list[Document]:
        asked = self._asked(query, k, filter, score_threshold)
        found: list[ScoredNode] = []

        async def search(asked: dict[str, Any]) -> list[dict[str, Any]]:
            found.extend(
                await self.retriever.aretrieve(query, top_k=asked["k"], filters=asked["filter"])
            )
            return await asyncio.to_thread(_traced, found)

        try:
            await RunnableLambda(search).ainvoke(asked, _child_config(run_manager))
            return await asyncio.to_thread(self._documents, found, asked)
        except asyncio.CancelledError as error:  # the base class reports an Exception only
            await run_manager.on_retriever_error(error)
            raise

    def _asked(
        self,
        query: str,
        k: int | None,
        filter: Mapping[str, Any] | None,
        score_threshold: float | None,
    ) -> dict[str, Any]:
        """Put the call's arguments over the retriever's own."""
        if filter is None or self.filter is None:
            filter = self.filter if filter is None else filter
        else:
            filter = {**self.filter, **filter}
        threshold = self.score_threshold if score_threshold is None else score_threshold
        if threshold is not None and math.isnan(threshold):
            raise ValueError("score_threshold is NaN, which no score reaches; give a number")
        k = self.k if k is None else k
        return {"query": query, "k": k, "filter": filter, "score_threshold": threshold}

    def _documents(self, found: Sequence[ScoredNode], asked: Mapping[str, Any]) -> list[Document]:
        threshold = asked["score_threshold"]
        kept = [each for each in found if threshold is None or each.score >= threshold]
        return to_documents(kept, score_key=self.score_key, details=self.details)


def _configs(
    config: RunnableConfig | None, kwargs: dict[str, Any]
) -> tuple[RunnableConfig, RunnableConfig]:
    """Return the config of the call and that of what runs within; give ``kwargs`` the run's id.

    The base class takes the id as a keyword alone, and does not set the config that surrounds
    what it calls. The name and the id are the retriever's own, so nothing within gets them.
    """
    config = ensure_config(config)
    kwargs["run_id"] = kwargs.get("run_id") or config.get("run_id")
    around = {key: value for key, value in config.items() if key not in ("run_id", "run_name")}
    return config, cast("RunnableConfig", around)


def _child_config(run_manager: ParentRunManager | AsyncParentRunManager) -> RunnableConfig:
    return patch_config(None, callbacks=run_manager.get_child())


def _traced(found: Sequence[ScoredNode]) -> list[dict[str, Any]]:
    """Say what was found, for a reader of the trace; the contents stand in the retriever's run."""
    return [
        {
            "id": each.node.id,
            "group": each.node.group,
            "score": float(each.score),
            "evidence": evidence_dicts(each),
        }
        for each in found
    ]
