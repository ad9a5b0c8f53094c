import pytest
from blockbuster import blockbuster_ctx
from langchain_core.vectorstores import InMemoryVectorStore
from letters import Letters

from nodekin.adapters.langchain.vector_index import GraphEmbeddings
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever


def numbers(texts):
    return [[len(text), text.count("茶") + 1] for text in texts]


def test_any_model_becomes_langchains():
    embeddings = GraphEmbeddings(NodeGraph(embed=numbers, progress=False))
    assert embeddings.embed_documents(["tea", "红茶"]) == [[3, 1], [2, 2]]
    assert embeddings.embed_query("茶") == [1, 2]
    assert embeddings.embed_documents([]) == []
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["tea", "红茶"])
    assert [d.page_content for d in store.similarity_search("茶", k=1)] == ["红茶"]


def test_what_was_embedded_is_not_embedded_again(tmp_path):
    model = Letters()
    with NodeGraph(embed=model, store=tmp_path / "g.nodekin", progress=False) as graph:
        graph.add(["tea", "河"])
        Retriever(graph, "ROOT", "cosine").retrieve("tea")
        assert GraphEmbeddings(graph).embed_documents(["tea", "河"]) == [
            pytest.approx(model.vector(text)) for text in ("tea", "河")
        ]
    assert model.passages == ["tea", "河"]


async def test_queries_are_embedded_without_blocking():
    model = Letters()
    embeddings = GraphEmbeddings(NodeGraph(embed=model, progress=False))
    with blockbuster_ctx():
        vector = await embeddings.aembed_query("tea")
        passages = await embeddings.aembed_documents(["tea"])
    assert vector == passages[0] == pytest.approx(model.vector("tea"))
    assert model.async_queries == ["tea"]


def test_which_embedding():
    graph = NodeGraph(embed={"a": numbers, "b": Letters()}, progress=False)
    assert GraphEmbeddings(graph, "a").key == "a"
    with pytest.raises(LookupError, match="say which embedding"):
        GraphEmbeddings(graph)
    with pytest.raises(LookupError, match="no embedding"):
        GraphEmbeddings(NodeGraph())
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        GraphEmbeddings("graph")
