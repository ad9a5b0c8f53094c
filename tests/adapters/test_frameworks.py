"""Functions of both framework adapters."""

from importlib import import_module
from inspect import ismodule

import pytest

from nodekin.adapters.frameworks import (
    copied_metadata,
    default_similarity,
    document_search,
    input_positions,
    own_metadata,
)
from nodekin.nodegraph import Node, NodeGraph, UnknownGroupError
from nodekin.nodegraph.lazy_names import SHARED
from nodekin.retrievers import DefaultRetriever, Retriever, ScoredNode, as_retriever


def test_star_imports_have_no_names_of_frameworks():
    modules = (
        *("langchain_core.documents", "langchain_core.retrievers", "langchain_core.prompts"),
        *("langchain_classic.retrievers", "langchain_core.vectorstores"),
        *("llama_index.core", "llama_index.core.retrievers", "llama_index.core.schema"),
        *("llama_index.core.query_engine", "llama_index.core.node_parser"),
    )
    theirs = {
        name
        for module in map(import_module, modules)
        for name in dir(module)
        if not ismodule(vars(module).get(name))  # a submodule that some test has imported
    }
    assert theirs >= SHARED
    for package in (
        "",
        ".nodegraph",
        ".retrievers",
        ".adapters.langchain",
        ".adapters.llama_index",
    ):
        assert not theirs & {*import_module(f"nodekin{package}").__all__}


def test_input_positions_match_objects_then_ids():
    nodes = [Node("a", id="1"), Node("b", id="2"), Node("a again", id="1")]
    candidates = [ScoredNode(node, 0.0) for node in nodes]
    reranked = [ScoredNode(node, 1.0) for node in reversed(nodes)]
    assert input_positions(reranked, candidates) == [2, 1, 0]
    others = [ScoredNode(Node("copied", id="2"), 1.0), ScoredNode(Node("new", id="3"), 1.0)]
    assert input_positions(others, candidates) == [1, None]


def test_copied_metadata_is_a_deep_copy():
    node = Node("a", {"tags": ["x"], "page": 3})
    copied = copied_metadata(node, node.metadata)
    assert copied == {"tags": ["x"], "page": 3}
    copied["tags"].append("y")
    assert node.metadata["tags"] == ["x"]


def test_own_metadata_drops_fields_of_parent():
    assert own_metadata({"page": 3, "topic": "tea", "n": 1}, {"page": 3, "topic": "x"}) == {
        "topic": "tea",
        "n": 1,
    }
    assert own_metadata({"flag": True, "n": 1}, {"flag": 1, "n": 1}) == {"flag": True}


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


def test_default_similarity_depends_on_model():
    assert default_similarity(graph_of()) == "bm25"
    assert default_similarity(graph_of(letters)) == "cosine"


@pytest.mark.parametrize("embed", [None, letters])
def test_document_search_equals_as_retriever(embed):
    search, of_graph = document_search(graph_of(embed)), as_retriever(graph_of(embed))
    assert type(search) is type(of_graph) is DefaultRetriever
    words = [("ROOT sentence", "ROOT", "bm25"), ("ROOT", "ROOT", "bm25")]
    meaning = [] if embed is None else [("ROOT sentence", "ROOT", "cosine")]
    assert branches(search) == words + meaning
    (result,) = search.retrieve("Is black tea fermented?", top_k=1)
    assert result.node.text == TEXTS[0]
    assert result.evidence[0].node.text == "Black tea is fermented."


def test_bm25_search_uses_no_embeddings():
    def embed(texts):
        raise AssertionError(texts)

    graph = graph_of(embed)
    search, plain = document_search(graph, similarity="bm25"), Retriever(graph, "ROOT", "bm25")
    for query in ("salty", "Is black tea fermented?", "tea"):
        assert [(r.node.id, r.score) for r in search.retrieve(query)] == [
            (r.node.id, r.score) for r in plain.retrieve(query)
        ]
    exact = document_search(graph_of(), similarity="bm25", index="map")
    assert [r.node.text for r in exact.retrieve(TEXTS[1])] == [TEXTS[1]]
    (summed,) = document_search(graph_of(), lift="sum").retrieve("fermented", top_k=1)
    assert summed.evidence[0].node.group == "ROOT sentence"


@pytest.mark.parametrize(
    "options", [{"similarity": "cosine"}, {"similarity_cut_off": 0.1}, {"lift": "sum"}]
)
def test_single_search_options_select_sentences(options):
    search = document_search(graph_of(letters), **options)
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target) == ("ROOT sentence", "ROOT")
    assert search.similarity.name == "cosine"
    (result,) = search.retrieve("It is salty.", top_k=1)
    assert (result.node.text, result.evidence[0].node.text) == (TEXTS[1], "It is salty.")


def test_group_is_searched_alone():
    search = document_search(graph_of(), group="FineChunk", top_k=1)
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.top_k) == ("FineChunk", "ROOT", 1)
    with pytest.raises(UnknownGroupError):
        document_search(graph_of(), group="Fine")


def test_unused_options_raise():
    with pytest.raises(ValueError, match="embeddings, of which none are searched"):
        document_search(graph_of(), index="default_")
    with pytest.raises(ValueError, match="embed_keys"):
        document_search(graph_of(letters), similarity="bm25", embed_keys=["default"])
    with pytest.raises(TypeError, match="no option 'follow_links'"):
        document_search(graph_of(), group="ROOT", follow_links=True)
    with pytest.raises(TypeError, match="similarity of texts, not by 'cosine'"):
        DefaultRetriever(graph_of(letters), words="cosine")
