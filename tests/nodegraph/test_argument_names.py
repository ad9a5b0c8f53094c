"""Errors for argument names of other libraries."""

import asyncio

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.errors import explain_names
from nodekin.retrievers import (
    FusionRetriever,
    MultiQueryRetriever,
    QueryEngine,
    Reranker,
    RerankRetriever,
    Retriever,
    as_retriever,
    register_similarity,
)


@pytest.fixture
def retriever() -> Retriever:
    graph = NodeGraph(progress=False)
    graph.add(["green tea", "black tea"])
    return Retriever(graph, "ROOT")


@pytest.mark.parametrize(
    ("call", "theirs", "ours"),
    [
        (lambda r: Retriever(r.graphs[0], "ROOT", topk=3), "topk", "top_k"),
        (lambda r: Retriever(doc=r.graphs[0], group="ROOT"), "doc", "graph"),
        (
            lambda r: Retriever(r.graphs[0], "ROOT", similarity_cut_off=0.5),
            "similarity_cut_off",
            "min_score",
        ),
        (lambda r: register_similarity(descend=False), "descend", "higher_is_better"),
        (lambda r: as_retriever(r, similarity_cutoff=0.5), "similarity_cutoff", "min_score"),
        (lambda r: r("tea", topk=3), "topk", "top_k"),
        (lambda r: r.retrieve("tea", k=3), "k", "top_k"),
        (lambda r: r.batch(["tea"], similarity_top_k=3), "similarity_top_k", "top_k"),
        (lambda r: asyncio.run(r.aretrieve("tea", k=3)), "k", "top_k"),
        (lambda r: r("tea", filter={}), "filter", "filters"),
        (lambda r: FusionRetriever([r], similarity_top_k=3), "similarity_top_k", "top_k"),
        (lambda r: RerankRetriever(base_retriever=r, reranker="x"), "base_retriever", "inner"),
        (lambda r: Reranker("KeywordFilter", topk=3), "topk", "top_k"),
        (lambda r: Reranker(name="KeywordFilter"), "name", "reranker"),
        (lambda r: QueryEngine(r, model=str), "model", "llm"),
        (lambda r: QueryEngine(r, str.upper).query("tea", k=3), "k", "top_k"),
        (lambda r: MultiQueryRetriever(r, str, topk=3), "topk", "top_k"),
        (lambda r: NodeGraph(embed_model=len), "embed_model", "embed"),
        (lambda r: NodeGraph(dataset_path="docs"), "dataset_path", "source"),
    ],
)
def test_foreign_argument_name_raises_with_ours(retriever, call, theirs, ours) -> None:
    with pytest.raises(TypeError, match=f"; '{theirs}' is called '{ours}' here$"):
        call(retriever)


def test_unknown_argument_names_valid_ones(retriever) -> None:
    with pytest.raises(TypeError, match=r"keyword argument 'colour'; valid names are 'query', "):
        retriever("tea", colour="green")
    with pytest.raises(TypeError, match=r"'embed_ky'.*'embed_keys'"):
        Retriever(retriever.graphs[0], "ROOT", embed_ky=["e5"])
    with pytest.raises(TypeError, match=r"'k1'; settings of a similarity go to the similarity"):
        Retriever(retriever.graphs[0], "ROOT", k1=1.2)
    with pytest.raises(TypeError, match=r"'promt'; valid names are 'prompt', .*'max_queries'"):
        MultiQueryRetriever(retriever, str, promt="x")
    with pytest.raises(TypeError, match=r"'merge'; valid names are 'merge_by', .*'mode'"):
        FusionRetriever([retriever], merge="id")
    with pytest.raises(TypeError, match=r"write it in the call: retriever\(query, output_format="):
        FusionRetriever([retriever], output_format="content")
    with pytest.raises(TypeError, match="leave out 'doc_fields'"):
        NodeGraph(doc_fields={})
    with pytest.raises(TypeError, match=r"write it into the documents: Document\(text, metadata"):
        NodeGraph().add("Tea.", metadata={"year": 1880})
    with pytest.raises(
        TypeError, match=r"argument of each search: retriever\(query, top_k=\.\.\.\)"
    ):
        as_retriever(retriever, top_k=3)


def test_other_type_errors_are_unchanged() -> None:

    def fails(top_k: int) -> None:
        raise TypeError(f"{top_k} is too many")

    with pytest.raises(TypeError, match=r"^3 is too many$"):
        explain_names(fails)(top_k=3)
