"""A query engine as an agent's tool."""

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import ToolMessage
from langchain_core.tracers import BaseTracer
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from nodekin.adapters.langchain.query_engine import NodeGraphQueryEngine
from nodekin.adapters.langchain.tools import answer_tool
from nodekin.retrievers import QueryEngine


class Trace(BaseTracer):
    def __init__(self):
        super().__init__()
        self.roots = []

    def _persist_run(self, run):
        self.roots.append(run)


def model(prompt):
    return "红茶是全发酵的 [1]。" if "红茶" in prompt else "Some rivers dry out [1][3]."


@pytest.fixture
def engine(native):
    return QueryEngine(native, model)


@pytest.fixture
def tool(engine):
    return answer_tool(
        engine, "ask", "Answers about tea.", filter_by={"topic": "a topic"}, show=["topic", "page"]
    )


async def call(tool, mode, config=None, **arguments):
    asked = {"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}
    if mode == "sync":
        return tool.invoke(asked, config)
    return await tool.ainvoke(asked, config)


both = pytest.mark.parametrize("mode", ["sync", "async"])


@both
async def test_the_answer_comes_with_the_sources_it_cites(tool, engine, mode):
    message = await call(tool, mode, question="Which rivers dry out? tea")
    assert isinstance(message, ToolMessage)
    assert message.content == (
        "Some rivers dry out [1][3].\n\nSources:\n"
        "[1] rivers (topic: rivers, page: 3)\n[3] press (topic: printing)"
    )
    made = message.artifact
    runnable = NodeGraphQueryEngine(engine=engine, output="dict")
    assert made == runnable.invoke("Which rivers dry out? tea")
    assert [d.id for d in made["context"]] == [s["id"] for s in made["sources"]]


@both
async def test_chinese(tool, mode):
    message = await call(tool, mode, question="红茶是全发酵的吗？")
    assert message.content == "红茶是全发酵的 [1]。\n\nSources:\n[1] 茶 (topic: tea)"


@both
async def test_an_answer_that_cites_nothing_names_all_sources(native, mode):
    tool = answer_tool(QueryEngine(native, lambda prompt: "So it is."), "ask", "d")
    message = await call(tool, mode, question="fermented tea")
    assert message.content.endswith("Sources:\n[1] tea\n[2] rivers\n[3] press")


@both
async def test_nothing_found_is_said(tool, mode):
    message = await call(tool, mode, question="zeppelin")
    assert message.content == "Nothing was found that answers this question."
    assert message.artifact["found"] is False


@both
async def test_the_model_may_narrow_the_search(tool, mode):
    message = await call(tool, mode, question="tea", topic=["rivers", "printing"])
    assert [d.id for d in message.artifact["context"]] == ["rivers", "press"]


@both
async def test_the_engines_own_filter_holds(engine, mode):
    own = NodeGraphQueryEngine(engine=engine, filter={"language": "en"}, k=1)
    tool = answer_tool(own, "ask", "d", filter_by={"topic": "a topic"})
    assert (await call(tool, mode, question="红茶")).artifact["context"] == []
    assert len((await call(tool, mode, question="tea")).artifact["context"]) == 1
    with pytest.raises(ValueError, match="language"):
        answer_tool(own, "ask", "d", filter_by={"language": "a language"})
    with pytest.raises(ValueError, match="question"):
        answer_tool(own, "ask", "d", filter_by={"question": "x"})


@both
async def test_the_runs(tool, mode):
    trace = Trace()
    await call(tool, mode, {"callbacks": [trace]}, question="tea")
    (run,) = trace.roots
    assert (run.run_type, run.name) == ("tool", "ask")
    (engine,) = run.child_runs
    assert engine.name == "NodeGraphQueryEngine"
    (answer,) = engine.child_runs
    assert [each.name for each in answer.child_runs] == ["retrieve", "ask"]


async def test_nothing_blocks_the_event_loop(tool):
    with blockbuster_ctx():
        assert await tool.ainvoke({"question": "tea", "topic": "tea"})


def test_what_the_model_is_told(tool):
    told = convert_to_openai_tool(tool)["function"]
    assert told["parameters"]["required"] == ["question"]
    assert set(told["parameters"]["properties"]) == {"question", "topic"}


async def test_what_there_is_not_is_refused(tool, native):
    with pytest.raises(ValidationError, match="colour"):
        tool.invoke({"question": "tea", "colour": "red"})
    with pytest.raises(TypeError, match="retriever_tool"):
        answer_tool(native, "ask", "d")
