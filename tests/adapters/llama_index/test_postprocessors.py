import asyncio
import copy
import pickle
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle, TextNode

from nodekin.adapters.llama_index import NodeGraphReranker, NodeGraphRetriever, NodeWithEvidence
from nodekin.retrievers import Reranker, Retriever
from nodekin.retrievers.protocols import RerankError

TEXTS = ["Tea.", "Green tea is green.", "红茶", "Black tea"]


def lengths(query: str, texts: Any) -> list[float]:
    return [float(len(text)) for text in texts]


def broken(query: str, texts: Any) -> list[float]:
    raise ConnectionError("no model")


def hits() -> list[NodeWithScore]:
    scores = [0.5, 0.25, None, 0.0]
    return [
        NodeWithScore(node=TextNode(text=text, id_=text[:3], metadata={"n": at}), score=score)
        for at, (text, score) in enumerate(zip(TEXTS, scores, strict=True))
    ]


def both_ways(reranker: NodeGraphReranker, nodes: Any, query: Any) -> list[Any]:
    given = copy.deepcopy(nodes)
    first = reranker.postprocess_nodes(nodes, query)
    again = asyncio.run(reranker.apostprocess_nodes(nodes, query))
    assert [r.to_dict() for r in first] == [r.to_dict() for r in again]
    assert nodes == given
    return first


def test_any_results_are_reranked() -> None:
    found = both_ways(
        NodeGraphReranker("ModuleReranker", model=lengths), hits(), QueryBundle("tea")
    )
    assert [(r.text, r.score) for r in found] == [
        ("Green tea is green.", 25.0),  # with "n: 0" and an empty line, as LlamaIndex embeds it
        ("Black tea", 15.0),
        ("Tea.", 10.0),
        ("红茶", 8.0),
    ]
    assert all(isinstance(r, NodeWithEvidence) for r in found)
    assert found[0].evidence == [
        {
            "id": "Gre",
            "group": "",
            "text": "Green tea is green.",
            "start": None,
            "end": None,
            "score": 25.0,
            "similarity": "ModuleReranker",
            "query": "tea",
        }
    ]
    assert found[0].metadata == {"n": 1}


def test_earlier_evidence_is_kept_behind(retriever: NodeGraphRetriever) -> None:
    before = retriever.retrieve("Which tea is fermented?")
    found = both_ways(
        NodeGraphReranker("ModuleReranker", model=lengths), before, QueryBundle("fermented")
    )
    evidence = {r.node_id: r.evidence for r in before}
    for result in found:
        assert result.evidence[0]["similarity"] == "ModuleReranker"
        assert result.evidence[1:] == evidence[result.node_id]


def test_how_many() -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths, top_n=2)
    assert len(both_ways(rerank, hits(), QueryBundle("tea"))) == 2
    own = NodeGraphReranker(Reranker("ModuleReranker", model=lengths, top_k=1))
    assert len(both_ways(own, hits(), QueryBundle("tea"))) == 1


def test_a_filter() -> None:
    rerank = NodeGraphReranker("KeywordFilter", required="tea")
    for query in (QueryBundle("what?"), None, QueryBundle(" ")):
        found = both_ways(rerank, hits(), query)
        assert [r.text for r in found] == ["Tea.", "Green tea is green.", "Black tea"]
        assert [r.score for r in found] == [0.5, 0.25, 0.0]


@pytest.mark.parametrize("query", [None, QueryBundle("")])
def test_without_a_query_the_order_stays(query: QueryBundle | None) -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=broken, top_n=3, on_error="raise")
    found = both_ways(rerank, hits(), query)
    assert [(r.text, r.score) for r in found] == [(r.text, r.score) for r in hits()[:3]]


def test_nothing_to_rerank() -> None:
    assert both_ways(NodeGraphReranker("ModuleReranker", model=broken), [], QueryBundle("a")) == []


def test_the_same_node_twice_stays_twice() -> None:
    twice = [hits()[0], hits()[1], hits()[0]]
    found = both_ways(NodeGraphReranker("ModuleReranker", model=lengths), twice, QueryBundle("tea"))
    assert [r.text for r in found] == ["Green tea is green.", "Tea.", "Tea."]


