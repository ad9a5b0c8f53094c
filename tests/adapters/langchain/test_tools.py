"""A retriever, and a query engine, as an agent's tool."""

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_runs import FinishedRuns
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.adapters.langchain.tools import answer_tool, retriever_tool
from nodekin.retrievers import QueryEngine


@pytest.fixture
def tool(retriever):
    return retriever_tool(
        retriever,
        "search_tea",
        "Search texts about tea.",
        filter_by={"topic": "tea, rivers or printing", "language": "en or zh"},
        show=["topic", "page"],
    )


async def call(tool, mode, config=None, **arguments):
    asked = {"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}
    if mode == "sync":
        return tool.invoke(asked, config)
    return await tool.ainvoke(asked, config)


async def test_passages_are_numbered_and_their_documents_come_along(tool, retriever, mode):
    message = await call(tool, mode, query="rivers dry out, printing")
    assert isinstance(message, ToolMessage)
    assert message.artifact == retriever.invoke("rivers dry out, printing")
    first, second, *_ = message.content.split("\n\n")
    assert first.startswith("[1] (topic: rivers, page: 3)\nRivers run to the sea.")
    assert second.startswith("[2] (topic: printing)\nA printing press.")
    assert [d.id for d in message.artifact][:2] == ["rivers", "press"]


async def test_the_model_may_narrow_the_search(tool, mode):
    message = await call(tool, mode, query="tea", topic=["rivers", "printing"])
    assert [d.id for d in message.artifact] == ["rivers", "press"]
    message = await call(tool, mode, query="红茶", topic="tea", language="zh")
    assert [d.id for d in message.artifact] == ["茶"]
    message = await call(tool, mode, query="tea", topic="", language=None)
    assert len(message.artifact) == 3


async def test_nothing_found_is_said(tool, mode):
    message = await call(tool, mode, query="zeppelin")
    assert (message.content, message.artifact) == ("Nothing was found.", [])


async def test_what_there_is_not_is_refused(tool):
    for mode in ("sync", "async"):
        with pytest.raises(ValidationError, match="colour"):
            await call(tool, mode, query="tea", colour="red")


def test_what_the_model_is_told(tool):
    told = convert_to_openai_tool(tool)["function"]
    assert told["name"] == "search_tea"
    assert told["parameters"]["required"] == ["query"]
    assert set(told["parameters"]["properties"]) == {"query", "topic", "language"}
    assert told["parameters"]["properties"]["topic"]["description"] == "tea, rivers or printing"


async def test_the_retrievers_own_filter_holds(native, mode):
    retriever = NodeGraphRetriever(retriever=native, filter={"language": "en"})
    tool = retriever_tool(retriever, "t", "d", filter_by={"topic": "a topic"})
    assert (await call(tool, mode, query="红茶")).artifact == []
    with pytest.raises(ValueError, match="language"):
        retriever_tool(retriever, "t", "d", filter_by={"language": "a language"})


async def test_the_runs(tool, mode):
    tracer = FinishedRuns()
    await call(tool, mode, {"callbacks": [tracer]}, query="tea")
    (run,) = tracer.roots
    assert (run.run_type, run.name) == ("tool", "search_tea")
    (retrieval,) = run.child_runs
    assert retrieval.name == "NodeGraphRetriever"
    assert [each.name for each in retrieval.child_runs] == ["search"]


async def test_nothing_blocks_the_event_loop(tool):
    with blockbuster_ctx():
        assert await tool.ainvoke({"query": "tea", "topic": "tea"})


def test_any_langchain_retriever_without_conditions():
    class Own(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return []

    assert retriever_tool(Own(), "t", "d").invoke({"query": "x"}) == "Nothing was found."


@pytest.mark.parametrize("field", ["query", "callbacks"])
def test_names_that_are_taken(retriever, field):
    with pytest.raises(ValueError, match=field):
        retriever_tool(retriever, "t", "d", filter_by={field: "x"})


def test_what_is_no_retriever_is_refused(native):
    with pytest.raises(TypeError, match=r"NodeGraphRetriever\(retriever=\.\.\.\)"):
        retriever_tool(native, "t", "d")


def model(prompt):
    return "红茶是全发酵的 [1]。" if "红茶" in prompt else "Some rivers dry out [1][3]."


@pytest.fixture
def engine(native):
    return QueryEngine(native, model)


@pytest.fixture
def ask_tool(engine):
    return answer_tool(
        engine, "ask", "Answers about tea.", filter_by={"topic": "a topic"}, show=["topic", "page"]
    )


async def test_the_answer_comes_with_the_sources_it_cites(ask_tool, engine, mode):
    message = await call(ask_tool, mode, question="Which rivers dry out? tea")
    assert isinstance(message, ToolMessage)
    assert message.content == (
        "Some rivers dry out [1][3].\n\nSources:\n"
        "[1] rivers (topic: rivers, page: 3)\n[3] press (topic: printing)"
    )
    made = message.artifact
    runnable = NodeGraphQueryEngine(engine=engine, output="dict")
    assert made == runnable.invoke("Which rivers dry out? tea")
    assert [d.id for d in made["context"]] == [s["id"] for s in made["sources"]]


async def test_chinese(ask_tool, mode):
    message = await call(ask_tool, mode, question="红茶是全发酵的吗？")
    assert message.content == "红茶是全发酵的 [1]。\n\nSources:\n[1] 茶 (topic: tea)"


async def test_an_answer_that_cites_nothing_names_all_sources(native, mode):
    tool = answer_tool(QueryEngine(native, lambda prompt: "So it is."), "ask", "d")
    message = await call(tool, mode, question="fermented tea")
    assert message.content.endswith("Sources:\n[1] tea\n[2] rivers\n[3] press")


async def test_answer_tool_nothing_found_is_said(ask_tool, mode):
    message = await call(ask_tool, mode, question="zeppelin")
    assert message.content == "Nothing was found that answers this question."
    assert message.artifact["found"] is False


async def test_answer_tool_the_model_may_narrow_the_search(ask_tool, mode):
    message = await call(ask_tool, mode, question="tea", topic=["rivers", "printing"])
    assert [d.id for d in message.artifact["context"]] == ["rivers", "press"]


async def test_the_engines_own_filter_holds(engine, mode):
    own = NodeGraphQueryEngine(engine=engine, filter={"language": "en"}, k=1)
    tool = answer_tool(own, "ask", "d", filter_by={"topic": "a topic"})
    assert (await call(tool, mode, question="红茶")).artifact["context"] == []
    assert len((await call(tool, mode, question="tea")).artifact["context"]) == 1
    with pytest.raises(ValueError, match="language"):
        answer_tool(own, "ask", "d", filter_by={"language": "a language"})
    with pytest.raises(ValueError, match="question"):
        answer_tool(own, "ask", "d", filter_by={"question": "x"})


async def test_answer_tool_the_runs(ask_tool, mode):
    trace = FinishedRuns()
    await call(ask_tool, mode, {"callbacks": [trace]}, question="tea")
    (run,) = trace.roots
    assert (run.run_type, run.name) == ("tool", "ask")
    (engine,) = run.child_runs
    assert engine.name == "NodeGraphQueryEngine"
    (answer,) = engine.child_runs
    assert [each.name for each in answer.child_runs] == ["retrieve", "ask"]


async def test_answer_tool_nothing_blocks_the_event_loop(ask_tool):
    with blockbuster_ctx():
        assert await ask_tool.ainvoke({"question": "tea", "topic": "tea"})


def test_answer_tool_what_the_model_is_told(ask_tool):
    told = convert_to_openai_tool(ask_tool)["function"]
    assert told["parameters"]["required"] == ["question"]
    assert set(told["parameters"]["properties"]) == {"question", "topic"}


async def test_answer_tool_what_there_is_not_is_refused(ask_tool, native):
    with pytest.raises(ValidationError, match="colour"):
        ask_tool.invoke({"question": "tea", "colour": "red"})
    with pytest.raises(TypeError, match="retriever_tool"):
        answer_tool(native, "ask", "d")
