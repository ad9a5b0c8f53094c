"""Retrievers of LangChain and LlamaIndex, and functions, wherever a retriever is expected."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever as LangChainBase
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Settings, SummaryIndex, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever as LlamaIndexBase
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from support.foreign_retrievers import HOLDERS, answers, ways
from support.langchain_peers import plain_retriever

from nodekin.adapters.langchain import retriever_tool
from nodekin.adapters.langchain.documents import to_document
from nodekin.adapters.llama_index.nodes import to_results
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    LinkRetriever,
    RerankRetriever,
    WindowRetriever,
    as_retriever,
    restrict,
)
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "green": ("Green tea is steamed.", {"topic": "tea", "year": 1999}),
    "black": ("Black tea is fermented.", {"topic": "tea", "year": 2005}),
    "rivers": ("Rivers run to the sea.", {"topic": "rivers", "year": 2010}),
    "coffee": ("Coffee is roasted.", {"topic": "coffee", "year": 2020}),
    "milk": ("Milk is white, as snow is.", {"topic": "milk", "year": 1980}),
}
DOCUMENTS = [Document(text, metadata=data, id=id) for id, (text, data) in TEXTS.items()]
NODES = [TextNode(text=text, metadata=data, id_=id) for id, (text, data) in TEXTS.items()]
WORDS = ("green", "black", "tea", "rivers", "coffee", "milk", "is", "fermented", "steamed")


def vector(text: str) -> list[float]:
    """Count words."""
    return [*(float(text.lower().count(word)) for word in WORDS), 0.1]


class WordEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [*map(vector, texts)]

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


class WordEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


def matching(query: str) -> list[int]:
    """Return the positions of the texts with a word of the query."""
    words = {word.strip("?.,").lower() for word in query.split()}
    texts = [text for text, _ in TEXTS.values()]
    return [n for n, t in enumerate(texts) if words & {w.strip(".,").lower() for w in t.split()}]


class Listed(LangChainBase):
    """A retriever without scores and settings."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [DOCUMENTS[position] for position in matching(query)]


class WithNumber(Listed):
    """A retriever with a field ``k``, like BM25Retriever."""

    k: int = 2

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return super()._get_relevant_documents(query, run_manager=run_manager)[: self.k]


class ListedNodes(LlamaIndexBase):
    """A retriever without scores, settings and async methods."""

    thread: Any = None

    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        self.thread = threading.current_thread()
        return [NodeWithScore(node=NODES[n]) for n in matching(query_bundle.query_str)]


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(WordEmbeddings())
    made.add_documents(DOCUMENTS)
    return made


def index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=WordEmbedding())


def query_fusion() -> QueryFusionRetriever:
    parts = [index().as_retriever(similarity_top_k=3), ListedNodes()]
    return QueryFusionRetriever(parts, llm=MockLLM(), num_queries=1, use_async=False)


LANGCHAIN: dict[str, Callable[[], Any]] = {
    "store": lambda: store().similarity_search_with_score,
    "retriever": lambda: store().as_retriever(search_kwargs={"k": 3}),
    "mmr": lambda: store().as_retriever(search_type="mmr"),
    "configured": lambda: store().as_retriever().with_config(tags=["mine"]),
    "own class": Listed,
    "own number": WithNumber,
    "function": lambda: lambda query: store().similarity_search(query, k=3),
    "chain": lambda: (RunnableLambda(str.lower) | store().as_retriever()).invoke,
}
SOURCES = {
    **LANGCHAIN,
    "index": lambda: index().as_retriever(similarity_top_k=3),
    "query fusion": query_fusion,
    "own nodes": ListedNodes,
    "list": lambda: SummaryIndex(NODES).as_retriever(),
}


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", MockLLM())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_source_works_in_every_composite(source: str, holder: str) -> None:
    every = ways(HOLDERS[holder](SOURCES[source]()), "Which tea is green?")
    assert every[0][0].node.id in ("green", "black")
    ids = [[result.node.id for result in results] for results in every]
    assert ids == [ids[0]] * 6
    for result in every[0]:
        assert (result.node.text, result.node.metadata) == TEXTS[result.node.id]
        assert result.evidence


def test_holders_cover_every_strategy() -> None:
    needs_filters = {"self_query"}  # not every source takes conditions
    assert STRATEGIES.keys() - HOLDERS.keys() == needs_filters


