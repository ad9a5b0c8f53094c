"""The search that a graph of documents gets where nothing else is asked for."""

import pytest

from nodekin.adapters.document_search import default_similarity, document_search
from nodekin.nodegraph import NodeGraph, UnknownGroupError
from nodekin.retrievers import DefaultRetriever, Retriever, as_retriever

TEXTS = ["Green tea is steamed. Black tea is fermented.", "Rivers run to the sea. It is salty."]


def letters(texts):
    return [[text.lower().count(letter) + 0.1 for letter in "aeiouy"] for text in texts]


def graph_of(embed=None):
    graph = NodeGraph(embed=embed, progress=False)
    graph.add(TEXTS)
    return graph


def branches(search):
    return [
        (inner.group_name, inner.target, inner.similarity.name)
        for _, inner in search.inner_retrievers
    ]


def test_one_group_is_searched_by_meaning_where_there_is_a_model():
    assert default_similarity(graph_of()) == "bm25"
    assert default_similarity(graph_of(letters)) == "cosine"


@pytest.mark.parametrize("embed", [None, letters])
def test_the_default_is_that_of_every_graph(embed):
    search, of_graph = document_search(graph_of(embed)), as_retriever(graph_of(embed))
    assert type(search) is type(of_graph) is DefaultRetriever
    words = [("ROOT sentence", "ROOT", "bm25"), ("ROOT", "ROOT", "bm25")]
    meaning = [] if embed is None else [("ROOT sentence", "ROOT", "cosine")]
    assert branches(search) == words + meaning
    (result,) = search.retrieve("Is black tea fermented?", top_k=1)
    assert result.node.text == TEXTS[0]
    assert result.evidence[0].node.text == "Black tea is fermented."


def test_a_similarity_of_words_leaves_embeddings_out():
    def embed(texts):
        raise AssertionError(texts)

    search = document_search(graph_of(embed), similarity="bm25_chinese", follow_links=False)
    assert {similarity for _, _, similarity in branches(search)} == {"bm25_chinese"}
    assert search.follow_links is False
    assert search.retrieve("salty", top_k=1)[0].node.text == TEXTS[1]
    exact = document_search(graph_of(), similarity="bm25", index="map")
    assert [r.node.text for r in exact.retrieve("It is salty.")] == [TEXTS[1]]


@pytest.mark.parametrize(
    "options", [{"similarity": "cosine"}, {"similarity_cut_off": 0.1}, {"lift": "sum"}]
)
def test_a_similarity_of_embeddings_or_a_setting_of_one_search_is_one_search(options):
    search = document_search(graph_of(letters), **options)
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target) == ("ROOT sentence", "ROOT")
    assert search.similarity.name == "cosine"
    (result,) = search.retrieve("It is salty.", top_k=1)
    assert (result.node.text, result.evidence[0].node.text) == (TEXTS[1], "It is salty.")


def test_a_named_group_is_searched_alone():
    search = document_search(graph_of(), group="FineChunk", top_k=1)
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.top_k) == ("FineChunk", "ROOT", 1)
    with pytest.raises(UnknownGroupError):
        document_search(graph_of(), group="Fine")


def test_what_would_not_be_used_is_an_error():
    with pytest.raises(ValueError, match="embeddings, of which none are searched"):
        document_search(graph_of(), index="default_")
    with pytest.raises(TypeError, match="embed_keys"):
        document_search(graph_of(letters), similarity="bm25", embed_keys=["default"])
    with pytest.raises(TypeError, match="no option 'follow_links'"):
        document_search(graph_of(), group="ROOT", follow_links=True)
    with pytest.raises(TypeError, match="similarity of texts, not by 'cosine'"):
        DefaultRetriever(graph_of(letters), words="cosine")
