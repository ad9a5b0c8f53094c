"""Of a LangChain document ``page_content`` is searched, as in LangChain, unless one says more."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import GraphEmbeddings, NodeGraphVectorStore, as_index
from nodekin.nodegraph import MarkdownSplitter, NodeGraph
from nodekin.retrievers import Retriever

DOCUMENTS = [
    Document("It grew by 57%.", metadata={"title": "Lyft", "source": "lyft.txt"}, id="l"),
    Document("It shrank.", metadata={"title": "Uber", "source": "uber.txt"}, id="u"),
]


class Letters(Embeddings):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [[text.lower().count(c) + 0.1 for c in "abcdefghijklmnop"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_metadata_is_not_searched() -> None:
    model = Letters()
    graph = NodeGraph(embed=model)
    graph.add(DOCUMENTS)
    assert [node.searched_text for node in graph.nodes("ROOT")] == ["It grew by 57%.", "It shrank."]
    assert Retriever(graph, "ROOT", "bm25")("Lyft") == []
    store = InMemoryVectorStore(Letters())
    store.add_documents(DOCUMENTS)
    for query in ("Lyft", "Uber grew"):
        theirs = store.similarity_search_with_score(query)
        ours = Retriever(graph, "ROOT", "cosine")(query)
        assert [r.node.id for r in ours] == [document.id for document, _ in theirs]
        assert [r.score for r in ours] == pytest.approx([score for _, score in theirs], abs=1e-5)
        assert ours[0].evidence[0].searched_with == ()


def test_nor_in_a_vector_store_of_nodes() -> None:
    store = NodeGraphVectorStore(NodeGraph(embed=Letters()), similarity="bm25")
    store.add_documents(DOCUMENTS)
    assert store.similarity_search("Lyft") == []


def test_it_is_searched_where_that_is_declared() -> None:
    graph = NodeGraph(embed=Letters(), search_text="title")
    graph.add(DOCUMENTS)
    (best,) = Retriever(graph, "ROOT", "bm25")("Lyft")
    assert best.node.text == "It grew by 57%."
    assert best.evidence[0].searched_with == ("title",)


def test_headings_of_our_splitter_are_searched() -> None:
    graph = NodeGraph()
    graph.add(Document("# Tea\nA drink.\n## Green\nUnfermented.", metadata={"title": "T"}))
    graph.create_node_group("section", MarkdownSplitter())
    graph.create_node_group("line", lambda text: text.splitlines()[1:], parent="section")
    assert [n.searched_text for n in graph.nodes("line")] == [
        "Tea\nA drink.",
        "Tea > Green\nUnfermented.",
    ]


def test_a_store_of_langchain_embeds_what_is_searched() -> None:
    model = Letters()
    graph = NodeGraph(embed=model, search_text="title")
    graph.add(DOCUMENTS)
    store = InMemoryVectorStore(GraphEmbeddings(graph))
    inner = Retriever(graph, "ROOT", "cosine", index=as_index(store))
    plain = Retriever(graph, "ROOT", "cosine")
    ours, theirs = plain("lf"), inner("lf")
    assert [(r.node.id, r.score) for r in theirs] == [(r.node.id, r.score) for r in ours]
    assert sorted(model.texts) == ["Lyft\nIt grew by 57%.", "Uber\nIt shrank.", "lf"]
    graph = NodeGraph(embed=model)
    graph.add(DOCUMENTS)
    again = Retriever(graph, "ROOT", "cosine", index=as_index(InMemoryVectorStore(model)))
    assert again("Lyft")