@pytest.mark.parametrize("source", SOURCES)
def test_query_engine_cites_foreign_documents(source: str) -> None:
    for answer in answers(SOURCES[source](), "Which tea is green?"):
        assert [s.result.node.id for s in answer.cited] == ["green"]


@pytest.mark.parametrize("question", ["Which tea is black?", "rivers", "snow"])
def test_results_and_scores_equal_those_of_the_source(question: str) -> None:
    retriever = store().as_retriever(search_kwargs={"k": 3})
    expected: list[Any] = [d.id for d in retriever.invoke(question)]
    results = as_retriever(retriever).retrieve(question)
    assert [(r.node.id, r.score) for r in results] == list(
        zip(expected, (1, 1 / 2, 1 / 3), strict=True)
    )
    assert {r.evidence[0].similarity for r in results} == {"VectorStoreRetriever, by rank"}
    search = store().similarity_search_with_score
    results = as_retriever(search, name="store").retrieve(question, top_k=2)
    assert [(r.node.id, r.score) for r in results] == [(d.id, s) for d, s in search(question, k=2)]
    assert {r.evidence[0].similarity for r in results} == {"store"}
    theirs = index().as_retriever(similarity_top_k=3)
    results = as_retriever(theirs).retrieve(question)
    expected = [(r.node.node_id, r.score) for r in theirs.retrieve(question)]
    assert [(r.node.id, r.score) for r in results] == expected
    assert {r.evidence[0].similarity for r in results} == {"VectorIndexRetriever"}
    assert len(as_retriever(theirs).retrieve(question, top_k=5)) == 5
    assert theirs.similarity_top_k == 3


@pytest.mark.parametrize(
    "source", ["store", "retriever", "mmr", "configured", "own number", "index"]
)
def test_top_k_is_passed_to_sources_with_limits(source: str) -> None:
    for results in ways(as_retriever(SOURCES[source]()), "tea is green black", top_k=4):
        assert len(results) == 4
    assert len(as_retriever(SOURCES[source]()).retrieve("tea is", top_k=1)) == 1


@pytest.mark.parametrize("source", [Listed, ListedNodes])
def test_top_k_truncates_results_of_other_sources(source: Any) -> None:
    for results in ways(as_retriever(source()), "tea is", top_k=2):
        assert [r.node.id for r in results] == ["green", "black"]


@pytest.mark.parametrize("source", ["store", "retriever", "configured", "own number", "index"])
def test_filters_still_return_top_k_results(source: str) -> None:
    retriever = as_retriever(SOURCES[source]())
    for results in ways(retriever, "tea is", filters={"year": {"gte": 2010}}, top_k=2):
        assert {r.node.id for r in results} <= {"rivers", "coffee"}
        assert len(results) == (1 if source == "own number" else 2)
    assert retriever.retrieve("tea is", filters={"topic": "tea"})[0].node.id == "green"


@pytest.mark.parametrize("source", ["own class", "function", "own nodes"])
def test_filters_raise_if_source_has_no_limit(source: str) -> None:
    retriever = RerankRetriever(SOURCES[source](), "ModuleReranker", model=lambda q, t: t)
    with pytest.raises(ValueError, match="has no filters and no top_k"):
        retriever.retrieve("tea", filters={"topic": "tea"})
    with pytest.raises(ValueError, match="has no filters and no top_k"):
        asyncio.run(retriever.aretrieve("tea", filters={"topic": "tea"}))


@pytest.mark.parametrize("in_store", [False, True])
def test_rare_filters_return_full_top_k(in_store: bool) -> None:
    """A parameter ``filters`` receives the restriction and the conditions of the call."""
    many = InMemoryVectorStore(WordEmbeddings())
    many.add_documents(
        [
            Document(f"Tea is green, number {n}.", metadata={"tenant": n % 50, "n": n})
            for n in range(400)
        ]
    )
    received: list[Any] = []

    def search(query: str, k: int, filters: Any) -> list[Document]:
        received.append(filters)
        return many.similarity_search(
            query, k, filter=lambda d: d.metadata["tenant"] == 7 and d.metadata["n"] >= 100
        )

    source = search if in_store else many.as_retriever()
    mine = restrict(as_retriever(source), {"tenant": 7})
    for results in ways(mine, "tea is green", filters={"n": {"gte": 100}}, top_k=5):
        assert len(results) == 5
        assert all(r.node.metadata["tenant"] == 7 and r.node.metadata["n"] >= 100 for r in results)
    assert all("'tenant': 7" in str(f) and "'gte': 100" in str(f) for f in received)


