"""Emit LlamaIndex events for retrievals and queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType

dispatcher = get_dispatcher(__name__)


@contextmanager
def retrieval(manager: CallbackManager, query: QueryType) -> Iterator[list[NodeWithScore]]:
    """Emit LlamaIndex's retrieval events before and after a ``with`` block.

    The block must add the retrieved nodes to the list that it receives. ``BaseRetriever.retrieve``
    emits the same events, but does not accept settings for a single call.

    Args:
        manager: The callback manager of the retriever.
        query: The query, as it was passed by the caller.
    """
    text = query.query_str if isinstance(query, QueryBundle) else query
    found: list[NodeWithScore] = []
    dispatcher.event(RetrievalStartEvent(str_or_query_bundle=query))
    with (
        manager.as_trace("query"),
        manager.event(CBEventType.RETRIEVE, payload={EventPayload.QUERY_STR: text}) as event,
    ):
        yield found
        event.on_end(payload={EventPayload.NODES: found})
    dispatcher.event(RetrievalEndEvent(str_or_query_bundle=query, nodes=found))


@contextmanager
def query_event(manager: CallbackManager, query: QueryBundle) -> Iterator[list[RESPONSE_TYPE]]:
    """Emit LlamaIndex's query events before and after a ``with`` block.

    The block must add the response to the list that it receives.

    Args:
        manager: The callback manager of the query engine.
        query: The query.
    """
    payload: dict[str, Any] = {EventPayload.QUERY_STR: query.query_str}
    responses: list[RESPONSE_TYPE] = []
    with manager.event(CBEventType.QUERY, payload=payload) as event:
        yield responses
        event.on_end(payload={EventPayload.RESPONSE: responses[0]})
