"""LlamaIndex's own retrievers wherever a retriever is expected."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from importlib.metadata import version
from typing import Any

import pytest
from foreign_retrievers import HOLDERS, answers, ways
from llama_index.core import SummaryIndex, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.retrievers import RecursiveRetriever as LlamaIndexRecursive
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index_models import ScriptedLLM

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
    NodeGraphQuestionGenerator,
    NodeGraphRetriever,
)
from nodekin.adapters.llama_index.nodes import to_results
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    QueryEngine,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    WindowRetriever,
    as_retriever,
    restrict,
)


@pytest.fixture
def scripted() -> Any:
    return lambda answer: ScriptedLLM(answer=answer, prompts=[])


NODES = [
    TextNode(text="Green tea is steamed.", metadata={"topic": "tea", "year": 1999}, id_="green"),
    TextNode(text="Black tea is fermented.", metadata={"topic": "tea", "year": 2005}, id_="black"),
    TextNode(
        text="Rivers run to the sea.", metadata={"topic": "rivers", "year": 2010}, id_="rivers"
    ),
    TextNode(text="Coffee is roasted.", metadata={"topic": "coffee", "year": 2020}, id_="coffee"),
    IndexNode(
        text="All about milk is there.", index_id="dairy", metadata={"year": 1980}, id_="milk"
    ),
]

WORDS = ("green", "black", "tea", "rivers", "coffee", "milk", "is", "fermented", "steamed")


class WordEmbedding(BaseEmbedding):
    """Count words."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [*(float(text.lower().count(word)) for word in WORDS), 0.1]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Listed(BaseRetriever):
    """Return the nodes with a word of the query, without scores; only a sync method."""

    thread: Any = None

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.thread = threading.current_thread()
        words = {word.strip("?.").lower() for word in query_bundle.query_str.split()}
        return [
            NodeWithScore(node=node)
            for node in NODES
            if words & {word.strip(".,").lower() for word in node.get_content().split()}
        ]


class Fixed(CustomQueryEngine):
    """Answer every question alike."""

    answer: str = "Green tea."

    def custom_query(self, query_str: str) -> str:
        return self.answer

    async def acustom_query(self, query_str: str) -> str:
        return self.answer


@pytest.fixture
def index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=WordEmbedding())


def fused(index: VectorStoreIndex) -> QueryFusionRetriever:
    retrievers = [index.as_retriever(similarity_top_k=3), Listed()]
    return QueryFusionRetriever(retrievers, llm=MockLLM(), num_queries=1, use_async=False)


SOURCES = {
    "retriever": lambda index: index.as_retriever(similarity_top_k=3),
    "fusion": fused,
    "own class": lambda index: Listed(),
    "list": lambda index: SummaryIndex(NODES).as_retriever(),
}


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    from llama_index.core import Settings

    monkeypatch.setattr(Settings, "_llm", MockLLM())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_llama_index_retriever_works_in_every_composite(index, source, holder):
    retriever = HOLDERS[holder](SOURCES[source](index))
    every = ways(retriever, "Which tea is green?")
    assert every[0][0].node.id in ("green", "black")
    assert [[r.node.id for r in results] for results in every] == 6 * [
        [r.node.id for r in every[0]]
    ]
    for result in every[0]:
        node = next(node for node in NODES if node.node_id == result.node.id)
        assert (result.node.text, result.node.metadata) == (node.get_content(), node.metadata)
        assert result.evidence


@pytest.mark.parametrize("source", SOURCES)
def test_query_engine_cites_nodes_of_llama_index_retriever(index, source):
    for answer in answers(SOURCES[source](index), "Which tea is green?"):
        assert [s.result.node.id for s in answer.cited] == ["green"]


