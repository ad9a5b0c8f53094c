"""Weights of words and vectors in every way of calling of both frameworks."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine
from nodekin.adapters.llama_index import NodeGraphRetriever as LlamaIndexRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever, as_retriever

TEXTS = [
    "Green tea is steamed.",
    "Green paint dries slowly.",
    "The kettle boils water.",
    "A hot drink made of leaves.",
    "Rivers run to the sea.",
]
MEANING = "A hot drink made of leaves."
"""The text that vectors find for each question."""

QUESTIONS = ["green tea steamed?", "does paint dry?", "rivers?"]

WEIGHTS: list[Mapping[str, float]] = [
    {"words": 0},
    {"vectors": 0},
    {"words": 1, "vectors": 3},
    {"words": 5, "vectors": 1},
    {"default": 2.5},
]


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [
        [1.0, 0.05 * len(text)] if text == MEANING or "?" in text else [0.2, 0.05 * len(text)]
        for text in texts
    ]


def graph_of() -> NodeGraph:
    graph = NodeGraph(embed=embed, progress=False)
    graph.add(TEXTS)
    return graph


def expected(weights: Mapping[str, float], max_tokens: int | None = None) -> list[list[str]]:
    retriever = as_retriever(graph_of(), weights=weights, max_tokens=max_tokens)
    return [[result.node.text for result in retriever.retrieve(query)] for query in QUESTIONS]


# LangChain


def documents_of() -> list[Document]:
    return [Document(text) for text in TEXTS]


def as_field(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever(graph=graph_of(), weights=weights, **options)


def in_search_kwargs(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever(graph=graph_of(), search_kwargs={"weights": weights}, **options)


def bound(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever(graph=graph_of(), **options).bind(weights=weights)


def configurable(weights: Any, **options: Any) -> Any:
    field = ConfigurableField(id="weights")
    retriever = NodeGraphRetriever(graph=graph_of(), **options).configurable_fields(weights=field)
    return retriever.with_config(configurable={"weights": weights})


def with_documents(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever.from_documents(documents_of(), embed, weights=weights, **options)


def with_texts(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever.from_texts(TEXTS, embed, weights=weights, **options)


def with_graph(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever.from_graph(graph_of(), weights=weights, **options)


def weighted_native(weights: Any, **options: Any) -> Any:
    return NodeGraphRetriever(as_retriever(graph_of(), weights=weights), **options)


LANGCHAIN = [
    as_field,
    in_search_kwargs,
    bound,
    configurable,
    with_documents,
    with_texts,
    with_graph,
    weighted_native,
]


def called(retriever: Any, mode: str, **options: Any) -> list[list[str]]:
    if mode == "batch":
        answers = retriever.batch(QUESTIONS, **options)
    elif mode == "abatch":
        answers = asyncio.run(retriever.abatch(QUESTIONS, **options))
    elif mode == "async":
        answers = [asyncio.run(retriever.ainvoke(query, **options)) for query in QUESTIONS]
    else:
        answers = [retriever.invoke(query, **options) for query in QUESTIONS]
    return [[document.page_content for document in documents] for documents in answers]


@pytest.mark.parametrize("mode", ["sync", "async", "batch", "abatch"])
@pytest.mark.parametrize("make", LANGCHAIN)
def test_langchain_weights_equal_native_weights(make: Callable[..., Any], mode: str) -> None:
    for weights in WEIGHTS:
        assert called(make(weights, k=6), mode) == expected(weights)


@pytest.mark.parametrize("make", LANGCHAIN)
def test_langchain_weights_hold_for_windows(make: Callable[..., Any]) -> None:
    for weights in WEIGHTS:
        assert called(make(weights, max_tokens=12), "sync") == expected(weights, 12)


@pytest.mark.parametrize("mode", ["sync", "async", "batch", "abatch"])
def test_langchain_call_replaces_weights(mode: str) -> None:
    retriever = NodeGraphRetriever(graph=graph_of(), k=6, weights={"words": 0})
    for weights in WEIGHTS:
        assert called(retriever, mode, weights=weights) == expected(weights)
    assert called(retriever, mode) == expected({"words": 0})


def test_langchain_weight_0_embeds_nothing() -> None:
    asked: list[str] = []

    def counting(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed(texts)

    retriever = NodeGraphRetriever.from_texts(TEXTS, counting, weights={"vectors": 0})
    assert retriever.invoke("green tea?")[0].page_content == TEXTS[0]
    assert asked == []


# LlamaIndex


def index_of() -> NodeGraphIndex:
    return NodeGraphIndex([TextNode(text=text) for text in TEXTS], embed_model=embed)


def nodes_of_retriever(weights: Any, **options: Any) -> Any:
    return LlamaIndexRetriever(graph_of(), weights=weights, **options)


def nodes_of_index(weights: Any, **options: Any) -> Any:
    return index_of().as_retriever(weights=weights, **options)


LLAMA_INDEX = [nodes_of_retriever, nodes_of_index]


def retrieved(retriever: Any, mode: str, **options: Any) -> list[list[str]]:
    if mode == "async":
        answers = [asyncio.run(retriever.aretrieve(query, **options)) for query in QUESTIONS]
    else:
        answers = [retriever.retrieve(query, **options) for query in QUESTIONS]
    return [[result.text for result in results] for results in answers]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("make", LLAMA_INDEX)
def test_llama_index_weights_equal_native_weights(make: Callable[..., Any], mode: str) -> None:
    for weights in WEIGHTS:
        assert retrieved(make(weights, similarity_top_k=6), mode) == expected(weights)
        assert retrieved(make(weights, max_tokens=12), mode) == expected(weights, 12)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("make", LLAMA_INDEX)
def test_llama_index_call_replaces_weights(make: Callable[..., Any], mode: str) -> None:
    retriever = make({"words": 0}, similarity_top_k=6)
    for weights in WEIGHTS:
        assert retrieved(retriever, mode, weights=weights) == expected(weights)
    assert retrieved(retriever, mode) == expected({"words": 0})


@pytest.mark.parametrize("is_async", [False, True])
def test_llama_index_engines_apply_weights(is_async: bool) -> None:
    for weights in WEIGHTS:
        engines = [
            index_of().as_query_engine(MockLLM(), weights=weights, similarity_top_k=6),
            NodeGraphQueryEngine(graph_of(), MockLLM(), weights=weights, similarity_top_k=6),
        ]
        for engine in engines:
            if is_async:
                response = asyncio.run(engine.aquery(QUESTIONS[0]))
            else:
                response = engine.query(QUESTIONS[0])
            assert [node.text for node in response.source_nodes] == expected(weights)[0]


def test_llama_index_weights_require_nodes_or_sentences() -> None:
    index = index_of()
    index.graph.create_node_group("clause", lambda text: text.split(","))
    index.as_retriever(group="clause").retrieve("tea?")
    index.as_retriever(group="sentence", weights={"words": 0}).retrieve("tea?")
    with pytest.raises(ValueError, match="weights= requires a default search, got Retriever"):
        index.as_retriever(group="clause", weights={"words": 0})


def test_llama_index_weights_and_phrases_apply_together() -> None:
    query = '"green paint" water?'
    options: dict[str, Any] = {"phrases": "required", "weights": {"words": 1, "vectors": 3}}
    for retriever in (index_of().as_retriever(**options), nodes_of_retriever(**options)):
        assert [result.text for result in retriever.retrieve(query)] == [TEXTS[1]]


# Both


@pytest.mark.parametrize("make", [as_field, with_documents, *LLAMA_INDEX])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 3], r"weights must be a dictionary, .*got \[1, 3\].*FusionRetriever\(retrievers"),
        ({"word": 1}, "weights must have names of"),
        ({"words": -1}, r"weights\['words'\] must be"),
        ({"words": "much"}, r"weights\['words'\] must be"),
    ],
)
def test_wrong_weights_raise(make: Callable[..., Any], weights: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, ValidationError), match=message):
        make(weights)


@pytest.mark.parametrize("make", [NodeGraphRetriever, LlamaIndexRetriever])
def test_weights_of_a_single_search_raise(make: Callable[..., Any]) -> None:
    single = Retriever(graph_of(), "ROOT", "bm25")
    with pytest.raises(ValueError, match="weights= requires a default search"):
        make(single, weights={"words": 1})
