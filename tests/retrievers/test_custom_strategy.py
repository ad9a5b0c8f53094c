"""A custom strategy: one ``async def`` method serves all forms of a search."""

from collections.abc import Sequence
from functools import partial

import pytest

from nodekin.nodegraph import LLM, NodeGraph
from nodekin.retrievers import Filters, Retriever
from nodekin.retrievers.base_retriever import BaseRetriever
from nodekin.retrievers.plans.effects import ask, find_one
from nodekin.retrievers.plans.plan import gather
from nodekin.retrievers.results import Results


class StepBack(BaseRetriever):
    """Search for a more general query, which a model writes."""

    calls_model = True

    def __init__(self, inner: Retriever, llm: LLM, **options) -> None:
        super().__init__(**options)
        self.inner, self.llm = inner, llm

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        return await gather([partial(self.search_one, q, limit, filters) for q in queries])

    async def search_one(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        general = await ask(self.llm, f"Ask more generally: {query}")
        return await find_one(self.inner, general, limit, filters)


@pytest.fixture
def step_back() -> StepBack:
    graph = NodeGraph(progress=False)
    graph.add(["Green tea is steamed.", "Rivers run to the sea."])
    model = LLM(lambda prompt: "tea" if "sencha" in prompt else "river", "model")
    return StepBack(Retriever(graph, "ROOT"), model, top_k=1, output_format="content")


async def test_search_all_serves_all_forms(step_back: StepBack) -> None:
    expected = step_back.inner.retrieve("tea", top_k=1)
    assert step_back.retrieve("sencha?") == await step_back.aretrieve("sencha?") == expected != []
    both = [expected, step_back.inner.retrieve("river", top_k=1)]
    assert step_back.batch(["sencha?", "Nile?"]) == both
    assert await step_back.abatch(["sencha?", "Nile?"]) == both
    assert step_back("sencha?") == ["Green tea is steamed."]
    assert step_back.batch([]) == await step_back.abatch([]) == []
