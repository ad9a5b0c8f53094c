"""What to write instead of the argument names of other libraries."""

from functools import partial

import pytest
from support.foreign_names import unanswered

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.foreign_names import advice
from nodekin.retrievers import DefaultRetriever, Reranker, Retriever

REQUIRED = {
    Retriever: [NodeGraph(), "ROOT"],
    DefaultRetriever: [NodeGraph()],
    Reranker: ["KeywordFilter"],
}

# Parameters of LazyLLM 0.6 and haystack 2.20, which the tests do not install.
LAZYLLM = {
    NodeGraph: (
        "dataset_path embed create_ui manager server launcher store_conf doc_fields cloud doc_files"
    ),
    Retriever: (
        "doc group_name similarity similarity_cut_off index topk embed_keys target output_format "
        "join similarity_kw"
    ),
    Reranker: "name target output_format join topk",
}
HAYSTACK = {
    NodeGraph: (
        "bm25_tokenization_regex bm25_algorithm bm25_parameters embedding_similarity_function "
        "async_executor return_embedding"
    ),
    DefaultRetriever: ("document_store filters top_k scale_score filter_policy return_embedding"),
}


@pytest.mark.parametrize("cls", [*LAZYLLM])
def test_names_of_lazyllm_are_answered(cls):
    assert unanswered(partial(cls, *REQUIRED.get(cls, ())), LAZYLLM[cls].split()) == {}


@pytest.mark.parametrize("cls", [*HAYSTACK])
def test_names_of_haystack_are_answered(cls):
    assert unanswered(partial(cls, *REQUIRED.get(cls, ())), HAYSTACK[cls].split()) == {}


@pytest.mark.parametrize(
    ("name", "allowed", "says"),
    [
        ("k", ["top_k"], "'k' is called 'top_k' here"),
        ("top_k", ["k"], "'top_k' is called 'k' here"),
        ("top_k", ["similarity_top_k"], "'top_k' is called 'similarity_top_k' here"),
        ("topk", ["top_n"], "'topk' is called 'top_n' here"),
        ("limit", ["max_queries"], "'limit' is called 'max_queries' here"),
        ("filters", ["filter"], "'filters' is called 'filter' here"),
        ("persist_directory", ["store"], "'persist_directory' is called 'store' here"),
        ("similarity_kw", [], "settings of a similarity go to the similarity"),
        ("launcher", [], "nodekin runs in this process"),
        ("colour", ["top_k"], ""),
    ],
)
def test_advice_names_what_to_write(name, allowed, says):
    assert advice(name, allowed).startswith(says)
    assert bool(advice(name, allowed)) == bool(says)