def test_adapters_return_the_original_documents() -> None:
    plain = [Document(d.page_content, metadata=dict(d.metadata)) for d in DOCUMENTS]
    same = {"model": lambda query, texts: [0.5] * len(texts)}
    for source, originals in (
        (store().similarity_search_with_score, DOCUMENTS),
        (lambda query: plain, plain),
    ):
        results = RerankRetriever(source, "ModuleReranker", **same).retrieve("tea", top_k=5)
        for result in (*results, *pickle.loads(pickle.dumps(results))):
            assert to_document(result) in originals
    theirs = index().as_retriever(similarity_top_k=5)
    results = RerankRetriever(theirs, "ModuleReranker", **same).retrieve("milk", top_k=5)
    for result in (*results, *pickle.loads(pickle.dumps(results))):
        node: Any = to_results([result])[0].node
        original = next(node for node in NODES if node.node_id == result.node.id)
        assert (type(node), node.hash, node.metadata) == (
            TextNode, original.hash, original.metadata,
        )  # fmt: skip


def test_aretrieve_uses_async_search_or_a_thread() -> None:
    threads = []

    class Threads(InMemoryVectorStore):
        async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
            threads.append(threading.current_thread())
            return await super().asimilarity_search(query, k, **kwargs)

    def slow(query: str) -> list[Document]:
        assert threading.current_thread() is not threading.main_thread()
        return DOCUMENTS

    async def call() -> None:
        await as_retriever(Threads(WordEmbeddings()).as_retriever()).aretrieve("tea")
        await as_retriever(slow).aretrieve("tea")
        nodes = ListedNodes()
        await FusionRetriever([nodes]).aretrieve("tea")
        assert threads == [threading.current_thread()] != [nodes.thread]

    asyncio.run(call())


@pytest.mark.parametrize("source", ["retriever", "index"])
@pytest.mark.parametrize(
    "holder",
    [
        WindowRetriever,
        AutoMergeRetriever,
        lambda inner: LinkRetriever(inner, NodeGraph()),
        lambda inner: WindowRetriever(FusionRetriever([inner, inner])),
    ],
)
def test_graph_composites_reject_foreign_retriever_on_construction(
    source: str, holder: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError, match="in no node graph"):
        holder(SOURCES[source]())


@pytest.mark.parametrize("source", ["own number", "index"])
def test_composite_is_copied_with_wrapped_retriever(source: str) -> None:
    holder = FusionRetriever([as_retriever(SOURCES[source](), name="mine")])
    expected = holder.retrieve("tea is")
    others = [copy.deepcopy(holder)]
    if source == "own number":  # no index of LlamaIndex can be pickled
        others.append(pickle.loads(pickle.dumps(holder)))
    for other in others:
        assert [r.node.id for r in other.retrieve("tea is")] == [r.node.id for r in expected]
        assert other.retrieve("tea is")[0].evidence[0].similarity.startswith("mine")


ESCAPES: list[Any] = [
    {"topic": "rivers"},
    {"topic": ["tea", "rivers"]},
    {"or": [{"topic": "tea"}, {"topic": {"ne": "tea"}}]},
    {"not": {"topic": "tea"}},
    {"topic": {"exists": True}},
]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("escape", ESCAPES, ids=str)
def test_restriction_holds_in_every_composite(holder: str, escape: Any) -> None:
    """Neither a call nor an adapter nor a tool's model can lift the restriction."""
    search, query = store().as_retriever(), "tea is rivers"
    held = HOLDERS[holder](restrict(as_retriever(search), {"topic": "tea"}))
    for retriever in (held, restrict(HOLDERS[holder](search), {"topic": "tea"})):
        seen = [r.node for results in ways(retriever, query) for r in results]
        assert seen
        seen += [r.node for results in ways(retriever, query, filters=escape) for r in results]
        assert {node.metadata["topic"] for node in seen} <= {"tea"}
        found = plain_retriever(retriever).invoke(query, filter=escape)
        tool = retriever_tool(
            plain_retriever(retriever), "teas", "On tea.", conditions=lambda config: escape
        )
        call = {"name": "teas", "args": {"query": query}, "id": "1", "type": "tool_call"}
        found += tool.invoke(call).artifact
        assert {document.metadata["topic"] for document in found} <= {"tea"}
    free = {result.node.metadata["topic"] for result in HOLDERS[holder](search)(query)}
    assert free > {"tea"} or holder == "keywords"  # its keyword is "tea"