def test_as_retriever_keeps_results_and_scores(index):
    retriever = index.as_retriever(similarity_top_k=3)
    for question in ("Which tea is black?", "rivers"):
        expected = [(r.node.node_id, r.score) for r in retriever.retrieve(question)]
        results = as_retriever(retriever).retrieve(question)
        assert [(r.node.id, r.score) for r in results] == expected
        assert {r.evidence[0].similarity for r in results} == {"VectorIndexRetriever"}
        assert len(as_retriever(retriever).retrieve(question, top_k=5)) == 5
    assert retriever.similarity_top_k == 3
    results = as_retriever(Listed()).retrieve("tea", top_k=1)
    assert [(r.score, r.evidence[0].similarity) for r in results] == [(1.0, "Listed, by rank")]


def test_filters_still_return_top_k_results(index):
    for results in ways(
        as_retriever(index.as_retriever()), "tea is", filters={"year": {"gte": 2010}}, top_k=2
    ):
        assert {r.node.id for r in results} == {"rivers", "coffee"}
    with pytest.raises(ValueError, match="Listed takes no conditions"):
        FusionRetriever([Listed()]).retrieve("tea", filters={"topic": "tea"})


def test_aretrieve_runs_sync_retriever_in_a_thread():
    listed = Listed()

    async def call() -> None:
        await FusionRetriever([listed]).aretrieve("tea")
        assert listed.thread is not threading.current_thread()

    asyncio.run(call())


def test_to_results_returns_original_nodes(index):
    retriever = RerankRetriever(
        index.as_retriever(similarity_top_k=5),
        "ModuleReranker",
        model=lambda query, texts: [0.5] * len(texts),
    )
    results = retriever.retrieve("milk", top_k=5)
    for result in (*results, *pickle.loads(pickle.dumps(results))):
        node = to_results([result])[0].node
        original = next(node for node in NODES if node.node_id == result.node.id)
        assert type(node) is type(original)
        assert (node.hash, node.metadata) == (original.hash, original.metadata)
    milk = next(r for r in results if r.node.id == "milk")
    assert to_results([milk])[0].node.index_id == "dairy"


def test_as_retriever_keeps_character_positions_of_nodes():
    node = TextNode(text="tea", id_="t", start_char_idx=4, end_char_idx=7)
    node.relationships[NodeRelationship.SOURCE] = TextNode(id_="d").as_related_node_info()
    index = VectorStoreIndex([node], embed_model=WordEmbedding())
    (result,) = as_retriever(index.as_retriever()).retrieve("tea")
    assert (result.node.start, result.node.end, result.node.document_id) == (4, 7, "d")


def test_adapters_accept_llama_index_retriever(index, scripted):
    expected = [r.node.node_id for r in index.as_retriever().retrieve("green tea")]
    face = NodeGraphRetriever(index.as_retriever())
    assert [r.node.node_id for r in face.retrieve("green tea")] == expected
    engine = NodeGraphQueryEngine(
        index.as_retriever(), scripted("Is tea green?\nIs tea black?"), strategy="sub_question"
    )
    response = engine.query("Is tea green or black?")
    assert {r.node.node_id for r in response.source_nodes} == {"green", "black"}
    assert [question for question, _ in response.metadata["sub_qa"]] == [
        "Is tea green?",
        "Is tea black?",
    ]


def test_as_retriever_unwraps_own_llama_index_adapter():
    letters = lambda texts: [[text.count(c) + 0.1 for c in "aeiou"] for text in texts]  # noqa: E731
    graph = NodeGraph(embed=letters)
    graph.add(["Tea one. Tea two. Tea three.", "Rivers run."])
    graph.create_node_group("sentence", lambda text: text.split(" T"))
    native = Retriever(graph, "sentence", "cosine")
    assert as_retriever(NodeGraphRetriever(native)) is native
    limited = NodeGraphRetriever(native, similarity_top_k=1, filters={"a": 1})
    assert WindowRetriever(NodeGraphRetriever(native, similarity_top_k=1))("two")[0].node.graph
    assert FusionRetriever([limited])("tea") == []


