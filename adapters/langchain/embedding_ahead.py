"""Embed the queries of a batch together, before each is searched on its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from ...retrievers import RecursiveRetriever, Retriever
from .drawing import asks_a_model, held

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
