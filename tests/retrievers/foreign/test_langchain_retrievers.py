"""LangChain's own retrievers and stores, wherever nodekin expects a retriever."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from operator import itemgetter
from typing import Any

import pytest
from foreign_retrievers import HOLDERS, answers, ways
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers import MultiQueryRetriever as LangChainMultiQuery
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_peers import face as plain
from langchain_runs import FinishedRuns, tree

from nodekin.adapters.langchain import (
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    retriever_tool,
)
from nodekin.adapters.langchain.documents import to_document
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    DocumentCompletionRetriever,
    FusionRetriever,
    LinkRetriever,
    MultiQueryRetriever,
    QueryEngine,
    Reranker,
    RerankRetriever,
    Retriever,
    WindowRetriever,
    as_retriever,
    restrict,
)
from nodekin.retrievers.evaluation import Dataset, GoldPassage, Question, evaluate
from nodekin.retrievers.planned_retriever import PlannedRetriever
from nodekin.retrievers.plans.effects import find_all
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

DOCUMENTS = [
    Document("Green tea is steamed.", metadata={"topic": "tea", "year": 1999}, id="green"),
    Document("Black tea is fermented.", metadata={"topic": "tea", "year": 2005}, id="black"),
    Document("Rivers run to the sea.", metadata={"topic": "rivers", "year": 2010}, id="rivers"),
    Document("Coffee is roasted.", metadata={"topic": "coffee", "year": 2020}, id="coffee"),
    Document("Milk is white, as snow is.", metadata={"topic": "milk", "year": 1980}, id="milk"),
]

WORDS = ("green", "black", "tea", "rivers", "coffee", "milk", "is", "fermented", "steamed")


class WordEmbeddings(Embeddings):
    """Count words."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*(float(text.lower().count(word)) for word in WORDS), 0.1] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Listed(BaseRetriever):
    """Return the documents with a word of the query, in their order: no scores, no settings."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        words = {word.strip("?.").lower() for word in query.split()}
        return [
            d for d in DOCUMENTS if words & {w.strip(".,").lower() for w in d.page_content.split()}
        ]


class WithNumber(Listed):
    """A retriever with its own `k`, like BM25Retriever."""

    k: int = 2

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return super()._get_relevant_documents(query, run_manager=run_manager)[: self.k]


@pytest.fixture
def store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(DOCUMENTS)
    return store


SOURCES = {
    "store": lambda store: store.similarity_search_with_score,
    "retriever": lambda store: store.as_retriever(search_kwargs={"k": 3}),
    "mmr": lambda store: store.as_retriever(search_type="mmr"),
    "configured": lambda store: store.as_retriever().with_config(tags=["mine"]),
    "own class": lambda store: Listed(),
    "own number": lambda store: WithNumber(),
    "function": lambda store: lambda query: store.similarity_search(query, k=3),
    "chain": lambda store: (RunnableLambda(str.lower) | store.as_retriever()).invoke,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_langchain_retriever_works_in_every_composite(store, source, holder):
    retriever = HOLDERS[holder](SOURCES[source](store))
    every = ways(retriever, "Which tea is green?")
    assert every[0][0].node.id in ("green", "black")
    assert [[r.node.id for r in results] for results in every] == 6 * [
        [r.node.id for r in every[0]]
    ]
    for result in every[0]:
        document = next(d for d in DOCUMENTS if d.id == result.node.id)
        assert (result.node.text, result.node.metadata) == (
            document.page_content,
            document.metadata,
        )
        assert result.evidence


def test_holders_cover_every_strategy():
    assert STRATEGIES.keys() - HOLDERS.keys() == set()


@pytest.mark.parametrize("source", SOURCES)
def test_evaluate_scores_langchain_retriever_like_ours(store, source):
    graph = NodeGraph(embed=WordEmbeddings(), progress=False)
    graph.add(DOCUMENTS)
    questions = [
        Question("1", "Which tea is green?", (GoldPassage("Green tea is steamed."),)),
        Question("2", "Where do rivers run?", (GoldPassage("Rivers run to the sea."),)),
    ]
    searched = {"theirs": SOURCES[source](store), "ours": Retriever(graph, "ROOT", "cosine")}
    report = evaluate(searched, Dataset(questions), ["hit_rate@2"], documents=())
    assert (
        report.figure("theirs", "hit_rate@2").value
        == report.figure("ours", "hit_rate@2").value
        == 1
    )


@pytest.mark.parametrize("source", SOURCES)
def test_query_engine_cites_documents_of_langchain_retriever(store, source):
    for answer in answers(SOURCES[source](store), "Which tea is green?"):
        assert [s.result.node.id for s in answer.cited] == ["green"]


def test_as_retriever_returns_documents_of_langchain_invoke(store):
    retriever = store.as_retriever(search_kwargs={"k": 3})
    native = as_retriever(retriever)
    for question in ("Which tea is black?", "rivers", "snow"):
        expected = [d.id for d in retriever.invoke(question)]
        assert [result.node.id for result in native.retrieve(question)] == expected
        assert [result.node.id for result in native.retrieve(question, top_k=5)][:3] == expected


def test_store_function_returns_scores_and_store_retriever_ranks(store):
    pairs = store.similarity_search_with_score("Which tea is green?", k=2)
    results = as_retriever(store.similarity_search_with_score, name="store").retrieve(
        "Which tea is green?", top_k=2
    )
    assert [(r.node.id, r.score) for r in results] == [(d.id, score) for d, score in pairs]
    assert {r.evidence[0].similarity for r in results} == {"store"}
    results = as_retriever(store.as_retriever()).retrieve("Which tea is green?", top_k=2)
    assert [r.score for r in results] == [1.0, 0.5]
    assert {r.evidence[0].similarity for r in results} == {"VectorStoreRetriever, by rank"}


def test_store_distances_become_descending_scores():
    class Distances(InMemoryVectorStore):
        def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any):
            pairs = super().similarity_search_with_score(query, k, **kwargs)
            return [(document, 1 - score) for document, score in pairs]

    store = Distances(WordEmbeddings())
    store.add_documents(DOCUMENTS)
    results = as_retriever(store.similarity_search_with_score).retrieve("green tea")
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    assert results[0].node.id == "green"


def test_relevance_score_metadata_sets_score_but_not_id():
    def search(query: str) -> list[Document]:
        return [
            Document(text, metadata={"relevance_score": score * len(query)})
            for text, score in (("tea", 2.0), ("milk", 1.0))
        ]

    retriever = as_retriever(search)
    one, other = retriever.retrieve("ab"), retriever.retrieve("abc")
    assert [r.score for r in one] == [4.0, 2.0]
    assert [r.node.id for r in one] == [r.node.id for r in other]
    assert as_retriever(search, score_key=None).retrieve("ab")[0].score == 1.0


@pytest.mark.parametrize("source", ["store", "retriever", "mmr", "configured", "own number"])
def test_top_k_is_passed_to_sources_with_limits(store, source):
    for results in ways(as_retriever(SOURCES[source](store)), "tea is green black", top_k=4):
        assert len(results) == 4
    assert len(as_retriever(SOURCES[source](store)).retrieve("tea is", top_k=1)) == 1


def test_top_k_truncates_results_of_other_sources(store):
    for results in ways(as_retriever(Listed()), "tea is", top_k=2):
        assert [r.node.id for r in results] == ["green", "black"]


@pytest.mark.parametrize("source", ["store", "retriever", "configured", "own number"])
def test_filters_still_return_top_k_results(store, source):
    retriever = as_retriever(SOURCES[source](store))
    for results in ways(retriever, "tea is", filters={"year": {"gte": 2010}}, top_k=2):
        assert {r.node.id for r in results} <= {"rivers", "coffee"}
        assert len(results) == (1 if source == "own number" else 2)
    assert retriever.retrieve("tea is", filters={"topic": "tea"})[0].node.id == "green"


@pytest.mark.parametrize("source", ["own class", "function"])
def test_filters_raise_if_source_cannot_filter(store, source):
    retriever = RerankRetriever(SOURCES[source](store), "ModuleReranker", model=lambda q, t: t)
    with pytest.raises(ValueError, match="takes no conditions"):
        retriever.retrieve("tea", filters={"topic": "tea"})
    with pytest.raises(ValueError, match="takes no conditions"):
        asyncio.run(retriever.aretrieve("tea", filters={"topic": "tea"}))


def test_to_document_returns_original_document(store):
    plain = [Document(d.page_content, metadata=dict(d.metadata)) for d in DOCUMENTS]

    def without_ids(query: str) -> list[Document]:
        return plain

    for source, originals in (
        (store.similarity_search_with_score, DOCUMENTS),
        (without_ids, plain),
    ):
        retriever = RerankRetriever(
            source, "ModuleReranker", model=lambda q, texts: [0.5] * len(texts)
        )
        results = retriever.retrieve("tea", top_k=5)
        for result in (*results, *pickle.loads(pickle.dumps(results))):
            document = to_document(result)
            assert document in originals


def test_fusion_merges_same_document_of_two_retrievers(store):
    plain = [Document(d.page_content, metadata=d.metadata) for d in DOCUMENTS]
    one, other = (lambda query: plain[:2]), (lambda query: plain[1:3])
    results = FusionRetriever([one, other])("tea")
    assert results[0].node.text == "Black tea is fermented."
    assert [len(r.evidence) for r in results] == [2, 1, 1]
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    results = FusionRetriever([store.as_retriever(), Retriever(graph, "ROOT")])(
        "black fermented tea"
    )
    assert len(results[0].evidence) == 2


def test_aretrieve_uses_async_search_or_a_thread(store):
    threads = []

    class Threads(InMemoryVectorStore):
        async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any):
            threads.append(threading.current_thread())
            return await super().asimilarity_search(query, k, **kwargs)

    other = Threads(WordEmbeddings())
    other.add_documents(DOCUMENTS)

    async def call() -> None:
        await as_retriever(other.as_retriever()).aretrieve("tea")
        assert threads == [threading.current_thread()]

    asyncio.run(call())

    def slow(query: str) -> list[Document]:
        assert threading.current_thread() is not threading.main_thread()
        return DOCUMENTS

    asyncio.run(as_retriever(slow).aretrieve("tea"))


def test_multi_query_calls_langchain_batch_once():
    batches = []

    class Batching(Listed):
        def batch(self, inputs: Any, config: Any = None, **kwargs: Any) -> Any:
            batches.append(list(inputs))
            return super().batch(inputs, config, **kwargs)

    model = "1. black tea?\n2. green leaves?"
    MultiQueryRetriever(Batching(), lambda prompt: model).retrieve("Which tea?")
    assert batches == [["Which tea?", "black tea?", "green leaves?"]]


@pytest.mark.parametrize(
    "holder",
    [
        WindowRetriever,
        AutoMergeRetriever,
        DocumentCompletionRetriever,
        lambda inner: LinkRetriever(inner, NodeGraph()),
        lambda inner: WindowRetriever(FusionRetriever([inner, inner])),
    ],
)
def test_graph_composites_reject_langchain_retriever_on_construction(store, holder):
    with pytest.raises(TypeError, match="in no node graph"):
        holder(store.as_retriever())


def test_window_retriever_keeps_documents_outside_the_graph(store):
    graph = NodeGraph(progress=False)
    graph.add("Tea one. Tea two. Tea three.")
    graph.create_node_group("sentence", lambda text: text.split(" T"))
    fusion = FusionRetriever([store.as_retriever(), Retriever(graph, "sentence", top_k=1)])
    texts = [result.node.text for result in WindowRetriever(fusion)("tea")]
    assert "Green tea is steamed." in texts


def test_error_of_wrapped_function_is_raised_unchanged():
    def fail(query: str) -> list[Document]:
        raise ConnectionError("no route to the store")

    with pytest.raises(ConnectionError, match="no route"):
        as_retriever(fail).retrieve("tea")


@pytest.mark.parametrize("output", [3, [3], object(), {"a": 1}])
def test_output_without_documents_raises(output):
    with pytest.raises(TypeError, match="returned"):
        as_retriever(lambda query: output).retrieve("tea")


def test_chain_answer_becomes_one_result_with_sources(store):
    def chain(query: str) -> dict[str, Any]:
        return {"input": query, "answer": "Green tea.", "context": DOCUMENTS[:1]}

    (result,) = as_retriever(chain, name="ask tea").retrieve("Which tea is steamed?")
    assert result.node.text == "Green tea."
    assert [match.node.id for match in result.evidence][1:] == ["green"]
    assert result.evidence[0].similarity == "answer of ask tea"
    assert as_retriever(lambda query: "").retrieve("tea") == []


@pytest.mark.parametrize("nothing", ["store", None, 3, InMemoryVectorStore])
def test_as_retriever_names_allowed_types_for_invalid_source(nothing):
    with pytest.raises(TypeError, match="of LangChain or LlamaIndex, a function"):
        as_retriever(nothing)


def test_as_retriever_unwraps_own_langchain_adapters():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    native = Retriever(graph, "ROOT")
    assert as_retriever(plain(native)) is native
    limited = NodeGraphRetriever(native, score_key=None, k=1, filter={"topic": ["tea", "rivers"]})
    for results in ways(as_retriever(limited), "tea rivers"):
        assert len(results) == 1
        assert results[0].node.graph is graph
    both = FusionRetriever([limited]).retrieve("tea rivers", filters={"topic": "rivers"}, top_k=3)
    assert [r.node.id for r in both] == ["rivers"]
    store = NodeGraphVectorStore(graph)
    assert as_retriever(store) is store.retriever
    bound = store.as_retriever(search_kwargs={"k": 1, "filter": {"topic": "tea"}})
    (result,) = as_retriever(bound).retrieve("tea rivers fermented")
    assert (result.node.id, result.node.graph) == ("black", graph)


def test_as_retriever_keeps_configuration_of_bound_adapter():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    face = plain(Retriever(graph, "ROOT"))
    assert len(as_retriever(face.bind(k=1)).retrieve("tea is")) == 1
    assert len(as_retriever(face.with_config(tags=["x"])).retrieve("tea is", top_k=2)) == 2


def test_as_retriever_keeps_restriction_of_query_engine():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "It is [1].")
    (result,) = as_retriever(engine.restricted({"topic": "rivers"})).retrieve(
        "Which tea is green, and rivers?"
    )
    assert [match.node.id for match in result.evidence][1:] == ["rivers"]


def test_adapter_invokes_langchain_retriever(store):
    face = NodeGraphRetriever(store.as_retriever(), score_key=None, k=2)
    assert face.invoke("green tea") == store.similarity_search("green tea", k=2)
    assert asyncio.run(face.ainvoke("green tea")) == store.similarity_search("green tea", k=2)
    assert face.batch(["green tea", "rivers"]) == [
        store.similarity_search("green tea", k=2),
        store.similarity_search("rivers", k=2),
    ]


def test_wrapped_retriever_runs_are_traced_below_its_composite(store):
    finished = FinishedRuns()
    face = plain(FusionRetriever([store.as_retriever()]))
    face.invoke("tea", {"callbacks": [finished]})
    own = ("search", [("VectorStoreRetriever", [])])
    assert list(map(tree, finished.roots)) == [("NodeGraphRetriever", [("fuse", [own])])]


# Comparison with LangChain's components on the same retrievers

QUESTIONS = ("Which tea is green?", "rivers", "What is coffee?", "black tea is fermented")


@pytest.mark.parametrize("question", QUESTIONS)
def test_fusion_order_matches_ensemble(store, question):
    retrievers, weights = [store.as_retriever(), Listed()], [0.7, 0.3]
    theirs = EnsembleRetriever(retrievers=retrievers, weights=weights).invoke(question)
    ours = FusionRetriever(retrievers, weights=weights, top_k=9).retrieve(question)
    assert list(map(to_document, ours)) == theirs


@pytest.mark.parametrize("question", QUESTIONS)
def test_fusion_merges_documents_without_ids_like_ensemble(question):
    """The list has no ids, the store has random ids, the graph has content-based ids."""
    loaded = [Document(d.page_content, metadata=dict(d.metadata)) for d in DOCUMENTS]
    store = InMemoryVectorStore.from_documents(loaded, WordEmbeddings())
    held = RunnableLambda(lambda query: [loaded[int(d.id)] for d in numbered.invoke(query)])
    numbered = NodeGraphRetriever.from_documents(
        [Document(d.page_content, id=str(n)) for n, d in enumerate(loaded)], group="ROOT"
    )
    graph = NodeGraphRetriever.from_documents(loaded, group="ROOT", score_key=None)
    assert {d.id for d in held.invoke(question)} == {None}
    retrievers: list[Any] = [held, store.as_retriever(), graph]
    for chosen in (retrievers, retrievers[:2], retrievers[1:]):
        weights = [0.5, 0.3, 0.2][: len(chosen)]
        theirs = EnsembleRetriever(retrievers=chosen, weights=weights).invoke(question)
        fused = NodeGraphRetriever(
            retriever=FusionRetriever(
                [getattr(r, "func", r) for r in chosen], weights=weights, top_k=9
            ),
            score_key=None,
        )
        found = fused.invoke(question)
        assert [(d.page_content, d.metadata) for d in found] == [
            (d.page_content, d.metadata) for d in theirs
        ]


def test_fusion_keeps_equal_texts_with_different_metadata(store):
    other = Document("Green tea is steamed.", metadata={"topic": "tea", "year": 2024})
    graph = NodeGraph(progress=False)
    graph.add(Document("Tea. Tea.", id="twice"))
    graph.create_node_group("sentence", lambda text: ["Tea.", "Tea."])
    plain = Document("Tea.")
    fused = FusionRetriever(
        [store.as_retriever(), lambda query: [other, plain], Retriever(graph, "sentence")],
        top_k=20,
    )
    texts = [result.node.text for result in fused("tea steamed green")]
    assert texts.count("Green tea is steamed.") == 2
    assert (
        texts.count("Tea.") == 2
    )  # both nodes of the graph; one is merged with the plain document


@pytest.mark.parametrize("question", QUESTIONS)
def test_multi_query_finds_same_documents_as_langchain(question):
    model = FakeListChatModel(responses=["green tea\nblack coffee"])
    theirs = LangChainMultiQuery.from_llm(Listed(), model, include_original=True)
    expected = {document.id for document in theirs.invoke(question)}
    results = MultiQueryRetriever(Listed(), model, top_k=9).retrieve(question)
    assert sorted(result.node.id for result in results) == sorted(expected)
    assert len(expected) < len(DOCUMENTS)


def test_rerank_retriever_matches_langchain_compression(store):
    model = lambda query, texts: [float(text.count("e")) for text in texts]  # noqa: E731
    compressor = NodeGraphReranker(reranker=Reranker("ModuleReranker", model=model), top_n=2)
    retriever = store.as_retriever(search_kwargs={"k": 4})
    theirs = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=retriever)
    ours = RerankRetriever(retriever, "ModuleReranker", model=model, fetch_k=4)
    expected = [document.id for document in theirs.invoke("tea")]
    assert [r.node.id for r in ours.retrieve("tea", top_k=2)] == expected


def test_restrict_limits_store_to_tenant(store):
    """A composite that drops conditions cannot lift the restriction."""

    class Dropping(PlannedRetriever):
        takes_filters = True

        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = as_retriever(inner)

        async def search_all(self, queries: Any, limit: Any, filters: Any) -> Any:
            return await find_all(self.inner, queries, limit)

    search = store.as_retriever()
    for holder in (FusionRetriever([search]), Dropping(search), search):
        for results in ways(restrict(holder, {"topic": "tea"}), "tea is rivers", top_k=3):
            assert {r.node.id for r in results} == {"green", "black"}
    with pytest.raises(ValueError, match="does not take them"):
        restrict(FusionRetriever([Listed()]), {"topic": "tea"})


ESCAPES: list[Any] = [
    {"topic": "rivers"},
    {"topic": ["tea", "rivers"]},
    {"or": [{"topic": "tea"}, {"topic": {"ne": "tea"}}]},
    {"not": {"topic": "tea"}},
    {"topic": {"exists": True}},
]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("escape", ESCAPES, ids=str)
def test_restrict_holds_in_every_composite(store, holder, escape):
    """Neither a call nor an adapter nor a tool's model can lift the restriction."""
    search = store.as_retriever()
    held = HOLDERS[holder](restrict(as_retriever(search), {"topic": "tea"}))
    outside = restrict(HOLDERS[holder](search), {"topic": "tea"})
    for retriever in (held, outside):
        seen = [r.node for results in ways(retriever, "tea is rivers") for r in results]
        seen += [r.node for rs in ways(retriever, "tea is rivers", filters=escape) for r in rs]
        assert {node.metadata["topic"] for node in seen} <= {"tea"}
        face = plain(retriever)
        found = face.invoke("tea is rivers", filter=escape)
        own = retriever_tool(face, "teas", "On tea.", conditions=lambda config: escape)
        call = {"name": "teas", "args": {"query": "tea is rivers"}}
        found += own.invoke({**call, "id": "1", "type": "tool_call"}).artifact
        assert {document.metadata["topic"] for document in found} <= {"tea"}
    free = {result.node.metadata["topic"] for result in HOLDERS[holder](search)("tea is rivers")}
    assert free > {"tea"} or holder == "keywords"  # its keyword is "tea"


