"""The events of a retrieval, as LlamaIndex's retrievers emit them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    """Emit the events of a retrieval around a block, which adds the nodes to the list.

    ``BaseRetriever.retrieve`` emits the same events, but takes no settings of a call.

    Args:
        manager: The callback manager of the retriever.
        query: The query, as it was given.
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
