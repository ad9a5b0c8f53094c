"""Documents are embedded when they are added, and searches compare vectors."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore, as_index
from nodekin.nodegraph import EmbeddingError, NodeGraph, SearchText, split_sentences
from nodekin.retrievers import DefaultRetriever, Retriever
from nodekin.retrievers.composite.default_retriever import MISSING

MANY = MISSING + 100


def numbered(count: int) -> list[Document]:
    return [Document(f"Tea {n} is green. Rivers {n} run.", id=f"d{n}") for n in range(count)]


def from_documents(documents: list[Document], model: Any) -> NodeGraphRetriever:
    return NodeGraphRetriever.from_documents(documents, model)


def from_texts(documents: list[Document], model: Any) -> NodeGraphRetriever:
    texts = [document.page_content for document in documents]
    return NodeGraphRetriever.from_texts(texts, model)


def from_graph(documents: list[Document], model: Any) -> NodeGraphRetriever:
    retriever = NodeGraphRetriever.from_graph(NodeGraph(embed=model, progress=False))
    retriever.add_documents(documents)
    return retriever


def added_async(documents: list[Document], model: Any) -> NodeGraphRetriever:
    retriever = NodeGraphRetriever.from_documents([], model)
    asyncio.run(retriever.aadd_documents(documents))
    return retriever


WAYS = [from_documents, from_texts, from_graph, added_async]


class Failing(Embeddings):
    """A model that fails after some batches."""

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.calls == 0:
            raise ConnectionError("the server is down")
        self.calls -= 1
        return [[1.0, 2.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.parametrize("make", WAYS)
def test_many_added_documents_are_searched_by_vectors(
    make: Callable[..., NodeGraphRetriever], caplog: pytest.LogCaptureFixture
) -> None:
    model = Letters()
    with caplog.at_level(logging.WARNING, "nodekin"):
        retriever = make(numbered(MANY), model)
        assert len(model.passages) == MANY
        (document,) = make_evidence(retriever).invoke("tea 7", k=1)
    assert "cosine" in {match["similarity"] for match in document.metadata["evidence"]}
    assert len(model.passages) == 3 * MANY  # with two sentences of each document
    assert caplog.messages == []


def make_evidence(retriever: NodeGraphRetriever) -> NodeGraphRetriever:
    return retriever.model_copy(update={"evidence": True})


@pytest.mark.parametrize("first", ["ainvoke", "abatch", "batch"])
def test_first_search_of_any_kind_uses_vectors(first: str) -> None:
    retriever = make_evidence(NodeGraphRetriever.from_documents(numbered(MANY), Letters()))
    if first == "ainvoke":
        documents = asyncio.run(retriever.ainvoke("tea 7"))
    elif first == "abatch":
        documents = asyncio.run(retriever.abatch(["tea 7"]))[0]
    else:
        documents = retriever.batch(["tea 7"])[0]
    matches = [match for document in documents for match in document.metadata["evidence"]]
    assert "cosine" in {match["similarity"] for match in matches}


def test_windows_of_many_documents_are_searched_by_vectors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    retriever = make_evidence(NodeGraphRetriever.from_documents(numbered(MANY), Letters()))
    windows = retriever.invoke("tea 7", max_tokens=20)
    matches = [match for document in windows for match in document.metadata["evidence"]]
    assert "cosine" in {match["similarity"] for match in matches}
    assert caplog.messages == []


def test_retriever_of_a_graph_uses_vectors() -> None:
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add([document.page_content for document in numbered(MANY)])
    retriever = NodeGraphRetriever(graph=graph, evidence=True)
    documents = retriever.invoke("tea 7")
    matches = [match for document in documents for match in document.metadata["evidence"]]
    assert "cosine" in {match["similarity"] for match in matches}


def test_documents_are_embedded_in_batches() -> None:
    sizes: list[int] = []

    class Batches(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            sizes.append(len(texts))
            return super().embed_documents(texts)

    NodeGraphRetriever.from_documents(numbered(MANY), Batches())
    assert sum(sizes) == MANY
    assert len(sizes) < MANY / 10


@pytest.mark.parametrize("calls", [0, 1])
@pytest.mark.parametrize("kind", [NodeGraphRetriever, NodeGraphVectorStore])
@pytest.mark.parametrize("is_async", [False, True])
def test_failing_model_adds_no_documents(kind: Any, is_async: bool, calls: int) -> None:
    holder = kind.from_documents([], Failing(calls))
    holder.graph.add("An older text.")

    def add() -> None:
        if is_async:
            asyncio.run(holder.aadd_documents(numbered(MANY)))
        else:
            holder.add_documents(numbered(MANY))

    with pytest.raises(EmbeddingError, match="the server is down"):
        add()
    assert [node.text for node in holder.graph.nodes("ROOT")] == ["An older text."]


def test_failing_model_changes_no_document() -> None:
    model = Failing(1)
    retriever = NodeGraphRetriever.from_documents([Document("Old.", id="a")], model)
    with pytest.raises(EmbeddingError):
        retriever.add_documents([Document("New.", id="a")])
    assert [node.text for node in retriever.graph.nodes("ROOT")] == ["Old."]  # type: ignore[union-attr]


def test_failing_model_is_the_cause_as_in_langchain() -> None:
    with pytest.raises(ConnectionError):
        InMemoryVectorStore.from_documents(numbered(1), Failing())
    with pytest.raises(EmbeddingError) as raised:
        NodeGraphRetriever.from_documents(numbered(1), Failing())
    assert isinstance(raised.value.__cause__, ConnectionError)


def by_sentences(graph: NodeGraph) -> Retriever:
    graph.create_node_group("sentence", split_sentences)
    return Retriever(graph, "sentence", "cosine", target="ROOT")


@pytest.mark.parametrize(
    "make",
    [
        lambda graph: NodeGraphRetriever.from_graph(graph, similarity="bm25"),
        lambda graph: NodeGraphRetriever.from_graph(graph, embed_keys=[]),
        lambda graph: NodeGraphRetriever(by_sentences(graph), graph=graph),
        lambda graph: NodeGraphRetriever(DefaultRetriever(graph), graph=graph),
        lambda graph: NodeGraphVectorStore.from_graph(graph, similarity="bm25"),
        lambda graph: NodeGraphVectorStore.from_graph(
            graph, index=as_index(InMemoryVectorStore(Letters()))
        ),
        lambda graph: NodeGraphRetriever.from_graph(
            graph, index=as_index(InMemoryVectorStore(Letters()))
        ),
    ],
)
def test_vectors_that_no_search_compares_are_not_computed(make: Any) -> None:
    model = Letters()
    make(NodeGraph(embed=model, progress=False)).add_documents(numbered(3))
    assert model.passages == []


def titled() -> Iterator[Document]:
    for document in numbered(3):
        document.metadata["title"] = "Drinks"
        yield document


@pytest.mark.parametrize(
    "search_text",
    [None, False, "title", SearchText("title", groups=["label"]), lambda node: f"<{node.text}>"],
)
def test_searched_texts_are_embedded_once(search_text: Any) -> None:
    model = Letters()
    graph = NodeGraph(embed=model, progress=False, search_text=search_text)
    graph.create_node_group("label", lambda text: ["label"])
    store = NodeGraphVectorStore.from_graph(graph)
    store.add_documents(titled())
    store.add_documents(titled())
    store.similarity_search("tea")
    assert len(model.passages) == 3
    assert set(model.passages) == set(graph.reader.searched_texts(graph.nodes("ROOT")))
