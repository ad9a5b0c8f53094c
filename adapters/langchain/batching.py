"""Answer many queries in one go, with a retriever run for each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context

from ...retrievers import RecursiveRetriever, Retriever, ScoredNode, child_k_override
from ...retrievers.base_retriever import Answering
from .callbacks import aobserved, around, below, observed
from .graph_drawing import asks_a_model, held

if TYPE_CHECKING:
    from .retriever import NodeGraphRetriever, Wanted


def together(retriever: object, method: str) -> bool:
    """Tell whether a retriever, and all it holds, have a way to be asked many queries at once.

    Args:
        retriever: Any retriever.
        method: ``"batch"`` or ``"abatch"``.
    """
    common = getattr(Answering, method)
    own = getattr(type(retriever), method, common) is not common
    return own and all(together(each, method) for _, each in held(retriever))


@dataclass(frozen=True, slots=True)
class Asked:
    """A query of a batch, with its config."""

    place: int
    query: str
    config: RunnableConfig


def portions(inputs: Sequence[str], configs: Sequence[RunnableConfig]) -> Iterator[list[Asked]]:
    """Cut a batch into as many queries as are to be worked on at once."""
    all_ = [Asked(at, *each) for at, each in enumerate(zip(inputs, configs, strict=True))]
    allowed = configs[0].get("max_concurrency") if configs else None
    size = min(allowed or EMBEDDED_AHEAD, EMBEDDED_AHEAD)
    for begin in range(0, len(all_), size):
        yield all_[begin : begin + size]


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Answer queries in one go, each with a run of its own.

    Attributes:
        retriever: Has another within that can do so.
        portion: The queries.
        kwargs: What the call asks for, for all queries.
        return_exceptions: Whether a query that fails gives its error; who fails is then found
            out one by one. Else the first error is raised.
    """

    retriever: NodeGraphRetriever
    portion: list[Asked]
    kwargs: dict[str, Any]
    return_exceptions: bool

    def retrieve(self) -> list[tuple[int, Any]]:
        """Return the documents of each query, or its error, with its place."""
        runs = [_start(self.retriever, each) for each in self.portion]
        try:
            asked = self.retriever._asked(**self.kwargs)
            queries = _texts(self.portion)
            with set_config_context(around(self.portion[0].config)) as context:
                found = context.run(self._batch, queries, runs, asked)
            made = self._documents(found, asked)
        except Exception as error:
            if self.return_exceptions and len(self.portion) > 1:
                return self._one_by_one(runs)
            for run in runs:
                run.on_retriever_error(error)
            if not self.return_exceptions:
                raise
            return [(self.portion[0].place, error)]
        except BaseException as error:
            for run in runs:
                run.on_retriever_error(error)
            raise
        for run, documents in zip(runs, made, strict=True):
            run.on_retriever_end(documents)
        return [(each.place, documents) for each, documents in zip(self.portion, made, strict=True)]

    def _batch(
        self, queries: list[str], runs: list[CallbackManagerForRetrieverRun], asked: Wanted
    ) -> list[list[ScoredNode]]:
        places = [(query, run.get_child()) for query, run in zip(queries, runs, strict=True)]
        with below(*places), observed(), child_k_override(asked.child_k):
            embed_ahead(self.retriever.retriever, queries)  # branches at once would each do so
            batch: Any = getattr(self.retriever.retriever, "batch")  # noqa: B009
            return list(batch(queries, top_k=asked.k, filters=asked.filter))

    def _one_by_one(self, runs: list[CallbackManagerForRetrieverRun]) -> list[tuple[int, Any]]:
        made: list[tuple[int, Any]] = []
        for each, run in zip(self.portion, runs, strict=True):
            with set_config_context(around(each.config)) as context:
                retrieve = partial(self.retriever._get_relevant_documents, run_manager=run)
                try:
                    documents = context.run(retrieve, each.query, **self.kwargs)
                except Exception as error:
                    run.on_retriever_error(error)
                    made.append((each.place, error))
                else:
                    run.on_retriever_end(documents)
                    made.append((each.place, documents))
        return made

    async def aretrieve(self) -> list[tuple[int, Any]]:
        """Return the same without blocking the event loop."""
        runs = [await _astart(self.retriever, each) for each in self.portion]
        try:
            asked = self.retriever._asked(**self.kwargs)
            queries = _texts(self.portion)
            with set_config_context(around(self.portion[0].config)) as context:
                found = await context.run(asyncio.create_task, self._abatch(queries, runs, asked))
            made = await asyncio.to_thread(self._documents, found, asked)
        except Exception as error:
            if self.return_exceptions and len(self.portion) > 1:
                return await self._aone_by_one(runs)
            for run in runs:
                await run.on_retriever_error(error)
            if not self.return_exceptions:
                raise
            return [(self.portion[0].place, error)]
        except BaseException as error:
            for run in runs:
                await run.on_retriever_error(error)
            raise
        for run, documents in zip(runs, made, strict=True):
            await run.on_retriever_end(documents)
        return [(each.place, documents) for each, documents in zip(self.portion, made, strict=True)]

    async def _abatch(
        self, queries: list[str], runs: list[AsyncCallbackManagerForRetrieverRun], asked: Wanted
    ) -> list[list[ScoredNode]]:
        places = [(query, run.get_child()) for query, run in zip(queries, runs, strict=True)]
        with below(*places), child_k_override(asked.child_k):
            async with aobserved():
                await aembed_ahead(self.retriever.retriever, queries)
                abatch: Any = getattr(self.retriever.retriever, "abatch")  # noqa: B009
                return list(await abatch(queries, top_k=asked.k, filters=asked.filter))

    async def _aone_by_one(
        self, runs: list[AsyncCallbackManagerForRetrieverRun]
    ) -> list[tuple[int, Any]]:
        async def one(each: Asked, run: AsyncCallbackManagerForRetrieverRun) -> tuple[int, Any]:
            with set_config_context(around(each.config)) as context:
                retrieve = partial(self.retriever._aget_relevant_documents, run_manager=run)
                try:
                    work = retrieve(each.query, **self.kwargs)
                    documents = await context.run(asyncio.create_task, work)
                except Exception as error:
                    await run.on_retriever_error(error)
                    return each.place, error
            await run.on_retriever_end(documents)
            return each.place, documents

        return list(await asyncio.gather(*map(one, self.portion, runs)))

    def _documents(self, found: list[list[ScoredNode]], asked: Wanted) -> list[list[Document]]:
        return [self.retriever._documents(each, asked) for each in found]


