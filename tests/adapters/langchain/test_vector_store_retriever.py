"""The retriever of a vector store."""

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStoreRetriever

from nodekin.adapters.langchain import NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
async def test_the_filter_of_a_call_is_added(search_type, mode):
    graph = NodeGraph(embed=lambda texts: [[len(text), 1.0] for text in texts], progress=False)
    fields = [{"tenant": tenant, "year": year} for tenant in "ab" for year in (1, 2)]
    graph.add([Document("Tea {tenant}{year}".format(**each), metadata=each) for each in fields])
    own = {"filter": {"tenant": "a"}, "k": 4}
    retriever = NodeGraphVectorStore(graph).as_retriever(
        search_type=search_type, search_kwargs=own, tags=["x"]
    )
    assert isinstance(retriever, VectorStoreRetriever)
    assert retriever.tags == ["x"]

    async def texts(**options):
        if mode == "sync":
            found = retriever.invoke("Tea", **options)
        else:
            found = await retriever.ainvoke("Tea", **options)
        return sorted(document.page_content for document in found)

    assert await texts() == ["Tea a1", "Tea a2"]
    assert await texts(filter=None) == ["Tea a1", "Tea a2"]
    assert await texts(filter={"year": 1}) == ["Tea a1"]
    assert await texts(filter={"year": {"$gte": 2}}) == ["Tea a2"]
    assert await texts(filter={"tenant": "b"}) == []
    assert await texts(k=1, filter={"tenant": ["a", "b"]}) == ["Tea a1"]
