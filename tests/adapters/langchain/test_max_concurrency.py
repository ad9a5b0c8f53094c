"""``max_concurrency`` holds within one call."""

import pytest
from concurrency_gauge import ConcurrencyGauge
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever
from nodekin.retrievers.strategies.strategy_registry import make_strategy


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
async def test_max_concurrency_holds_for_the_model_calls_of_an_answer(way, limit):
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document(f"{name} tea is a drink.", metadata={"source": f"{name}.md"})
            for name in ("Green", "Black", "White", "Red")
        ]
    )
    gauge = ConcurrencyGauge(least=limit or 4)
    engine = QueryEngine(Retriever(graph, "ROOT"), gauge, "map_reduce")
    runnable = NodeGraphQueryEngine(engine=engine)
    call = getattr(runnable, way)("tea", {"max_concurrency": limit} if limit else {})
    assert call if way == "invoke" else await call
    assert gauge.calls == 5
    assert gauge.most == (limit or 4)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
async def test_max_concurrency_holds_for_the_branches_of_a_fusion(way, limit):
    gauge = ConcurrencyGauge(least=limit or 8)
    retriever = NodeGraphRetriever(retriever=FusionRetriever([gauge] * 8))
    call = getattr(retriever, way)("tea", {"max_concurrency": limit} if limit else {})
    assert (call if way == "invoke" else await call) == []
    assert gauge.calls == 8
    assert gauge.most == (limit or 8)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_max_concurrency_holds_for_all_branches_and_sub_questions_together(way):
    gauge = ConcurrencyGauge()
    phrases = [FakeListChatModel(responses=["One tea?\nTwo teas?\nMany teas?"]) for _ in range(3)]
    searches = [make_strategy("multi_query", gauge, model) for model in phrases]
    retriever = NodeGraphRetriever(retriever=FusionRetriever(searches))
    call = getattr(retriever, way)("tea", {"max_concurrency": 4})
    assert (call if way == "invoke" else await call) == []
    assert gauge.calls == 12
    assert gauge.most <= 4