def test_composite_is_pickled_and_copied_with_wrapped_retriever():
    holder = FusionRetriever([as_retriever(WithNumber(), name="mine")])
    face = plain(holder)
    expected = face.invoke("tea is")
    for other in (pickle.loads(pickle.dumps(face)), copy.deepcopy(face)):
        assert other.invoke("tea is") == expected
        assert other.retriever.retrievers[0].source_name == "mine"
    configurable = face.configurable_fields(k=ConfigurableField("k"))
    assert len(configurable.with_config(configurable={"k": 1}).invoke("tea is")) == 1


# Distances, and conditions converted to a store's filters


class Counting(InMemoryVectorStore):
    """Records how many documents each search returned."""

    read: list[int]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        found = super().similarity_search_with_score(query, k, **kwargs)
        self.read.append(len(found))
        return found


def tenants(count: int) -> Counting:
    store = Counting(WordEmbeddings())
    store.read = []
    store.add_documents(
        [
            Document(f"Tea is green, number {n}.", id=str(n), metadata={"tenant": n % 50, "n": n})
            for n in range(count)
        ]
    )
    return store


def in_store(filters: Any) -> dict[str, Any]:
    """Return the tenant's condition as a filter of the store."""
    if not isinstance(filters.get("tenant"), int):
        return {}
    return {"filter": lambda document: document.metadata["tenant"] == filters["tenant"]}