def test_a_reranker_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=broken, top_n=2)
    found = both_ways(rerank, hits(), QueryBundle("tea"))
    assert [r.text for r in found] == TEXTS[:2]
    assert found[0].evidence[0]["similarity"].startswith("rerank failed: ModuleReranker")
    assert "no model" in caplog.text
    rerank = NodeGraphReranker("ModuleReranker", model=broken, on_error="raise")
    with pytest.raises(RerankError, match="no model"):
        rerank.postprocess_nodes(hits(), query_str="tea")
    with pytest.raises(RerankError, match="no model"):
        asyncio.run(rerank.apostprocess_nodes(hits(), query_str="tea"))


def test_events(watched: Any) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    rerank = NodeGraphReranker(
        "ModuleReranker", model=lengths, top_n=2, callback_manager=CallbackManager([handler])
    )
    rerank.postprocess_nodes(hits(), query_str="tea")
    asyncio.run(rerank.apostprocess_nodes(hits(), query_str="tea"))
    starts = [e for e in watched.events if isinstance(e, ReRankStartEvent)]
    ends = [e for e in watched.events if isinstance(e, ReRankEndEvent)]
    assert [(e.top_n, e.model_name, len(e.nodes)) for e in starts] == [(2, "ModuleReranker", 4)] * 2
    assert [[n.text for n in e.nodes] for e in ends] == [["Green tea is green.", "Black tea"]] * 2
    pairs = handler.get_event_pairs(CBEventType.RERANKING)
    assert [len(pair[1].payload["nodes"]) for pair in pairs] == [2, 2]


def test_inside_a_query_engine(search: Retriever) -> None:
    engine = RetrieverQueryEngine.from_args(
        NodeGraphRetriever(search),
        llm=MockLLM(),
        node_postprocessors=[NodeGraphReranker("ModuleReranker", model=lengths, top_n=1)],
    )
    for answer in (engine.query("tea"), asyncio.run(engine.aquery("tea"))):
        (source,) = answer.source_nodes
        assert source.evidence[0]["similarity"] == "ModuleReranker"


def test_other_kinds_of_nodes() -> None:
    given = [NodeWithScore(node=ImageNode(text="A cup of tea.", id_="i"), score=1.0)]
    (found,) = NodeGraphReranker("ModuleReranker", model=lengths).postprocess_nodes(
        given, query_str="tea"
    )
    assert type(found.node) is ImageNode
    assert found.score == 13.0


def test_what_does_not_travel_is_given_again() -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths, top_n=2)
    made = NodeGraphReranker.from_dict(rerank.to_dict())
    assert (made.top_n, made.class_name()) == (2, "NodeGraphReranker")
    with pytest.raises(ValueError, match=r"rebind\('ModuleReranker'"):
        made.postprocess_nodes(hits(), query_str="tea")
    made.rebind("ModuleReranker", model=lengths)
    assert len(made.postprocess_nodes(hits(), query_str="tea")) == 2
    again = pickle.loads(pickle.dumps(NodeGraphReranker("KeywordFilter", required="green")))
    with pytest.raises(ValueError, match="rebind"):
        again.postprocess_nodes(hits(), query_str="tea")
    assert len(again.rebind("KeywordFilter").postprocess_nodes(hits(), query_str="tea")) == 4


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="NoReranker"):
        NodeGraphReranker("NoReranker")
    with pytest.raises(ValueError, match="top_n"):
        NodeGraphReranker("KeywordFilter", required="a", top_n=0)
    with pytest.raises(ValueError, match="on_error"):
        NodeGraphReranker("KeywordFilter", required="a", on_error="never")  # type: ignore[arg-type]


async def test_the_loop_stays_free(unblocked: None) -> None:
    rerank = NodeGraphReranker("ModuleReranker", model=lengths)
    assert await rerank.apostprocess_nodes(hits(), query_str="tea")
