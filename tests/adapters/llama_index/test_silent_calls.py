"""A call that nobody listens to has no spans and events; every handler hears, whenever it comes."""

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, TextNode

from nodekin.adapters.llama_index import NodeGraphRetriever, instrumentation
from nodekin.adapters.llama_index import retriever as module
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.foreign.outputs import to_node

QUERY = "Which tea is fermented?"

MODULES = ["root", module.__name__, instrumentation.__name__, BaseRetriever.__module__]


async def call(retriever: NodeGraphRetriever, mode: str, *args: Any) -> list[NodeWithScore]:
    if mode == "sync":
        return retriever.retrieve(*args)
    return await retriever.aretrieve(*args)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Events(BaseEventHandler):
    """Notes the names of events."""

    seen: list[str] = []  # noqa: RUF012

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.seen.append(type(event).__name__)


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the retrievals that go LlamaIndex's way."""
    ways: list[str] = []
    sync, coroutine = module._base_retrieve, module._base_aretrieve

    def retrieve(*args: Any) -> Any:
        ways.append("sync")
        return sync(*args)

    def aretrieve(*args: Any) -> Any:
        ways.append("async")
        return coroutine(*args)

    monkeypatch.setattr(module, "_base_retrieve", retrieve)
    monkeypatch.setattr(module, "_base_aretrieve", aretrieve)
    return ways


@pytest.fixture(params=MODULES)
def dispatcher(request: pytest.FixtureRequest) -> Iterator[Any]:
    own = get_dispatcher(str(request.param))
    spans, events = [*own.span_handlers], [*own.event_handlers]
    yield own
    own.span_handlers[:], own.event_handlers[:] = spans, events


async def test_where_nobody_listens_nothing_is_reported(
    retriever: NodeGraphRetriever, mode: str, reported: list[str]
) -> None:
    assert await call(retriever, mode, QUERY)
    assert await call(retriever, mode, QueryBundle(QUERY), {"topic": "tea"})
    assert not reported


async def test_span_handlers_hear_whenever_they_come(
    retriever: NodeGraphRetriever, mode: str, reported: list[str], dispatcher: Any
) -> None:
    silent = await call(retriever, mode, QUERY)
    handler = SimpleSpanHandler()
    dispatcher.add_span_handler(handler)
    heard = await call(retriever, mode, QUERY)
    assert reported == [mode]
    assert heard == silent
    assert [n.model_dump() for n in heard] == [n.model_dump() for n in silent]
    names = [span.id_.split("-")[0] for span in handler.completed_spans]
    a = "a" if mode == "async" else ""
    expected = [f"NodeGraphRetriever._{a}retrieve", f"NodeGraphRetriever.{a}retrieve"]
    within = ["nodekin.search"]
    if dispatcher.name in ("root", MODULES[2]):
        expected = within + expected if dispatcher.name == "root" else within
    assert names == ([] if dispatcher.name == MODULES[3] else expected)
    dispatcher.span_handlers.remove(handler)
    await call(retriever, mode, QUERY)
    assert reported == [mode]


async def test_event_handlers_hear_whenever_they_come(
    retriever: NodeGraphRetriever, mode: str, dispatcher: Any
) -> None:
    await call(retriever, mode, QUERY)
    handler = Events(seen=[])
    dispatcher.add_event_handler(handler)
    await call(retriever, mode, QUERY)
    own, base = ["SpanStartEvent", "SpanEndEvent"], ["RetrievalStartEvent", "RetrievalEndEvent"]
    expected = {"root": [base[0], *own, base[1]], MODULES[1]: [], MODULES[2]: own}
    assert handler.seen == expected.get(dispatcher.name, base)


async def test_callback_handlers_hear_whenever_they_come(
    retriever: NodeGraphRetriever, mode: str, reported: list[str]
) -> None:
    silent = await call(retriever, mode, QUERY)
    handler = LlamaDebugHandler(print_trace_on_end=False)
    manager = retriever.callback_manager = CallbackManager([handler])  # without one: Settings' own
    assert await call(retriever, mode, QUERY) == silent
    manager.remove_handler(handler)
    await call(retriever, mode, QUERY)
    manager.add_handler(handler)
    assert len(handler.get_event_pairs(CBEventType.RETRIEVE)) == 1
    await call(retriever, mode, QUERY)
    assert len(handler.get_event_pairs(CBEventType.RETRIEVE)) == 2
    assert reported == [mode, mode]


async def test_what_is_to_be_printed_is_printed(
    search: Retriever, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await call(NodeGraphRetriever(search, verbose=True), mode, QUERY)
    assert "search" in capsys.readouterr().out


async def test_a_class_that_searches_in_its_own_way_does_so(search: Retriever, mode: str) -> None:
    class Own(NodeGraphRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return super()._retrieve(query_bundle)[:1]

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return (await super()._aretrieve(query_bundle))[:1]

    class Below(Own):
        pass

    whole = await call(NodeGraphRetriever(search), mode, "tea")
    assert len(whole) > 1
    for kind in (Own, Below):
        assert await call(kind(search), mode, "tea") == whole[:1]


async def test_objects_are_followed(mode: str) -> None:
    class Referring:
        def retrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            node = IndexNode(text="see below", index_id="below", id_="reference")
            return [ScoredNode(to_node(node), 2.0)]

        async def aretrieve(self, query: str, **options: Any) -> list[ScoredNode]:
            return self.retrieve(query)

    objects = {"below": TextNode(text="Black tea is fermented.", id_="below")}
    (result,) = await call(NodeGraphRetriever(Referring(), object_map=objects), mode, "tea")
    assert (result.node.node_id, result.score) == ("below", 2.0)


@pytest.mark.parametrize("listens", [False, True])
async def test_errors_are_the_same(search: Retriever, mode: str, listens: bool) -> None:
    retriever = NodeGraphRetriever(search)
    if listens:
        handler = LlamaDebugHandler(print_trace_on_end=False)
        retriever.callback_manager = CallbackManager([handler])
    with pytest.raises(ValueError, match="allows no value"):
        await call(retriever, mode, QUERY, {"topic": []})
