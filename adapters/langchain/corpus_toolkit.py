"""The tools of a corpus as LangChain tools, for agents."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import StructuredTool, ToolException

from ...retrievers.corpus_tools.tool_output import ToolError, ToolOutput, ToolSession
from ...retrievers.corpus_tools.toolset import CorpusTools


def corpus_toolkit(
    tools: CorpusTools, session: ToolSession | None = None, *, prefix: str = ""
) -> list[StructuredTool]:
    """Return the tools of a corpus as LangChain tools: search, grep, outline, read, related.

    Names, descriptions, arguments and texts are those of ``CorpusTools``, as by the Model Context
    Protocol. What is wrong with a call is a text for the model, which can do better. The
    ``artifact`` of a tool's message is the ``ToolOutput``, with the places as data.

    Args:
        tools: The tools.
        session: What the conversation has read, which is not shown again. One for each
            conversation. None to show everything each time.
        prefix: What the names begin with, where an agent has several corpora: ``"tea_"``.

    Raises:
        TypeError: If they are no ``CorpusTools``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea is steamed.", id="tea.md"))
        >>> toolkit = corpus_toolkit(CorpusTools(graph))
        >>> [tool.name for tool in toolkit]
        ['search', 'grep', 'outline', 'read', 'related']
        >>> print(toolkit[0].invoke({"query": "What is steamed?"}))
        tea.md [0:21]
        Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools are CorpusTools(graph), not {tools!r:.80}")
    return [_as_tool(tools, name, session, prefix) for name in tools.tools]


def _as_tool(
    tools: CorpusTools, name: str, session: ToolSession | None, prefix: str
) -> StructuredTool:
    tool = tools.tools[name]

    def call(**arguments: Any) -> tuple[str, ToolOutput]:
        try:
            output = tools.call(name, arguments, session=session)
        except ToolError as error:
            raise ToolException(str(error)) from error
        return output.text, output

    async def acall(**arguments: Any) -> tuple[str, ToolOutput]:
        try:
            output = await tools.acall(name, arguments, session=session)
        except ToolError as error:
            raise ToolException(str(error)) from error
        return output.text, output

    return StructuredTool(
        name=f"{prefix}{name}",
        description=tool.description,
        args_schema={**tool.parameters, "title": name, "description": tool.description},
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
