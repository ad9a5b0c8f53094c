"""What to write instead of the argument names of other libraries."""

from functools import partial

import pytest
from support.foreign_names import unanswered

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.foreign_names import advice
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    HyDERetriever,
    Reranker,
    RerankRetriever,
    Retriever,
)

REQUIRED = {
    Retriever: [NodeGraph(), "ROOT"],
    DefaultRetriever: [NodeGraph()],
    Reranker: ["KeywordFilter"],
}

ARGUMENTS = {
    HyDERetriever: [NodeGraph(), str],
    FusionRetriever: [[NodeGraph()]],
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
        ("metadatas", ["items"], "write it into the documents: Document(text, metadata, id="),
        ("id", ["items"], "write it into the documents"),
        ("colour", ["top_k"], ""),
    ],
)
def test_advice_names_what_to_write(name, allowed, says):
    assert advice(name, allowed).startswith(says)
    assert bool(advice(name, allowed)) == bool(says)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda result: result.get_text(), r"'get_text'; write \.text$"),
        (lambda result: result.get_content(), r"'get_content'; write \.text$"),
        (lambda result: result.meta, r"'meta'; write \.metadata$"),
        (lambda result: result.node_id, r"'node_id'; write \.node\.id$"),
        (lambda result: result.relevance_score, r"write \.score$"),
        (lambda result: result.node.get_content(), r"'Node' .*'get_content'; write \.text$"),
        (lambda result: result.node.page_content, r"write \.text$"),
        (lambda result: result.node.colour, r"no attribute 'colour'$"),
        (lambda result: result.insert, r"no attribute 'insert'$"),
        (lambda result: result.content, r"'content'; write \.text$"),
        (lambda result: result.colour, r"no attribute 'colour'$"),
        (lambda result: result.node.graph.delete("a"), r"'NodeGraph' .*'delete'; write \.remove$"),
        (lambda result: result.node.graph.add_texts(["a"]), r"'add_texts'; write \.add$"),
        (lambda result: result.node.graph.query("tea"), r"'query'; write \.search$"),
        (lambda result: result.node.graph.colour, r"no attribute 'colour'$"),
    ],
)
def test_missing_attribute_names_ours(read, says):
    graph = NodeGraph(progress=False)
    graph.add("green tea")
    with pytest.raises(AttributeError, match=says):
        read(graph.search("tea")[0])


def test_predefined_groups_are_named_as_in_lazyllm():
    graph = NodeGraph(progress=False)
    graph.add("green tea")
    for group in (Document.CoarseChunk, Document.MediumChunk, Document.FineChunk):
        assert Retriever(graph, group, "bm25")("tea")[0].node.group == group


@pytest.mark.parametrize("cls", [HyDERetriever, DefaultRetriever, FusionRetriever, Retriever])
def test_error_names_the_class_that_was_called(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__}\(\) got an unexpected keyword"):
        cls(*ARGUMENTS.get(cls, REQUIRED.get(cls, ())), colour="green")


def test_setting_of_a_reranker_is_answered():
    with pytest.raises(TypeError, match=r"'min_score'; write RerankRetriever\(retriever, Reranker"):
        RerankRetriever(REQUIRED[Retriever][0], "ModuleReranker", model=max, min_score=0.5)
