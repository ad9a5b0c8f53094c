"""Comparison with LangChain's ParentDocumentRetriever.

All retrievers use equal embeddings. Tests of equal results come first, then tests of differences.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter
from support.embedding_models import LangChainVectors

from nodekin.nodegraph import ROOT, NodeGraph
from nodekin.retrievers import Retriever

TEXTS = {
    "tea": "Green tea is steamed. Black tea is fermented.\n\nTea comes from leaves.",
    "coffee": "Coffee is roasted. Coffee comes from beans.\n\nIt is drunk hot.",
    "river": "Rivers run to the sea. The sea is salty.\n\nFish live in both.",
    "茶": "绿茶是蒸青的。红茶是发酵的。\n\n茶来自云南的大树。",
    "both": "Tea 茶 and coffee 咖啡 are drunk everywhere。\n\nBoth are picked by hand。",
}
QUESTIONS = [
    "What is fermented?",
    "Where do rivers run?",
    "beans and leaves",
    "红茶怎么做？",
    "茶 tea",
]


def vector(text: str) -> list[float]:
    """Count characters and pairs of them, so that hardly any two cosines are equal."""
    counts = np.zeros(1024)
    for one, two in pairwise(f" {text.lower()} "):
        counts[ord(two) % 509] += 0.3
        counts[509 + (ord(one) * 31 + ord(two)) % 509] += 1
    counts[-1] = 1
    return counts.tolist()


def small() -> RecursiveCharacterTextSplitter:
    ends = ["\n\n", ". ", "。", ""]
    return RecursiveCharacterTextSplitter(
        separators=ends, chunk_size=24, chunk_overlap=0, keep_separator="end"
    )


def paragraphs() -> CharacterTextSplitter:
    return CharacterTextSplitter(separator="\n\n", chunk_size=45, chunk_overlap=0)


def theirs(*, k: int, parents: CharacterTextSplitter | None = None) -> ParentDocumentRetriever:
    """Return LangChain's retriever over the texts, which finds ``k`` children."""
    retriever = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(LangChainVectors(vector)),
        docstore=InMemoryStore(),
        child_splitter=small(),
        parent_splitter=parents,
        search_kwargs={"k": k},
    )
    documents = [Document(text, metadata={"id": i}) for i, text in TEXTS.items()]
    retriever.add_documents(documents, None if parents else list(TEXTS))
    return retriever


@pytest.fixture
def graph() -> NodeGraph:
    """Return the same texts, cut by the same splitters and embedded by the same model."""
    graph = NodeGraph(embed=LangChainVectors(vector), progress=False)
    graph.add([Document(text, metadata={"id": i}, id=i) for i, text in TEXTS.items()])
    graph.create_node_group("child", small())
    graph.create_node_group("paragraph", paragraphs())
    graph.create_node_group("part", small(), parent="paragraph")
    return graph


def texts(results: Sequence[Any]) -> list[str]:
    return [result.node.text for result in results]


def contents(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_retriever_ranks_parents_by_best_child_like_langchain(
    graph: NodeGraph, question: str
) -> None:
    mine = Retriever(graph, "child", "cosine", target=ROOT, top_k=len(TEXTS))
    other = theirs(k=100)
    expected = contents(other.invoke(question))
    assert sorted(expected) == sorted(TEXTS.values())
    assert texts(mine.retrieve(question)) == expected
    assert texts(await mine.aretrieve(question)) == contents(await other.ainvoke(question))


@pytest.mark.parametrize("question", QUESTIONS)
def test_chunks_as_parents_match_langchain(graph: NodeGraph, question: str) -> None:
    """LangChain's three levels are three groups; the parents are nodes of the middle group."""
    expected = contents(theirs(k=100, parents=paragraphs()).invoke(question))
    mine = Retriever(graph, "part", "cosine", target="paragraph", top_k=100)(question)
    assert len(expected) > len(TEXTS)
    assert texts(mine) == expected
    assert {each.node.document_id for each in mine} == set(TEXTS)


def test_top_k_counts_parents_instead_of_children(graph: NodeGraph) -> None:
    """LangChain returns fewer than ``k`` parents if several children share a parent."""
    question = "Coffee is roasted. Coffee comes from beans."
    assert contents(theirs(k=2).invoke(question)) == [TEXTS["coffee"]]
    mine = Retriever(graph, "child", "cosine", target=ROOT, top_k=2)(question)
    assert [each.node.id for each in mine] == ["coffee", "tea"]
    assert mine[0].score > mine[1].score  # LangChain returns no scores


def test_updated_parent_is_not_found_by_old_text(graph: NodeGraph) -> None:
    other, question = theirs(k=1), "Rivers run to the sea."
    new = "Mountains stand still."
    other.add_documents([Document(new)], ["river"])
    assert contents(other.invoke(question)) == [new]  # its old children are still searched
    graph.add(Document(new, id="river"))
    mine = Retriever(graph, "child", "cosine", target=ROOT)
    found = mine.retrieve("Mountains stand still.", top_k=1)
    assert texts(found) == [new]
    every = mine.retrieve(question, top_k=10)
    assert {match.node.text for each in every for match in each.evidence}.isdisjoint(
        piece.strip() for piece in small().split_text(TEXTS["river"])
    )
