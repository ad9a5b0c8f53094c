"""Tools for LlamaIndex agents that search and read a corpus."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Literal

from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput

from ...retrievers.corpus_tools.tool_output import ToolError
from ...retrievers.corpus_tools.toolset import CorpusTools

_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict[str, Any]}


def corpus_toolkit(tools: CorpusTools, *, prefix: str = "") -> list[FunctionTool]:
    """Convert the six corpus tools to LlamaIndex tools for agents.

    ``CorpusTools`` and the MCP server have tools with equal names, descriptions, arguments and
    output texts. If a call is invalid, the tool returns an error message for the model. The
    ``raw_output`` of a tool is the return value of ``CorpusTools.call``.

    Args:
        tools: The corpus tools.
        prefix: A prefix for the tool names, such as ``"tea_"``, for agents that use several
            corpora.

    Raises:
        TypeError: If ``tools`` is not an instance of ``CorpusTools``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import CorpusTools
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea is steamed.", id="tea.md"))
        >>> toolkit = corpus_toolkit(CorpusTools(graph))
        >>> print(toolkit[0].call(query="What is steamed?").content)
        tea.md [0:21]
        | Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools must be CorpusTools(graph), got {tools!r:.80}")
    return [_function_tool(tools, name, prefix) for name in tools.tools]


def _function_tool(tools: CorpusTools, name: str, prefix: str) -> FunctionTool:
    tool = tools.tools[name]
    tool_name = f"{prefix}{name}"

    def call(**arguments: Any) -> ToolOutput:
        try:
            result: Any = tools.call(name, arguments)
            text = result.text
        except ToolError as error:
            result = error
            text = str(error)
        raw = {"kwargs": arguments}
        is_error = isinstance(result, ToolError)
        return ToolOutput(tool_name, text, raw_input=raw, raw_output=result, is_error=is_error)

    acall = partial(asyncio.to_thread, call)
    metadata = ToolMetadata(tool.description, tool_name, _model(tool_name, tool.parameters))
    return FunctionTool(call, metadata, acall, callback=lambda result: result)


def _model(name: str, parameters: Any) -> type[BaseModel]:
    """Create a pydantic model for the arguments of a tool from their JSON schema."""
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