def _texts(portion: Sequence[Asked]) -> list[str]:
    for each in portion:
        if not isinstance(each.query, str):
            raise TypeError(f"a query is a str, not {type(each.query).__name__} {each.query!r:.80}")
    return [each.query for each in portion]


def _start(retriever: BaseRetriever, asked: Asked) -> CallbackManagerForRetrieverRun:
    """Begin a retriever's run, as its ``invoke`` does."""
    settings = _settings(retriever, asked.config)
    manager = CallbackManager.configure(asked.config.get("callbacks"), None, **settings)
    return manager.on_retriever_start(None, asked.query, **_named(retriever, asked.config))


async def _astart(retriever: BaseRetriever, asked: Asked) -> AsyncCallbackManagerForRetrieverRun:
    """Begin a retriever's run, as its ``ainvoke`` does."""
    settings = _settings(retriever, asked.config)
    manager = AsyncCallbackManager.configure(asked.config.get("callbacks"), None, **settings)
    return await manager.on_retriever_start(None, asked.query, **_named(retriever, asked.config))


def _settings(retriever: BaseRetriever, config: RunnableConfig) -> dict[str, Any]:
    return {
        "inheritable_tags": config.get("tags"),
        "local_tags": retriever.tags,
        "inheritable_metadata": {**(config.get("metadata") or {}), **retriever._get_ls_params()},
        "local_metadata": retriever.metadata,
    }


def _named(retriever: BaseRetriever, config: RunnableConfig) -> dict[str, Any]:
    name = config.get("run_name") or retriever.get_name()
    return {"name": name, "run_id": config.get("run_id")}


logger = logging.getLogger(__name__)

EMBEDDED_AHEAD = 256
"""How many queries are embedded ahead; a graph remembers twice as many."""


def embed_ahead(retriever: object, queries: Sequence[object]) -> None:
    """Have the models of all retrievers within embed the queries, each model all at once.

    One retriever that is asked many queries does so itself; several branches that begin together
    would each ask the model. A model that fails is asked again by each query's own retrieval,
    which then raises: one query that can't be embedded does not spoil the others.
    """
    asked = _asked(queries)
    for each in _searching(retriever) if len(asked) > 1 else ():
        try:
            each.embed(asked)
        except Exception as error:
            logger.info("%r could not embed a batch, goes one by one: %s", each, error)


async def aembed_ahead(retriever: object, queries: Sequence[object]) -> None:
    """Do the same without blocking the event loop."""
    asked = _asked(queries)
    for each in _searching(retriever) if len(asked) > 1 else ():
        try:
            await each.aembed(asked)
        except Exception as error:
            logger.info("%r could not embed a batch, goes one by one: %s", each, error)


def _asked(queries: Sequence[object]) -> list[str]:
    texts = [query for query in queries if isinstance(query, str) and query.strip()]
    return list(dict.fromkeys(texts))


def _searching(retriever: object) -> Iterator[Retriever | RecursiveRetriever]:
    """Yield the retrievers within that search for the query as it is."""
    if isinstance(retriever, Retriever | RecursiveRetriever):
        yield retriever
    elif not asks_a_model(retriever):
        for _, each in held(retriever):
            yield from _searching(each)
