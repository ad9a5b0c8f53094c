"""The search that a graph of documents gets where nothing else is asked for."""

import pytest

from nodekin.adapters.document_search import default_similarity, document_search
from nodekin.nodegraph import NodeGraph, UnknownGroupError
from nodekin.retrievers import FusionRetriever, Retriever

TEXTS = ["Green tea is steamed. Black tea is fermented.", "Rivers run to the sea. It is salty."]


def letters(texts):
    return [[text.lower().count(letter) + 0.1 for letter in "aeiouy"] for text in texts]


def graph_of(embed=None):
    graph = NodeGraph(embed=embed, progress=False)
    graph.add(TEXTS)
    return graph


def test_a_graph_with_a_model_is_searched_by_meaning():
    assert default_similarity(graph_of()) == "bm25"
    assert default_similarity(graph_of(letters)) == "cosine"


def test_words_of_sentences_and_of_documents_are_fused():
    search = document_search(graph_of())
    assert isinstance(search, FusionRetriever)
    (result,) = search.retrieve("Is black tea fermented?", top_k=1)
    assert result.node.text == TEXTS[0]
    assert {match.group for match in result.evidence} == {"sentence", "ROOT"}
    assert result.evidence[0].node.text == "Black tea is fermented."


def test_vectors_of_sentences_are_searched_for_their_documents():
    search = document_search(graph_of(letters))
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.similarity.name) == (
        "sentence",
        "ROOT",
        "cosine",
    )
    (result,) = search.retrieve("It is salty.", top_k=1)
    assert (result.node.text, result.evidence[0].node.text) == (TEXTS[1], "It is salty.")


def test_a_named_group_is_searched_alone():
    search = document_search(graph_of(), group="FineChunk", top_k=1)
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.top_k) == ("FineChunk", "ROOT", 1)
    with pytest.raises(UnknownGroupError):
        document_search(graph_of(), group="Fine")


def test_sentences_of_ones_own_stay():
    graph = graph_of()
    graph.create_node_group("sentence", lambda text: text.split(" "))
    document_search(graph)
    assert len(graph.nodes("sentence")) == 16
