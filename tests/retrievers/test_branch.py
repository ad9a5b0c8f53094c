"""Documents that are found through their sentences."""

import random

import pytest

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import Retriever

DOCUMENTS = 3
SENTENCES = 2_000


@pytest.fixture(scope="module")
def books() -> NodeGraph:
    """Return a graph of a few documents, each of which has many sentences about tea."""
    choice = random.Random(1).choice
    graph = NodeGraph(progress=False)
    for number in range(DOCUMENTS):
        sentences = [
            f"The {choice(['green', 'black', 'white'])} tea is on page {page}."
            for page in range(SENTENCES)
        ]
        sentences.append(f"Only book {number} mentions coffee{number}.")
        graph.add([Document(" ".join(sentences), id=str(number))])
    graph.create_node_group("sentence", split_sentences)
    return graph


def test_each_document_has_score_of_its_best_sentence(books: NodeGraph) -> None:
    for query in ("green tea", "book 1 about white tea", "black tea on page 77"):
        sentences = Retriever(books, "sentence", top_k=DOCUMENTS * SENTENCES)(query)
        best: dict[str, float] = {}
        for result in sentences:
            best.setdefault(result.node.document_id, result.score)
        documents = Retriever(books, "sentence", target="ROOT", top_k=10)(query)
        assert {result.node.id: result.score for result in documents} == best


def test_search_ends_when_all_documents_are_found(books: NodeGraph) -> None:
    documents = Retriever(books, "sentence", target="ROOT", top_k=10)("green tea is on page")
    assert len(documents) == DOCUMENTS
    evidence = sum(len(result.evidence) for result in documents)
    assert evidence < DOCUMENTS * SENTENCES / 2


def test_document_with_few_matching_sentences_is_found(books: NodeGraph) -> None:
    query = "coffee2"
    (document,) = Retriever(books, "sentence", target="ROOT", top_k=10)(query)
    assert document.node.id == "2"
    assert len(document.evidence) == 1