def test_window_retriever_rejects_llama_index_retriever(index):
    with pytest.raises(TypeError, match="in no node graph"):
        WindowRetriever(index.as_retriever())


def test_recursive_retriever_follows_reference_to_query_engine(index):
    """As in LlamaIndex's recursive guide: a table-of-contents entry refers to a query engine."""
    graph = NodeGraph(progress=False)
    graph.add(["All about tea.", "All about rivers."])
    tea, rivers = (node.id for node in graph.nodes("ROOT"))
    own = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "To the sea [1].")
    retriever = RecursiveRetriever(graph, ["ROOT"], references={tea: Fixed().query, rivers: own})
    for results in ways(retriever, "tea"):
        assert [r.node.text for r in results] == ["Green tea."]
        assert [match.similarity for match in results[0].evidence][:2] == [
            "answer of query",
            "reference",
        ]
    assert [r.node.text for r in retriever("rivers")] == ["To the sea [1]."]


def test_empty_response_returns_no_results(index):
    assert as_retriever(Fixed(answer="Empty Response").query).retrieve("tea") == []


@pytest.mark.skipif(
    version("llama-index-core") < "0.14", reason="LlamaIndex 0.13 fails on an empty index itself"
)
def test_query_engine_of_empty_index_returns_no_results():
    engine = VectorStoreIndex([], embed_model=WordEmbedding()).as_query_engine()
    assert as_retriever(engine.query).retrieve("tea") == []
    own = QueryEngine(Retriever(NodeGraph(progress=False), "ROOT"), lambda prompt: "?")
    assert as_retriever(own).retrieve("tea") == []


def test_query_engine_answer_has_evidence_of_its_sources(index, scripted):
    engine = index.as_query_engine(llm=scripted("Green tea is."))
    for results in ways(as_retriever(engine.query), "Which tea is green?"):
        (result,) = results
        assert result.node.text == "Green tea is."
        assert result.evidence[1].node.id == "green"


# Named tools


PARTS = "tea: Which tea is green?\nrivers: Where do rivers run?"


class Failing(CustomQueryEngine):
    """A query engine that fails as if its server were down."""

    def custom_query(self, query_str: str) -> str:
        raise ConnectionError("no route")

    async def acustom_query(self, query_str: str) -> str:
        raise ConnectionError("no route")


def engine_tools(**engines: Any) -> list[QueryEngineTool]:
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"All about {name}")
        for name, engine in engines.items()
    ]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_sub_questions_over_tools_match_llama_index(scripted, asynchronous):
    """Both engines ask equal sub-questions and synthesize from equal sub-answers."""
    tools = engine_tools(tea=Fixed(), rivers=Fixed(answer="To the sea."))
    question = "Which tea is green, and where do rivers run?"
    theirs_llm, ours_llm = (
        scripted("Both."),
        scripted(lambda prompt: PARTS if "Tools:" in prompt else "Both."),
    )
    theirs = SubQuestionQueryEngine.from_defaults(
        tools,
        llm=theirs_llm,
        question_gen=NodeGraphQuestionGenerator(lambda prompt: PARTS),
        use_async=asynchronous,
    )
    ours = NodeGraphQueryEngine.from_defaults(tools, ours_llm)
    if asynchronous:
        expected, response = (
            asyncio.run(theirs.aquery(question)),
            asyncio.run(ours.aquery(question)),
        )
    else:
        expected, response = theirs.query(question), ours.query(question)
    assert str(response) == str(expected)
    assert [(q, str(a)) for q, a in response.metadata["sub_qa"]] == [
        ("Which tea is green?", "Green tea."),
        ("Where do rivers run?", "To the sea."),
    ]
    for answer in ("Green tea.", "To the sea."):
        assert answer in theirs_llm.prompts[-1]
        assert answer in ours_llm.prompts[-1]


