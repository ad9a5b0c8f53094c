"""Comparison with LlamaIndex's components on the same retrievers and query engines."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.retrievers import RecursiveRetriever as LlamaIndexRecursive
from llama_index.core.schema import IndexNode, NodeRelationship, TextNode
from llama_index.core.tools import QueryEngineTool
from support.foreign_retrievers import ways
from support.llama_index_models import ScriptedLLM

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
    NodeGraphQuestionGenerator,
    NodeGraphRetriever,
)
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    QueryEngine,
    RecursiveRetriever,
    Retriever,
    WindowRetriever,
    as_retriever,
)

TEXTS = {"green": "Green tea is steamed.", "black": "Black tea is fermented."}
PARTS = "tea: Which tea is green?\nrivers: Where do rivers run?"


def scripted(answer: Any) -> ScriptedLLM:
    return ScriptedLLM(answer=answer, prompts=[])


def index_of(*nodes: TextNode) -> VectorStoreIndex:
    return VectorStoreIndex(list(nodes), embed_model=MockEmbedding(embed_dim=4))


@pytest.fixture
def index() -> VectorStoreIndex:
    return index_of(*(TextNode(text=text, id_=id) for id, text in TEXTS.items()))


class Fixed(CustomQueryEngine):
    """A query engine with one answer. None: it raises a connection error."""

    answer: str | None = "Green tea."

    def custom_query(self, query_str: str) -> str:
        if self.answer is None:
            raise ConnectionError("no route")
        return self.answer

    async def acustom_query(self, query_str: str) -> str:
        return self.custom_query(query_str)


RIVERS, FAILING = Fixed(answer="To the sea."), Fixed(answer=None)


def engine_tools(**engines: Any) -> list[QueryEngineTool]:
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"All about {name}")
        for name, engine in engines.items()
    ]


def test_positions_and_class_of_nodes_are_kept() -> None:
    node = IndexNode(text="tea", index_id="t", id_="t", start_char_idx=4, end_char_idx=7)
    node.relationships[NodeRelationship.SOURCE] = TextNode(id_="d").as_related_node_info()
    (result,) = as_retriever(index_of(node).as_retriever()).retrieve("tea")
    assert (result.node.start, result.node.end, result.node.document_id) == (4, 7, "d")
    ((scored),) = NodeGraphRetriever(index_of(node).as_retriever()).retrieve("tea")
    assert (type(scored.node), getattr(scored.node, "index_id", "")) == (IndexNode, "t")


def test_own_llama_index_adapter_is_unwrapped() -> None:
    letters = lambda texts: [[text.count(c) + 0.1 for c in "aeiou"] for text in texts]  # noqa: E731
    graph = NodeGraph(embed=letters)
    graph.add(["Tea one. Tea two. Tea three.", "Rivers run."])
    graph.create_node_group("sentence", lambda text: text.split(" T"))
    native = Retriever(graph, "sentence", "cosine")
    assert as_retriever(NodeGraphRetriever(native)) is native
    limited = NodeGraphRetriever(native, similarity_top_k=1, filters={"a": 1})
    assert WindowRetriever(NodeGraphRetriever(native, similarity_top_k=1))("two")[0].node.graph
    assert FusionRetriever([limited])("tea") == []


def test_reference_to_query_engine_is_followed() -> None:
    entry = IndexNode(text="All about tea.", index_id="tea")
    theirs = LlamaIndexRecursive(
        "root",
        retriever_dict={"root": index_of(entry).as_retriever()},
        query_engine_dict={"tea": Fixed()},
        query_response_tmpl="{response}",
    ).retrieve("tea")
    graph = NodeGraph(progress=False)
    graph.add([Document("All about tea.", id="tea"), Document("All about rivers.", id="rivers")])
    own = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "To the sea [1].")
    references = {"tea": Fixed().query, "rivers": own}
    retriever = RecursiveRetriever(graph, ["ROOT"], references=references)
    for results in ways(retriever, "tea"):
        assert [r.node.text for r in results] == [r.node.get_content() for r in theirs]
        kinds = [match.similarity for match in results[0].evidence]
        assert kinds[:2] == ["answer of query", "reference"]
    assert [r.node.text for r in retriever("rivers")] == ["To the sea [1]."]


def test_query_engine_in_function_returns_answer_with_sources(index: VectorStoreIndex) -> None:
    engine = index.as_query_engine(llm=scripted("Green tea is."))
    for results in ways(as_retriever(engine.query), "Which tea is green?"):
        (result,) = results
        assert result.node.text == "Green tea is."
        assert {match.node.id for match in result.evidence[1:]} == {"green", "black"}
    for source in (index, engine):
        with pytest.raises(TypeError, match="wrap anything else in a function"):
            as_retriever(source)


def test_empty_response_returns_no_results() -> None:
    assert as_retriever(Fixed(answer="Empty Response").query).retrieve("tea") == []
    own = QueryEngine(Retriever(NodeGraph(progress=False), "ROOT"), lambda prompt: "?")
    assert as_retriever(own).retrieve("tea") == []
    if version("llama-index-core") >= "0.14":  # version 0.13 fails on an empty index itself
        engine = index_of().as_query_engine(llm=scripted("?"))
        assert as_retriever(engine.query).retrieve("tea") == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_sub_questions_over_tools_match_llama_index(asynchronous: bool) -> None:
    """Both engines ask equal sub-questions and synthesize from equal sub-answers."""
    tools = engine_tools(tea=Fixed(), rivers=RIVERS)
    question = "Which tea is green, and where do rivers run?"
    theirs_llm = scripted("Both.")
    ours_llm = scripted(lambda prompt: PARTS if "Tools:" in prompt else "Both.")
    generator = NodeGraphQuestionGenerator(lambda prompt: PARTS)
    theirs = SubQuestionQueryEngine.from_defaults(
        tools, llm=theirs_llm, question_gen=generator, use_async=asynchronous
    )
    ours = NodeGraphQueryEngine.from_defaults(tools, ours_llm)
    if asynchronous:
        expected = asyncio.run(theirs.aquery(question))
        response = asyncio.run(ours.aquery(question))
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


def test_failed_or_unknown_tool_is_recorded_as_error() -> None:
    """LlamaIndex's engine drops the failed sub-question silently."""
    parts = f"{PARTS}\nseas: How deep is the sea?"
    llm = scripted(lambda prompt: parts if "Tools:" in prompt else "Tea.")
    tools = engine_tools(tea=Fixed(), rivers=FAILING)
    unknown = "LookupError: unknown tool 'seas'; known: 'tea', 'rivers'"
    assert NodeGraphQueryEngine.from_defaults(tools, llm).query("What?").metadata["errors"] == [
        {"question": "Where do rivers run?", "error": "ConnectionError: no route"},
        {"question": "How deep is the sea?", "error": unknown},
    ]
    broken = engine_tools(tea=FAILING, rivers=FAILING)
    with pytest.raises(ConnectionError, match="no route"):
        NodeGraphQueryEngine.from_defaults(broken, llm).query("What?")
