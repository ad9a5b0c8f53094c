"""Corpus tools return equal outputs in LangChain, LlamaIndex and plain Python."""

import json

import pytest
from langchain_core.messages import ToolCall
from langchain_core.utils.function_calling import convert_to_openai_tool

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import CorpusTools, ToolError

CALLS = [
    ("search", {"query": "Which tea is steamed?"}),
    ("search", {"query": "绿茶", "skip": 1}),
    ("grep", {"pattern": "FERMENTED"}),
    ("outline", {}),
    ("read", {"document": "tea", "start": 0, "end": 9}),
    ("cite", {"draft": "It “is STEAMED”, “not boiled”."}),
]

WRONG = [
    ("read", {"document": "coffee"}),
    ("search", {"query": "tea", "filters": {"year": {"above": 3}}}),
    ("grep", {"pattern": ""}),
]


@pytest.fixture(scope="module")
def tools() -> CorpusTools:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("Green tea is steamed. Black tea is fermented.", {"year": 1610}, id="tea"),
            Document("绿茶是蒸青的。红茶是发酵的。", {"year": 2010}, id="茶"),
        ]
    )
    return CorpusTools(graph)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_tools_return_equal_outputs_in_both_frameworks(tools, name, arguments) -> None:
    expected = tools.call(name, arguments)
    ours = {tool.name: tool for tool in langchain.corpus_toolkit(tools)}[name]
    call = ToolCall(name=name, args=arguments, id="1", type="tool_call")
    for message in (ours.invoke(call), await ours.ainvoke(call)):
        assert (message.content, message.artifact) == (expected.text, expected.to_dict())
        assert message.status == "success"
    theirs = {tool.metadata.name: tool for tool in llama_index.corpus_toolkit(tools)}[name]
    for output in (theirs.call(**arguments), await theirs.acall(**arguments)):
        assert (output.content, output.raw_output) == (expected.text, expected)
        assert not output.is_error


@pytest.mark.parametrize(("name", "arguments"), WRONG)
async def test_tool_errors_are_returned_to_the_model(tools, name, arguments) -> None:
    with pytest.raises(ToolError) as error:
        tools.call(name, arguments)
    ours = {tool.name: tool for tool in langchain.corpus_toolkit(tools)}[name]
    call = ToolCall(name=name, args=arguments, id="1", type="tool_call")
    for message in (ours.invoke(call), await ours.ainvoke(call)):
        assert (message.content, message.status) == (str(error.value), "error")
    theirs = {tool.metadata.name: tool for tool in llama_index.corpus_toolkit(tools)}[name]
    for output in (theirs.call(**arguments), await theirs.acall(**arguments)):
        assert (output.content, output.is_error) == (str(error.value), True)


def test_tool_schemas_are_equal_in_both_frameworks(tools) -> None:
    ours = langchain.corpus_toolkit(tools, prefix="tea_")
    theirs = llama_index.corpus_toolkit(tools, prefix="tea_")
    for tool, one, other in zip(tools.tools.values(), ours, theirs, strict=True):
        from_langchain = convert_to_openai_tool(one)["function"]
        from_llama_index = other.metadata.to_openai_tool()["function"]
        for offered in (from_langchain, from_llama_index):
            assert offered["name"] == f"tea_{tool.name}"
            assert tool.description in offered["description"]
            properties = offered["parameters"]["properties"]
            declared = tool.parameters["properties"]
            assert {n: p["description"] for n, p in properties.items()} == {
                n: p["description"] for n, p in declared.items()
            }
            assert offered["parameters"].get("required", []) == tool.parameters["required"]
        assert json.dumps(from_llama_index)


@pytest.mark.parametrize("adapter", [langchain, llama_index])
def test_corpus_toolkit_of_other_object_raises(adapter) -> None:
    with pytest.raises(TypeError, match=r"tools must be CorpusTools\(graph\), got"):
        adapter.corpus_toolkit("graph")
