"""Windows within a token budget in LlamaIndex programs."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core import Document, MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from support.rankings import DATA_SETS

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.splitters.chunking import count_tokens
from nodekin.retrievers import as_retriever

GREEN = "Green tea is steamed. It stays green. " * 30
COFFEE = "Coffee is roasted. It is brown. " * 30
LONG = f"{GREEN}Black tea is fermented. It keeps long. {COFFEE}"
TEXTS = [LONG, "Rivers run. Tea is fermented in China. Lakes rest.", "Beer is fermented as well."]
QUERY = "What is fermented?"
BUDGET = 40


@pytest.fixture
def index() -> NodeGraphIndex:
    documents = [
        Document(text=text, id_=str(at), metadata={"n": at}) for at, text in enumerate(TEXTS)
    ]
    for document in documents:
        document.excluded_embed_metadata_keys = ["n"]
    return NodeGraphIndex.from_documents(documents)


@pytest.fixture
def native() -> list[str]:
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return [result.text for result in as_retriever(graph).retrieve(QUERY, max_tokens=BUDGET)]


def _texts(nodes: list[NodeWithScore]) -> list[str]:
    return [node.text for node in nodes]


def _own_engine(index: NodeGraphIndex) -> list[NodeWithScore]:
    return index.as_query_engine(MockLLM(), max_tokens=BUDGET).query(QUERY).source_nodes


def _their_engine(index: NodeGraphIndex) -> list[NodeWithScore]:
    processors = [SimilarityPostprocessor(similarity_cutoff=0.0)]
    retriever = index.as_retriever(max_tokens=BUDGET)
    engine = RetrieverQueryEngine.from_args(
        retriever, llm=MockLLM(), node_postprocessors=processors
    )
    return asyncio.run(engine.aquery(QUERY)).source_nodes


WAYS: dict[str, Callable[[NodeGraphIndex], list[NodeWithScore]]] = {
    "as_retriever": lambda i: i.as_retriever(max_tokens=BUDGET).retrieve(QUERY),
    "call": lambda i: i.as_retriever().retrieve(QUERY, max_tokens=BUDGET),
    "acall": lambda i: asyncio.run(i.as_retriever().aretrieve(QUERY, max_tokens=BUDGET)),
    "as_query_engine": _own_engine,
    "RetrieverQueryEngine": _their_engine,
    "around an adapter": lambda i: NodeGraphRetriever(i.as_retriever(), max_tokens=BUDGET).retrieve(
        QUERY
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_windows_of_each_call_equal_native_windows(
    index: NodeGraphIndex, native: list[str], way: str
) -> None:
    assert len(native) > 1
    assert _texts(WAYS[way](index)) == native


@pytest.mark.parametrize("name", ["cmrc", "xquad.de"])
def test_windows_of_real_questions_equal_native_windows(data: Path, name: str) -> None:
    documents, questions, _ = DATA_SETS[name](data)
    graph = NodeGraph(progress=False)
    graph.add([document.text for document in documents])
    native = as_retriever(graph)
    nodes = [TextNode(text=document.text) for document in documents]
    retriever = NodeGraphIndex(nodes).as_retriever(max_tokens=400)
    for question in questions:
        expected = [result.text for result in native.retrieve(question, max_tokens=400)]
        assert _texts(retriever.retrieve(question)) == expected


def test_window_has_metadata_and_span_of_node(index: NodeGraphIndex) -> None:
    for result in index.as_retriever(max_tokens=BUDGET).retrieve(QUERY):
        node = result.node
        assert isinstance(node, TextNode)
        text = TEXTS[node.metadata["n"]]
        assert text[node.start_char_idx : node.end_char_idx] == node.text
        assert node.node_id


def test_nodes_without_budget_return_as_given(index: NodeGraphIndex) -> None:
    retriever = index.as_retriever(similarity_top_k=3)
    retriever.retrieve(QUERY, max_tokens=BUDGET)
    assert sorted(_texts(retriever.retrieve(QUERY))) == sorted(text.strip() for text in TEXTS)


def test_top_k_limits_windows_only_if_given(index: NodeGraphIndex, native: list[str]) -> None:
    retriever = index.as_retriever(max_tokens=BUDGET, similarity_top_k=1)
    assert _texts(retriever.retrieve(QUERY)) == native[:1]


def test_windows_of_index_of_nodes_fit_budget() -> None:
    nodes = [TextNode(text=text, id_=str(at)) for at, text in enumerate(TEXTS)]
    index = NodeGraphIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    found = _texts(index.as_retriever(max_tokens=BUDGET).retrieve(QUERY))
    assert any("Black tea is fermented." in text for text in found)
    assert sum(count_tokens(text) for text in found) <= BUDGET


@pytest.mark.parametrize("strategy", ["rewrite", "multi_query"])
def test_budget_holds_for_results_of_strategy(index: NodeGraphIndex, strategy: str) -> None:
    engine = index.as_query_engine(
        MockLLM(),
        strategy=strategy,
        max_tokens=BUDGET,
        node_postprocessors=[LongContextReorder()],
    )
    found = _texts(engine.query(QUERY).source_nodes)
    assert 0 < sum(count_tokens(text) for text in found) <= BUDGET


def test_engine_keeps_budget_of_its_retriever(index: NodeGraphIndex, native: list[str]) -> None:
    engine = NodeGraphQueryEngine(index.as_retriever(max_tokens=BUDGET), MockLLM())
    assert _texts(engine.query(QUERY).source_nodes) == native


def test_required_phrases_and_minimum_score_apply(index: NodeGraphIndex) -> None:
    query = 'fermented "in china"'
    (window,) = index.as_retriever(max_tokens=14, phrases="required").retrieve(query)
    assert "in China" in window.text
    assert len(index.as_retriever().retrieve(query, phrases="required")) == 1
    assert index.as_retriever(min_score=0.5).retrieve("glaciers") == []


@pytest.mark.parametrize(
    "options", [{"max_tokens": 0}, {"max_tokens": "9"}, {"min_score": 2}, {"phrases": "all"}]
)
def test_wrong_option_raises(index: NodeGraphIndex, options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        index.as_retriever(**options)
