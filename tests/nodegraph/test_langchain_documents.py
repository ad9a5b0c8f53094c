"""LangChain documents and loaders in a graph."""

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter
from support.langchain_peers import Recording

from nodekin.adapters.langchain import (
    as_transform,
)
from nodekin.nodegraph import MarkdownSplitter, NodeGraph
from nodekin.retrievers import QueryEngine, Retriever

PAGES = [
    Document("Tea is a drink.", id="tea", metadata={"page": 1}),
    Document("河流入海。", metadata={"page": 2}),
]


class Lazy(BaseLoader):
    def lazy_load(self):
        yield from PAGES


def test_add_loads_a_loader():
    graph, loader = NodeGraph(progress=False), Lazy()
    ids = graph.add(loader)
    assert ids[0] == "tea"
    assert [(n.text, n.metadata) for n in graph.nodes("ROOT")] == [
        (page.page_content, page.metadata) for page in PAGES
    ]
    assert graph.add(loader.lazy_load()) == graph.add(loader.load()) == ids
    assert graph.add(loader) == ids
    assert len(graph.nodes("ROOT")) == 2


DOCUMENTS = [
    Document("It grew by 57%.", metadata={"title": "Lyft", "source": "lyft.txt"}, id="l"),
    Document("It shrank.", metadata={"title": "Uber", "source": "uber.txt"}, id="u"),
]


class Counted(Embeddings):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [[text.lower().count(c) + 0.1 for c in "abcdefghijklmnop"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_langchain_metadata_is_not_searched() -> None:
    model = Counted()
    graph = NodeGraph(embed=model)
    graph.add(DOCUMENTS)
    assert [node.searched_text for node in graph.nodes("ROOT")] == ["It grew by 57%.", "It shrank."]
    assert Retriever(graph, "ROOT", "bm25")("Lyft") == []
    store = InMemoryVectorStore(Counted())
    store.add_documents(DOCUMENTS)
    for query in ("Lyft", "Uber grew"):
        theirs = store.similarity_search_with_score(query)
        ours = Retriever(graph, "ROOT", "cosine")(query)
        assert [r.node.id for r in ours] == [document.id for document, _ in theirs]
        assert [r.score for r in ours] == pytest.approx([score for _, score in theirs], abs=1e-5)
        assert ours[0].evidence[0].searched_with == ()


def test_headings_of_nodekin_splitters_are_searched() -> None:
    graph = NodeGraph()
    graph.add(Document("# Tea\nA drink.\n## Green\nUnfermented.", metadata={"title": "T"}))
    graph.create_node_group("section", MarkdownSplitter())
    graph.create_node_group("line", lambda text: text.splitlines()[1:], parent="section")
    assert [n.searched_text for n in graph.nodes("line")] == [
        "Tea\nA drink.",
        "Tea > Green\nUnfermented.",
    ]


def test_langchain_markdown_headers_are_headings():
    text = "# Tea\n\nAll of it.\n\n## Green\n\nIt is steamed.\n\n## Black\n\nIt is fermented."
    splitter = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")])
    graph = NodeGraph(progress=False)
    graph.add([Document(text, metadata={"source": "docs/tea.md"}), *splitter.split_text(text)])
    graph.create_node_group("section", as_transform(splitter))
    for group in ("section", "ROOT"):
        search = Retriever(graph, group, "bm25", top_k=1)
        model = Recording(responses=["Steamed [1]."])
        answer = QueryEngine(search, model).query("Green, and how is it steamed?")
        assert answer.sources[0].title.endswith("Tea › Green")
    # The heading is searched with the text, which does not repeat it.
    (result,) = Retriever(graph, "section", "bm25", top_k=1).retrieve("green")
    assert result.node.text == "It is steamed."
