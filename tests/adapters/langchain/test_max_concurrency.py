"""``max_concurrency`` holds within one call."""

import pytest
from concurrency_gauge import ConcurrencyGauge
from langchain_core.language_models import FakeListChatModel

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever
from nodekin.retrievers.strategies.strategy_registry import make_strategy


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("of_models", [False, True])
async def test_max_concurrency_holds_for_branches_and_model_calls(way, limit, of_models):
    gauge = ConcurrencyGauge(least=limit or 4)
    runnable = NodeGraphRetriever(FusionRetriever([gauge] * 4))
    if of_models:
        graph = NodeGraph(progress=False)
        graph.add([f"{name} tea is a drink." for name in ("Green", "Black", "White", "Red")])
        runnable = NodeGraphQueryEngine(QueryEngine(Retriever(graph, "ROOT"), gauge, "map_reduce"))
    call = getattr(runnable, way)("tea", {"max_concurrency": limit} if limit else {})
    assert bool(call if way == "invoke" else await call) == of_models
    assert gauge.calls == 4 + of_models
    assert gauge.most == (limit or 4)


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
