import asyncio
import contextvars
import copy
from typing import Any

import pytest
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import QueryBundle
from support.fixed_retriever import FixedRetriever

from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.adapters.llama_index.nodes import NodeWithEvidence
from nodekin.nodegraph import Node, NodeGraph, split_sentences
from nodekin.retrievers import Bm25, Retriever, ScoredNode

QUERY = "Which tea is fermented? 红茶"


def node(id: str) -> Node:
    return Node(f"Tea {id}.", id=id, group="line", document_id="d")


async def test_results_equal_results_of_native_retriever(
    retriever: NodeGraphRetriever, search: Retriever, graph: NodeGraph
) -> None:
    for query in (QUERY, "大熊猫吃什么", "nothing of the kind in it"):
        alone = search.retrieve(query)
        for found in (retriever.retrieve(query), await retriever.aretrieve(query)):
            assert [(r.node_id, r.score) for r in found] == [(r.node.id, r.score) for r in alone]
            assert [r.text for r in found] == [r.node.text for r in alone]


def test_results_are_text_nodes_with_evidence(retriever: NodeGraphRetriever) -> None:
    found = retriever.retrieve(QUERY)
    assert {type(r) for r in found} == {NodeWithEvidence}
    assert {r.node.class_name() for r in found} == {"TextNode"}
    best = found[0]
    assert {match["group"] for match in best.evidence} == {"sentence"}
    assert best.evidence[0]["score"] == best.score
    assert best.evidence[0]["query"] == QUERY
    assert all(match["text"] in best.text for match in best.evidence)


def test_node_does_not_depend_on_the_query(retriever: NodeGraphRetriever) -> None:
    one = {r.node_id: r.node for r in retriever.retrieve(QUERY)}
    other = {r.node_id: r.node for r in retriever.retrieve("green tea came to Europe")}
    assert one.keys() & other.keys()
    for id in one.keys() & other.keys():
        assert one[id] == other[id]
        assert one[id].hash == other[id].hash


async def test_results_are_sorted_and_deduplicated_by_score() -> None:
    pairs = [("a", 0.0), ("b", 2.0), ("a", 1.0), ("c", -3.0), ("d", 0.0)]
    retriever = NodeGraphRetriever(
        FixedRetriever([ScoredNode(node(id), score) for id, score in pairs])
    )
    for found in (retriever.retrieve("tea"), await retriever.aretrieve("tea")):
        assert [(r.node_id, r.score) for r in found] == [
            ("b", 2.0),
            ("a", 1.0),
            ("d", 0.0),
            ("c", -3.0),
        ]


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_blank_query_without_filters_finds_nothing(query: str) -> None:
    inner = FixedRetriever([ScoredNode(node("a"), 1.0)])
    retriever = NodeGraphRetriever(inner)
    assert retriever.retrieve(query) == []
    assert await retriever.aretrieve(query) == []


async def test_query_bundle_is_not_changed() -> None:
    inner = FixedRetriever([])
    retriever = NodeGraphRetriever(inner)
    bundle = QueryBundle("tea?", custom_embedding_strs=["a made-up answer"], embedding=[1.0, 2.0])
    before = copy.deepcopy(bundle)
    retriever.retrieve(bundle)
    await retriever.aretrieve(bundle)
    assert bundle == before
    assert [query for query, *_ in inner.calls] == ["tea?", "tea?"]


async def test_top_k_counts_lifted_nodes(search: Retriever) -> None:
    retriever = NodeGraphRetriever(search, similarity_top_k=1)
    assert len(retriever.retrieve(QUERY)) == 1
    retriever.similarity_top_k = 2
    assert len(await retriever.aretrieve(QUERY)) == 2
    inner = FixedRetriever([])
    NodeGraphRetriever(inner, similarity_top_k=4, filters={"a": 1}).retrieve("tea")
    NodeGraphRetriever(inner).retrieve("tea")
    assert inner.calls == [("tea", 4, {"a": 1}), ("tea", None, None)]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"similarity_top_k": 0}, ValueError, "1 or more, got 0"),
        ({"similarity_top_k": True}, TypeError, "integer, got True"),
        ({"similarity_top_k": "3"}, TypeError, "integer, got '3'"),
        ({"filters": {"a": []}}, ValueError, "allows no value"),
        ({"top_k": 3}, TypeError, "unexpected keyword argument 'top_k'"),
    ],
)
def test_wrong_arguments_raise(
    search: Retriever, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        NodeGraphRetriever(search, **settings)


def test_invalid_retriever_raises() -> None:
    for wrong in (None, 3, "bm25"):
        with pytest.raises(
            TypeError, match=r"retriever must be an object with retrieve\(\).*, got"
        ):
            NodeGraphRetriever(wrong)


def test_failed_search_drops_its_span(graph: NodeGraph, watched: Any) -> None:
    graph.create_node_group("bad", lambda text: 1 / 0)
    with pytest.raises(RuntimeError):
        NodeGraphRetriever(Retriever(graph, "bad")).retrieve("tea")
    dropped = {span.id_.split("-")[0] for span in watched.spans.dropped_spans}
    assert dropped == {"NodeGraphRetriever.retrieve", "NodeGraphRetriever._retrieve"}


place = contextvars.ContextVar("place", default="nowhere")


async def test_context_variables_reach_the_search(graph: NodeGraph) -> None:
    seen = []

    def analyze(text: str) -> list[str]:
        seen.append(place.get())
        return text.split()

    retriever = NodeGraphRetriever(Retriever(graph, "sentence", Bm25(analyzer=analyze)))
    place.set("here")
    retriever.retrieve("tea")
    await retriever.aretrieve("tea")
    assert set(seen) == {"here"}


async def test_async_search_does_not_block_the_loop(
    retriever: NodeGraphRetriever, unblocked: None
) -> None:
    assert await retriever.aretrieve(QUERY)  # also builds the groups and the index
    found = await asyncio.gather(*(retriever.aretrieve(QUERY) for _ in range(8)))
    assert len({tuple(r.node_id for r in results) for results in found}) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_equal_texts_are_separate_results(is_async: bool) -> None:
    graph = NodeGraph(progress=False)
    graph.add([LlamaIndexDocument(text="Tea. Milk. Tea.", id_=name) for name in "ab"])
    graph.create_node_group("sentence", split_sentences)
    retriever = NodeGraphRetriever(Retriever(graph, "sentence", top_k=9))
    found = asyncio.run(retriever.aretrieve("tea")) if is_async else retriever.retrieve("tea")
    assert [result.text for result in found] == ["Tea."] * 4
