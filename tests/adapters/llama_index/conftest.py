"""A small corpus, its retriever in LlamaIndex, a scripted model, and collected events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph, split_paragraphs, split_sentences
from nodekin.retrievers import Retriever

if find_spec("llama_index") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
    from llama_index.core.schema import Document as LlamaIndexDocument
    from support.llama_index_drinks import both_indexes
    from support.llama_index_models import ScriptedLLM

    from nodekin.adapters.llama_index import NodeGraphRetriever

TEA = """Green tea is not fermented. Its leaves stay green.

Black tea is fermented. It keeps for years. 红茶是全发酵茶。

Tea came to Europe by sea."""
PANDA = "大熊猫生活在竹林里。它每天要花十几个小时进食。\n\n大熊猫的毛是黑白两色的。"


@pytest.fixture
def scripted() -> Callable[[Any], Any]:
    """Return a function that makes a LlamaIndex model with a scripted answer."""
    return lambda answer: ScriptedLLM(answer=answer, prompts=[])


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph()
    unread = ["file_size"]  # as set by SimpleDirectoryReader
    for name, text, year in (("tea", TEA, 1999), ("panda", PANDA, 2005)):
        graph.add(
            LlamaIndexDocument(
                text=text,
                id_=name,
                metadata={"topic": name, "year": year, "file_size": 7},
                excluded_embed_metadata_keys=unread,
                excluded_llm_metadata_keys=unread,
            )
        )
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    return graph


@pytest.fixture
def search(graph: NodeGraph) -> Retriever:
    return Retriever(graph, "sentence", "bm25", target="paragraph", top_k=3)


@pytest.fixture
def retriever(search: Retriever) -> NodeGraphRetriever:
    return NodeGraphRetriever(retriever=search)


@pytest.fixture
def watched() -> Iterator[SimpleNamespace]:
    """Collect the spans and events of the instrumentation dispatcher."""
    seen = SimpleNamespace(spans=SimpleSpanHandler(), events=[])

    class Events(BaseEventHandler):
        @classmethod
        def class_name(cls) -> str:
            return "Events"

        def handle(self, event: Any, **kwargs: Any) -> None:
            seen.events.append(event)

    root = get_dispatcher()
    events = Events()
    root.add_span_handler(seen.spans)
    root.add_event_handler(events)
    yield seen
    root.span_handlers.remove(seen.spans)
    root.event_handlers.remove(events)


@pytest.fixture
def unblocked() -> Iterator[None]:
    """Fail if a call blocks the event loop."""
    blockbuster = pytest.importorskip("blockbuster")
    with blockbuster.blockbuster_ctx():
        yield


@pytest.fixture
def indexes() -> Any:
    """Return an index of LlamaIndex and an index of nodekin over the same nodes."""
    return both_indexes()
