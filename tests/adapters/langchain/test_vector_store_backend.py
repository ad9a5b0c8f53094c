import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from support import distances
from support.letters import Letters
from support.vector_stores import CountingStore, library, rows

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.langchain.vector_store_backend import GraphEmbeddings, as_index
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever


async def test_search_over_index_does_not_block_loop():
    graph, index = library(3), as_index(lambda embeddings, group: CountingStore(embeddings))
    native = Retriever(graph, "sentence", "cosine", target="ROOT", index=index, top_k=2)
    retriever = NodeGraphRetriever(retriever=native)
    with blockbuster_ctx():
        found = await retriever.ainvoke("河 river", filter={"even": False})
    assert [d.id for d in found] == [
        each.node.id for each in native.retrieve("河 river", filters={"even": False})
    ]
    assert len(found) == 2


def test_store_with_other_model_raises():
    class Other(Letters):
        def vector(self, text):
            return super().vector(text)[::-1]

    graph = library()
    with pytest.raises(ValueError, match=r"embeds with Other.*GraphEmbeddings\(graph\)"):
        Retriever(graph, "sentence", "cosine", index=as_index(CountingStore(Other()))).retrieve(
            "tea"
        )
    retriever = Retriever(graph, "sentence", "cosine", index=as_index(CountingStore(Letters())))
    assert rows(retriever.retrieve("tea")) == rows(
        Retriever(graph, "sentence", "cosine").retrieve("tea")
    )


def test_store_without_ids_is_read_by_metadata():
    class Nameless(CountingStore):
        def similarity_search_by_vector(self, embedding, k=4, **kwargs):
            found = super().similarity_search_by_vector(embedding, k, **kwargs)
            return [Document(each.page_content, metadata=each.metadata) for each in found]

    graph = library(3)
    index = as_index(lambda embeddings, group: Nameless(embeddings))
    assert rows(Retriever(graph, "sentence", "cosine", index=index).retrieve("tea")) == rows(
        Retriever(graph, "sentence", "cosine").retrieve("tea")
    )


def test_store_without_get_by_ids_is_searched():
    class Blind(CountingStore):
        def get_by_ids(self, ids, /):
            raise NotImplementedError

    graph = library()
    index = as_index(lambda embeddings, group: Blind(embeddings))
    retriever = Retriever(graph, "sentence", "cosine", index=index, top_k=2)
    assert len(retriever.retrieve("tea")) == 2
    graph.remove("d0")
    assert all(each.node.document_id != "d0" for each in retriever.retrieve("tea"))


def test_store_that_cannot_delete_raises():
    class Stubborn(CountingStore):
        def delete(self, ids=None, **kwargs):
            return False

    graph = library()
    index = as_index(lambda embeddings, group: Stubborn(embeddings))
    retriever = Retriever(graph, "sentence", "cosine", index=index)
    retriever.retrieve("tea")
    graph.remove("d0")
    with pytest.raises(ValueError, match="Stubborn did not delete 3 nodes"):
        retriever.retrieve("tea")


def test_as_index_of_other_objects_raises():
    for wrong in ("chroma", InMemoryVectorStore):
        with pytest.raises(TypeError, match="store must be a LangChain vector store"):
            as_index(wrong)
    index = as_index(lambda embeddings, group: "chroma")
    with pytest.raises(TypeError, match="must return a LangChain vector store"):
        Retriever(library(), "sentence", "cosine", index=index).retrieve("tea")

    class Poor(CountingStore):
        similarity_search_by_vector = InMemoryVectorStore.__mro__[1].similarity_search_by_vector

    with pytest.raises(TypeError, match=r"Poor has no similarity_search_by_vector\(\)"):
        as_index(Poor(Letters()))


def numbers(texts):
    return [[len(text), text.count("茶") + 1] for text in texts]


def rounded(vectors):
    return [[round(number, 3) for number in vector] for vector in vectors]


def test_graph_embeddings_returns_unit_vectors():
    embeddings = GraphEmbeddings(NodeGraph(embed=numbers, progress=False))
    assert rounded(embeddings.embed_documents(["tea", "红茶"])) == [[0.949, 0.316], [0.707, 0.707]]
    assert rounded([embeddings.embed_query("茶")]) == [[0.447, 0.894]]
    assert embeddings.embed_documents([]) == []
    store = InMemoryVectorStore(embeddings)
    store.add_texts(["tea", "红茶"])
    assert [d.page_content for d in store.similarity_search("茶", k=1)] == ["红茶"]


async def test_graph_embeddings_does_not_block_loop():
    model = Letters()
    embeddings = GraphEmbeddings(NodeGraph(embed=model, progress=False))
    with blockbuster_ctx():
        vector = await embeddings.aembed_query("tea")
        passages = await embeddings.aembed_documents(["tea"])
    assert vector == passages[0]
    assert sum(number * number for number in vector) == pytest.approx(1)
    assert model.async_queries == ["tea"]


def test_graph_embeddings_requires_known_key():
    graph = NodeGraph(embed={"a": numbers, "b": Letters()}, progress=False)
    assert GraphEmbeddings(graph, "a").key == "a"
    with pytest.raises(LookupError, match="several embeddings exist; name one"):
        GraphEmbeddings(graph)
    with pytest.raises(LookupError, match="no embedding"):
        GraphEmbeddings(NodeGraph())


class EuclideanStore(InMemoryVectorStore):
    """Measures L2, as FAISS and Chroma do by default."""

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        vectors = {i: row["vector"] for i, row in self.store.items()}
        return self.get_by_ids(distances.nearest(vectors, embedding, k))


@pytest.mark.parametrize("made", [True, False])
def test_l2_store_ranks_like_built_in_index(made):
    graph = NodeGraph(embed=distances.uneven, progress=False)
    graph.add([Document(text, id=str(n)) for n, text in enumerate(distances.TEXTS)])
    embeddings = GraphEmbeddings(graph)
    index = as_index(
        (lambda model, group: EuclideanStore(model)) if made else EuclideanStore(embeddings)
    )
    plain, foreign = (
        Retriever(graph, "ROOT", "cosine", top_k=5, **options) for options in ({}, {"index": index})
    )
    for query in distances.QUERIES:
        assert foreign.retrieve(query) == plain.retrieve(query)


def test_store_with_own_long_vectors_warns(caplog):
    graph = NodeGraph(embed=distances.uneven, progress=False)
    graph.add(distances.TEXTS)

    class Own(Letters):
        def vector(self, text):
            return distances.uneven([text])[0].tolist()

    index = as_index(EuclideanStore(Own()))
    Retriever(graph, "ROOT", "cosine", index=index).retrieve("Which subject?")
    assert "not of unit length" in caplog.text
