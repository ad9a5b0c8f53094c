import asyncio
import copy
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from nodekin.adapters.llama_index import (
    LiftPostprocessor,
    NodeGraphRetriever,
    export_nodes,
    from_text_node,
    to_text_node,
)
from nodekin.nodegraph import NodeGraph, UnknownGroupError
from nodekin.retrievers import Retriever


def hits(graph: NodeGraph, *scores: float) -> list[NodeWithScore]:
    nodes = graph.nodes("sentence")
    return [NodeWithScore(node=to_text_node(nodes[at]), score=s) for at, s in enumerate(scores)]


@pytest.mark.parametrize(
    ("lift", "expected"),
    [("max", [3.0, 2.0]), ("sum", [3.25, 2.5]), ("mean", [3.5 / 3, 1.5])],
)
def test_sentences_become_their_paragraphs(
    graph: NodeGraph, lift: Any, expected: list[float]
) -> None:
    given = hits(graph, 1.0, 2.0, 0.5, 3.0, 0.0)
    before = copy.deepcopy(given)
    lifting = LiftPostprocessor(graph, "paragraph", lift=lift)
    found = lifting.postprocess_nodes(given)
    paragraphs = graph.nodes("paragraph")
    by_score = dict(zip(["Black", "Green"], [0.0] * 2, strict=True))
    for result in found:
        by_score[result.text.split()[0]] = result.score
    assert sorted(by_score.values(), reverse=True) == pytest.approx(sorted(expected, reverse=True))
    assert {from_text_node(r.node) for r in found} == {paragraphs[0], paragraphs[1]}
    assert [r.score for r in found] == sorted((r.score for r in found), reverse=True)
    assert given == before
    again = asyncio.run(lifting.apostprocess_nodes(given))
    assert [r.to_dict() for r in again] == [r.to_dict() for r in found]


def test_evidence_tells_which_child_matched(graph: NodeGraph) -> None:
    found = NodeGraphRetriever(Retriever(graph, "sentence", top_k=2)).retrieve("green leaves")
    (lifted,) = LiftPostprocessor(graph, "paragraph").postprocess_nodes(found)
    assert [m["text"] for m in lifted.evidence] == [r.text for r in found]
    assert [m["similarity"] for m in lifted.evidence] == ["bm25", "bm25"]
    plain = LiftPostprocessor(graph, "paragraph").postprocess_nodes(
        hits(graph, 1.0), QueryBundle("tea?")
    )
    assert plain[0].evidence == [
        {
            "id": graph.nodes("sentence")[0].id,
            "group": "sentence",
            "text": "Green tea is not fermented.",
            "start": 0,
            "end": 27,
            "score": 1.0,
            "similarity": "",
            "query": "tea?",
        }
    ]


def test_as_retriever_with_a_target(graph: NodeGraph) -> None:
    everything = NodeGraphRetriever(Retriever(graph, "sentence", top_k=99)).retrieve("tea 大熊猫")
    lifted = LiftPostprocessor(graph, "ROOT").postprocess_nodes(everything)
    whole = NodeGraphRetriever(Retriever(graph, "sentence", target="ROOT", top_k=99))
    assert [(r.node_id, r.score) for r in lifted] == [
        (r.node_id, r.score) for r in whole.retrieve("tea 大熊猫")
    ]


def test_strangers_and_removed_nodes_stay(graph: NodeGraph) -> None:
    stranger = NodeWithScore(node=TextNode(text="Who?", id_="x"), score=9.0)
    gone = hits(graph, 1.0)
    graph.remove("tea")
    found = LiftPostprocessor(graph, "paragraph").postprocess_nodes([*gone, stranger])
    assert [(r.text, r.score) for r in found] == [
        ("Who?", 9.0),
        ("Green tea is not fermented.", 1.0),
    ]
    assert found[0].node is not stranger.node


def test_down_and_how_many(graph: NodeGraph) -> None:
    (paragraph,) = [n for n in export_nodes(graph, "paragraph") if n.text.endswith("green.")]
    given = [NodeWithScore(node=paragraph, score=None)]
    found = LiftPostprocessor(graph, "sentence").postprocess_nodes(given)
    assert [(r.text, r.score) for r in found] == [
        ("Green tea is not fermented.", 0.0),
        ("Its leaves stay green.", 0.0),
    ]
    assert len(LiftPostprocessor(graph, "sentence", top_n=1).postprocess_nodes(given)) == 1
    assert LiftPostprocessor(graph, "sentence").postprocess_nodes([]) == []


def test_inside_a_query_engine(graph: NodeGraph) -> None:
    engine = RetrieverQueryEngine.from_args(
        NodeGraphRetriever(Retriever(graph, "sentence")),
        llm=MockLLM(),
        node_postprocessors=[LiftPostprocessor(graph, "ROOT")],
    )
    for answer in (engine.query("竹林"), asyncio.run(engine.aquery("竹林"))):
        assert [node.node_id for node in answer.source_nodes] == ["panda"]


def test_what_does_not_travel_is_given_again(graph: NodeGraph) -> None:
    made = LiftPostprocessor.from_dict(LiftPostprocessor(graph, "paragraph", lift="sum").to_dict())
    assert (made.target, made.lift, made.class_name()) == ("paragraph", "sum", "LiftPostprocessor")
    with pytest.raises(ValueError, match=r"rebind\(graph\)"):
        made.postprocess_nodes(hits(graph, 1.0))
    assert len(made.rebind(graph).postprocess_nodes(hits(graph, 1.0))) == 1


def test_wrong_arguments(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError, match="'paragraph'"):
        LiftPostprocessor(graph, "paragraf")
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        LiftPostprocessor("graph", "paragraph")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lift"):
        LiftPostprocessor(graph, "paragraph", lift="most")  # type: ignore[arg-type]


async def test_the_loop_stays_free(graph: NodeGraph, unblocked: None) -> None:
    assert await LiftPostprocessor(graph, "paragraph").apostprocess_nodes(hits(graph, 1.0))
