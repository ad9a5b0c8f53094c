"""Rerankers and target groups as LlamaIndex node postprocessors."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphReranker,
    NodeGraphRetriever,
    export_nodes,
)
from nodekin.adapters.llama_index.nodes import NodeWithEvidence, to_text_node
from nodekin.nodegraph import Node, NodeGraph, UnknownGroupError
from nodekin.retrievers import Reranker, Retriever, ScoredNode
from nodekin.retrievers.protocols import RerankError

TEXTS = ["Tea.", "Green tea is green.", "红茶", "Black tea"]
QUERY = QueryBundle("tea")


def lengths(query: str, texts: Any) -> list[float]:
    return [float(len(text)) for text in texts]


def broken(query: str, texts: Any) -> list[float]:
    raise ConnectionError("no model")


def hits() -> list[NodeWithScore]:
    nodes = [TextNode(text=text, id_=text[:3], metadata={"n": n}) for n, text in enumerate(TEXTS)]
    return [
        NodeWithScore(node=node, score=score)
        for node, score in zip(nodes, [0.5, 0.25, None, 0.0], strict=True)
    ]


def reranked(reranker: NodeGraphReranker, nodes: Any, query: QueryBundle | None = QUERY) -> Any:
    """Return the results of the sync and the async method: equal, and without shared objects."""
    given = copy.deepcopy(nodes)
    first = reranker.postprocess_nodes(nodes, query)
    again = asyncio.run(reranker.apostprocess_nodes(nodes, query))
    assert [r.to_dict() for r in first] == [r.to_dict() for r in again]
    assert nodes == given
    assert not {id(r.node.metadata) for r in first} & {id(r.node.metadata) for r in nodes}
    return first


def scores(results: list[Any]) -> list[tuple[str, float]]:
    return [(result.text, result.score) for result in results]


def test_reranker_orders_and_scores_any_nodes() -> None:
    found = reranked(NodeGraphReranker("ModuleReranker", model=lengths), [*hits(), hits()[0]])
    assert scores(found) == [
        ("Green tea is green.", 25.0),  # with "n: 0" and an empty line, as LlamaIndex embeds it
        ("Black tea", 15.0),
        ("Tea.", 10.0),
        ("Tea.", 10.0),
        ("红茶", 8.0),
    ]
    assert all(isinstance(r, NodeWithEvidence) for r in found)
    (match,) = found[0].evidence
    assert (match["id"], match["text"], match["score"]) == ("Gre", "Green tea is green.", 25.0)
    assert (match["similarity"], match["query"]) == ("ModuleReranker", "tea")
    assert found[0].metadata == {"n": 1}


def test_evidence_of_the_reranker_comes_first(retriever: NodeGraphRetriever) -> None:
    before = retriever.retrieve("Which tea is fermented?")
    evidence = {r.node_id: r.evidence for r in before}
    for result in reranked(NodeGraphReranker("ModuleReranker", model=lengths), before):
        assert result.evidence[0]["similarity"] == "ModuleReranker"
        assert result.evidence[1:] == evidence[result.node_id]


def test_top_n_limits_reranked_nodes() -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths, top_n=2)
    assert len(reranked(rerank, hits())) == 2
    own = NodeGraphReranker(Reranker("ModuleReranker", model=lengths, top_k=1))
    assert len(reranked(own, hits())) == 1


@pytest.mark.parametrize("query", [None, QueryBundle(" ")])
def test_reranker_without_query_keeps_the_order(query: QueryBundle | None) -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=broken, top_n=3)
    assert scores(reranked(rerank, hits(), query)) == scores(hits()[:3])
    required = NodeGraphReranker("KeywordFilter", required="tea")
    expected = [("Tea.", 0.5), ("Green tea is green.", 0.25), ("Black tea", 0.0)]
    assert scores(reranked(required, hits(), query)) == expected
    assert scores(reranked(required, hits())) == expected


def test_reranker_may_return_copies_and_new_nodes() -> None:
    class Changing:
        name = "changing"

        def rerank(self, results: Any, query: str) -> Any:
            copy, new = Node("copied", id=results[0].node.id), Node("new", id="3")
            return [ScoredNode(copy, 2.0), ScoredNode(new, 1.0)]

    found = reranked(NodeGraphReranker(Changing()), hits()[:2])
    assert scores(found) == [("Tea.", 2.0), ("new", 1.0)]


def test_failed_reranker_raises() -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=broken)
    with pytest.raises(RerankError, match="no model"):
        rerank.postprocess_nodes(hits(), query_str="tea")
    with pytest.raises(RerankError, match="no model"):
        asyncio.run(rerank.apostprocess_nodes(hits(), query_str="tea"))


def test_reranker_sends_its_events(watched: Any) -> None:
    reranked(NodeGraphReranker("ModuleReranker", model=lengths, top_n=2), hits())
    starts = [e for e in watched.events if isinstance(e, ReRankStartEvent)]
    ends = [e for e in watched.events if isinstance(e, ReRankEndEvent)]
    assert [(e.top_n, e.model_name, len(e.nodes)) for e in starts] == [(2, "ModuleReranker", 4)] * 2
    assert [[n.text for n in e.nodes] for e in ends] == [["Green tea is green.", "Black tea"]] * 2


def test_reranker_is_set_again_by_rebind() -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths, top_n=2)
    made = NodeGraphReranker.from_dict(rerank.to_dict())
    assert (made.top_n, made.class_name()) == (2, "NodeGraphReranker")
    with pytest.raises(ValueError, match=r"rebind\(Reranker\('ModuleReranker'"):
        made.postprocess_nodes(hits(), QUERY)
    made.rebind(Reranker("ModuleReranker", model=lengths))
    assert len(made.postprocess_nodes(hits(), QUERY)) == 2
    again = pickle.loads(pickle.dumps(NodeGraphReranker("KeywordFilter", required="green")))
    assert len(again.rebind("KeywordFilter").postprocess_nodes(hits(), QUERY)) == 4


async def test_async_reranker_does_not_block_the_loop(unblocked: None) -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths)
    assert await rerank.apostprocess_nodes(hits(), QUERY)


# Target groups


def sentence_hits(graph: NodeGraph, *scores: float) -> list[NodeWithScore]:
    nodes = graph.nodes("sentence")
    return [NodeWithScore(node=to_text_node(nodes[at]), score=s) for at, s in enumerate(scores)]


@pytest.mark.parametrize(
    ("lift", "expected"),
    [("max", [3.0, 2.0]), ("sum", [3.25, 2.5]), ("mean", [1.5, 3.5 / 3])],
)
def test_sentences_are_replaced_by_their_paragraphs(
    graph: NodeGraph, lift: Any, expected: list[float]
) -> None:
    given = sentence_hits(graph, 1.0, 2.0, 0.5, 3.0, 0.0)
    lifting = LiftPostprocessor(graph, "paragraph", lift=lift)
    found = reranked(lifting, given, None)
    assert [r.score for r in found] == pytest.approx(expected)
    assert {r.node_id for r in found} == {node.id for node in graph.nodes("paragraph")[:2]}


def test_evidence_of_lifted_node_names_the_child(graph: NodeGraph) -> None:
    found = NodeGraphRetriever(Retriever(graph, "sentence", top_k=2)).retrieve("green leaves")
    (lifted,) = LiftPostprocessor(graph, "paragraph").postprocess_nodes(found)
    assert [m["text"] for m in lifted.evidence] == [r.text for r in found]
    assert [m["similarity"] for m in lifted.evidence] == ["bm25", "bm25"]
    hit = sentence_hits(graph, 1.0)
    (plain,) = LiftPostprocessor(graph, "paragraph").postprocess_nodes(hit, QUERY)
    (match,) = plain.evidence
    assert (match["id"], match["group"]) == (graph.nodes("sentence")[0].id, "sentence")
    assert (match["start"], match["end"], match["score"], match["query"]) == (0, 27, 1.0, "tea")


def test_lifting_equals_a_retriever_with_target(graph: NodeGraph) -> None:
    everything = NodeGraphRetriever(Retriever(graph, "sentence", top_k=99)).retrieve("tea 大熊猫")
    lifted = LiftPostprocessor(graph, "ROOT").postprocess_nodes(everything)
    whole = NodeGraphRetriever(Retriever(graph, "sentence", target="ROOT", top_k=99))
    assert scores(lifted) == scores(whole.retrieve("tea 大熊猫"))


def test_nodes_outside_the_graph_stay(graph: NodeGraph) -> None:
    stranger = NodeWithScore(node=TextNode(text="Who?", id_="x"), score=9.0)
    removed = sentence_hits(graph, 1.0)
    graph.remove("tea")
    found = LiftPostprocessor(graph, "paragraph").postprocess_nodes([*removed, stranger])
    assert scores(found) == [("Who?", 9.0), ("Green tea is not fermented.", 1.0)]
    assert found[0].node is not stranger.node


def test_paragraph_is_replaced_by_its_sentences(graph: NodeGraph) -> None:
    (paragraph,) = [n for n in export_nodes(graph, "paragraph") if n.text.endswith("green.")]
    given = [NodeWithScore(node=paragraph, score=None)]
    found = LiftPostprocessor(graph, "sentence").postprocess_nodes(given)
    expected = [("Green tea is not fermented.", 0.0), ("Its leaves stay green.", 0.0)]
    assert scores(found) == expected
    assert len(LiftPostprocessor(graph, "sentence", top_n=1).postprocess_nodes(given)) == 1
    assert LiftPostprocessor(graph, "sentence").postprocess_nodes([]) == []


def test_graph_is_set_again_by_rebind(graph: NodeGraph) -> None:
    made = LiftPostprocessor.from_dict(LiftPostprocessor(graph, "paragraph", lift="sum").to_dict())
    assert (made.target, made.lift, made.class_name()) == ("paragraph", "sum", "LiftPostprocessor")
    with pytest.raises(ValueError, match=r"rebind\(graph\)"):
        made.postprocess_nodes(sentence_hits(graph, 1.0))
    assert len(made.rebind(graph).postprocess_nodes(sentence_hits(graph, 1.0))) == 1


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda graph: NodeGraphReranker("NoReranker"), ValueError, "NoReranker"),
        (lambda graph: NodeGraphReranker("KeywordFilter", top_n=0), ValueError, "top_n"),
        (lambda graph: LiftPostprocessor(graph, "paragraf"), UnknownGroupError, "'paragraph'"),
        (lambda graph: LiftPostprocessor("graph", "a"), TypeError, "graph must be a NodeGraph"),
        (lambda graph: LiftPostprocessor(graph, "ROOT", lift="most"), ValueError, "lift"),
    ],
)
def test_wrong_arguments_raise(graph: NodeGraph, make: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        make(graph)