@pytest.mark.parametrize("push", [None, in_store])
def test_rare_filters_return_full_top_k(push):
    store = tenants(400)
    mine = restrict(as_retriever(store.as_retriever(), push_filters=push), {"tenant": 7})
    for results in ways(mine, "tea is green", filters={"n": {"gte": 100}}, top_k=5):
        assert len(results) == 5
        assert all(r.node.metadata["tenant"] == 7 and r.node.metadata["n"] >= 100 for r in results)
    most = max(store.read)
    assert (most > 100) if push is None else (most <= 8)  # documents read by one search


def test_push_filters_never_widens_other_filters():
    store = tenants(100)

    def everything(filters: Any) -> dict[str, Any]:
        return {"filter": lambda document: True}

    mine = restrict(as_retriever(store.as_retriever(), push_filters=everything), {"tenant": 7})
    assert {r.node.metadata["tenant"] for r in mine.retrieve("tea", top_k=9)} == {7}
    both = restrict(as_retriever(store.as_retriever(), push_filters=in_store), {"tenant": 7})
    assert both.retrieve("tea", filters={"tenant": 8}) == []
    named = as_retriever(store.as_retriever(), push_filters=in_store, name="notes")
    copied = copy.deepcopy(restrict(named, {"tenant": 7}))
    (result,) = copied.retrieve("tea", top_k=1)
    assert result.evidence[0].similarity.startswith("notes")


def test_push_filters_raises_if_source_cannot_filter(store):
    filtered = store.as_retriever(search_kwargs={"filter": lambda document: True})
    for source in (filtered, Listed(), NodeGraph(progress=False)):
        with pytest.raises(TypeError, match="push_filters requires"):
            as_retriever(source, push_filters=in_store)


def test_chain_in_function_keeps_answer_and_sources(store):
    search = itemgetter("input") | store.as_retriever(search_kwargs={"k": 2})
    chain = RunnablePassthrough.assign(context=search) | RunnablePassthrough.assign(
        answer=lambda given: f"{len(given['context'])} documents"
    )
    source = as_retriever(lambda query: chain.invoke({"input": query}))
    answer, results = source.retrieve_sources("Which tea is steamed?")
    assert answer == "2 documents"
    documents = store.as_retriever(search_kwargs={"k": 2}).invoke("Which tea is steamed?")
    assert [result.text for result in results] == [d.page_content for d in documents]
    assert asyncio.run(source.aretrieve("tea"))[0].text == "2 documents"
    with pytest.raises(TypeError, match="wrap anything else in a function"):
        as_retriever(chain)
