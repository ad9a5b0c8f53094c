"""Comparison with the frameworks' retrievers on equal texts and vectors."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import TextNode
from support.embedding_models import LangChainVectors, LlamaIndexVectors

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever, as_retriever

TEXTS = {
    "tea": "Green tea is steamed. Black tea is fermented. Tea comes from leaves.",
    "coffee": "Coffee is roasted. Coffee comes from beans.",
    "river": "Rivers run to the sea. The sea is salty.",
    "茶": "绿茶是蒸青的。红茶是发酵的。",
}
QUESTIONS = ["What is fermented?", "Where do rivers run?", "beans and leaves", "红茶怎么做？"]


def vector(text: str) -> list[float]:
    counts = np.zeros(32)
    for word in text.lower().replace(".", " ").split():
        counts[sum(map(ord, word)) % 31] += 1
    for letter in text:
        counts[ord(letter) % 31] += 0.1
    counts[31] = 0.01
    return counts.tolist()


@pytest.fixture(params=[LangChainVectors, LlamaIndexVectors])
def graph(request: pytest.FixtureRequest) -> NodeGraph:
    """Return a graph that embeds by one framework's model or the other's."""
    graph = NodeGraph(embed=request.param(vector=vector), progress=False)
    graph.add([Document(text, id=name) for name, text in TEXTS.items()])
    graph.create_node_group("sentence", split_sentences)
    return graph


def ids(results: Sequence) -> list[str]:
    return [result.node.document_id for result in results]


@pytest.mark.parametrize("question", QUESTIONS)
def test_cosine_scores_match_vector_stores_of_frameworks(graph: NodeGraph, question: str) -> None:
    sentences = graph.nodes("sentence")
    mine = Retriever(graph, "sentence", "cosine", top_k=4)(question)
    store = InMemoryVectorStore(LangChainVectors(vector))
    store.add_texts([node.text for node in sentences], ids=[node.id for node in sentences])
    theirs = store.similarity_search_with_score(question, k=4)
    assert [r.score for r in mine] == pytest.approx([score for _, score in theirs], abs=1e-5)
    last = mine[-1].score + 1e-5  # equals at the cut are another choice there
    assert {r.node.id for r in mine if r.score > last} == {
        found.id for found, score in theirs if score > last
    }
    nodes = [TextNode(text=node.text, id_=node.id) for node in sentences]
    index = VectorStoreIndex(nodes, embed_model=LlamaIndexVectors(vector=vector))
    theirs = index.as_retriever(similarity_top_k=4).retrieve(question)
    assert [r.score for r in mine] == pytest.approx([r.score for r in theirs], abs=1e-5)


@pytest.mark.parametrize("question", QUESTIONS)
def test_reciprocal_rank_fusion_matches_the_frameworks(graph: NodeGraph, question: str) -> None:
    words = Retriever(graph, "ROOT", "bm25", top_k=4)
    meaning = Retriever(graph, "ROOT", "cosine", top_k=4)
    mine = FusionRetriever([words, meaning], weights=[2, 1], top_k=4)(question)

    parts: list[BaseRetriever] = [
        langchain.NodeGraphRetriever(retriever=each) for each in (words, meaning)
    ]
    ensemble = EnsembleRetriever(retrievers=parts, weights=[2, 1], id_key=None)
    theirs: list[Document] = ensemble.invoke(question)
    expected = [found.id for found in theirs]
    assert sorted(ids(mine)) == sorted(expected)
    untied = [round(result.score, 12) for result in mine]
    if len(set(untied)) == len(untied):  # equal scores are in another order there
        assert ids(mine) == expected

    even = FusionRetriever([words, meaning], top_k=4, rank_constant=60)(question)
    fusion = QueryFusionRetriever(
        [llama_index.NodeGraphRetriever(each) for each in (words, meaning)],
        llm=MockLLM(),
        num_queries=1,
        mode="reciprocal_rerank",
        similarity_top_k=4,
        use_async=False,
    )
    found = {result.node.node_id: result.score for result in fusion.retrieve(question)}
    # Their first place counts 1 / 60, ours, as in the paper, 1 / 61.
    ours = FusionRetriever([words, meaning], top_k=4, rank_constant=59)(question)
    assert {r.node.id: pytest.approx(r.score) for r in ours} == found
    assert len(even) == len(found)


def test_a_budget_is_given_with_the_retriever():
    graph = NodeGraph()
    graph.add([*TEXTS.values()])
    within = partial(as_retriever(graph).retrieve, max_tokens=8)
    windows = [result.text for result in within("Which tea is fermented?")]
    assert windows == ["Black tea is fermented."]
    of_langchain = langchain.NodeGraphRetriever(retriever=within)
    of_llama_index = llama_index.NodeGraphRetriever(within)
    found = of_langchain.invoke("Which tea is fermented?")
    assert [document.page_content for document in found] == windows
    found = of_llama_index.retrieve("Which tea is fermented?")
    assert [node.text for node in found] == windows
    found = of_langchain.invoke("Which tea is fermented?", max_tokens=8)
    assert [document.page_content for document in found] == windows
