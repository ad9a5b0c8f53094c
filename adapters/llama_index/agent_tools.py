"""The tools of a corpus as LlamaIndex tools, for agents."""

from __future__ import annotations

from typing import Any, Literal

from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput

from ...retrievers.corpus_tools.tool_output import ToolError, ToolSession
from ...retrievers.corpus_tools.toolset import CorpusTools

_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict[str, Any]}


def corpus_toolkit(
    tools: CorpusTools, session: ToolSession | None = None, *, prefix: str = ""
) -> list[FunctionTool]:
    """Return the tools of a corpus as LlamaIndex tools: search, grep, outline, read, related.

    Names, descriptions, arguments and texts are those of ``CorpusTools``, as by the Model Context
    Protocol. What is wrong with a call is a text for the model, and marked as an error. The
    ``raw_output`` is the ``ToolOutput`` of nodekin, with the places as data.

    Args:
        tools: The tools.
        session: What the conversation has read, which is not shown again; one for each
            conversation. None to show everything each time.
        prefix: What the names begin with, where an agent has several corpora: ``"tea_"``.

    Raises:
        TypeError: If they are no ``CorpusTools``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea is steamed.", id="tea.md"))
        >>> toolkit = corpus_toolkit(CorpusTools(graph))
        >>> print(toolkit[0].call(query="What is steamed?").content)
        tea.md [0:21]
        | Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools are CorpusTools(graph), not {tools!r:.80}")
    return [_function_tool(tools, name, session, prefix) for name in tools.tools]


def _function_tool(
    tools: CorpusTools, name: str, session: ToolSession | None, prefix: str
) -> FunctionTool:
    tool = tools.tools[name]
    tool_name = f"{prefix}{name}"

    def by_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        # LlamaIndex's older agents write an argument that stands alone without its name.
        return {**dict(zip(tool.parameters["required"], args, strict=False)), **kwargs}

    def output(arguments: dict[str, Any], result: Any) -> ToolOutput:
        return ToolOutput(
            content=str(result) if isinstance(result, ToolError) else result.text,
            tool_name=tool_name,
            raw_input={"args": (), "kwargs": arguments},
            raw_output=result,
            is_error=isinstance(result, ToolError),
        )

    def call(*args: Any, **kwargs: Any) -> ToolOutput:
        arguments = by_name(args, kwargs)
        try:
            return output(arguments, tools.call(name, arguments, session=session))
        except ToolError as error:
            return output(arguments, error)

    async def acall(*args: Any, **kwargs: Any) -> ToolOutput:
        arguments = by_name(args, kwargs)
        try:
            return output(arguments, await tools.acall(name, arguments, session=session))
        except ToolError as error:
            return output(arguments, error)

    schema = _model(tool_name, tool.parameters)
    metadata = ToolMetadata(tool.description, tool_name, schema)
    return FunctionTool(call, metadata, acall, callback=_as_it_is)


def _as_it_is(output: ToolOutput) -> ToolOutput:
    """Return the output of a tool, which LlamaIndex would put into another one."""
    return output


def _model(name: str, parameters: Any) -> type[BaseModel]:
    """Return a pydantic model of a tool's arguments."""
    fields: dict[str, Any] = {}
    for argument, declared in parameters["properties"].items():
        kind: Any = _TYPES[declared["type"]]
        if "enum" in declared:
            kind = Literal[tuple(declared["enum"])]
        default = ... if argument in parameters["required"] else declared.get("default")
        if default is None:
            kind = kind | None
        fields[argument] = (kind, Field(default=default, description=declared["description"]))
    model: type[BaseModel] = create_model(name, **fields)
    return model