def test_failed_or_unknown_tool_is_recorded_as_error(scripted):
    """LlamaIndex's engine drops the failed sub-question silently."""
    parts = f"{PARTS}\nseas: How deep is the sea?"
    llm = scripted(lambda prompt: parts if "Tools:" in prompt else "Tea.")
    tools = engine_tools(tea=Fixed(), rivers=Failing())
    response = NodeGraphQueryEngine.from_defaults(tools, llm).query("What?")
    assert response.metadata["errors"] == [
        {"question": "Where do rivers run?", "error": "ConnectionError: no route"},
        {
            "question": "How deep is the sea?",
            "error": "LookupError: there is no tool 'seas'; there is 'tea', 'rivers'",
        },
    ]
    broken = engine_tools(tea=Failing(), rivers=Failing())
    with pytest.raises(ConnectionError, match="no route"):
        NodeGraphQueryEngine.from_defaults(broken, llm).query("What?")


def test_router_retriever_accepts_functions_as_routes(index):
    tools = {"rivers": Fixed(answer="To the sea.").query, "tea": index.as_retriever()}
    for name, text in (("rivers", "To the sea."), ("tea", "Green tea is steamed.")):
        router = RouterRetriever(tools, lambda prompt, name=name: name)
        for results in ways(router, "Which tea is green?"):
            assert results[0].node.text == text


def test_index_and_query_engine_must_be_wrapped(index):
    for source in (index, Fixed()):
        with pytest.raises(TypeError, match="wrap anything else in a function"):
            as_retriever(source)


# Comparison with LlamaIndex's components on the same retrievers


def test_recursion_into_query_engine_matches_llama_index(index):
    entry = IndexNode(text="All about tea.", index_id="tea")
    theirs = LlamaIndexRecursive(
        "root",
        retriever_dict={
            "root": VectorStoreIndex([entry], embed_model=WordEmbedding()).as_retriever()
        },
        query_engine_dict={"tea": Fixed()},
        query_response_tmpl="{response}",
    ).retrieve("tea")
    graph = NodeGraph(progress=False)
    graph.add(Document("All about tea.", id="entry"))
    ours = RecursiveRetriever(graph, ["ROOT"], references={"entry": Fixed().query}).retrieve("tea")
    assert [r.node.text for r in ours] == [r.node.get_content() for r in theirs] == ["Green tea."]


def test_composite_is_deep_copied_with_wrapped_retriever(index):
    holder = FusionRetriever([index.as_retriever()])
    expected = [r.node.id for r in holder.retrieve("green tea")]
    assert [r.node.id for r in copy.deepcopy(holder).retrieve("green tea")] == expected


def test_push_filters_converts_conditions_to_metadata_filters() -> None:
    documents = [
        TextNode(text=f"Tea number {n}.", metadata={"tenant": n % 20, "n": n}) for n in range(100)
    ]
    index = VectorStoreIndex(documents, embed_model=MockEmbedding(embed_dim=4))
    pushed: list[Any] = []

    def of_tenant(number: int) -> MetadataFilters:
        return MetadataFilters(filters=[MetadataFilter(key="tenant", value=number)])

    def in_store(filters: Any) -> dict[str, Any]:
        pushed.append(filters)
        return {"filters": of_tenant(filters["tenant"])}

    mine = restrict(as_retriever(index.as_retriever(), push_filters=in_store), {"tenant": 7})
    for results in ways(mine, "tea", filters={"n": {"gte": 20}}, top_k=3):
        assert [r.node.metadata["tenant"] for r in results] == [7] * 3
    assert pushed[0] == {"tenant": 7, "n": {"gte": 20}}
    own = index.as_retriever(filters=of_tenant(7))
    with pytest.raises(TypeError, match="without conditions of its own"):
        as_retriever(own, push_filters=in_store)
    with pytest.raises(TypeError, match=r"returns 'filters', not \{'where'\}"):
        as_retriever(index.as_retriever(), push_filters=lambda filters: {"where": 1}).retrieve(
            "tea", filters={"tenant": 7}
        )
