"""The tools of a corpus as LlamaIndex tools, for agents."""

from __future__ import annotations

from typing import Any, Literal

from llama_index.core.bridge.pydantic import BaseModel, Field, create_model
from llama_index.core.tools import AsyncBaseTool, ToolMetadata, ToolOutput

from ...retrievers.corpus_tools.tool_output import ToolError, ToolSession
from ...retrievers.corpus_tools.toolset import CorpusTools

_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict[str, Any]}


class CorpusFunctionTool(AsyncBaseTool):
    """One tool of a corpus; see ``corpus_toolkit``."""

    def __init__(
        self, tools: CorpusTools, name: str, session: ToolSession | None, prefix: str
    ) -> None:
        self._tools, self._name, self._session = tools, name, session
        tool = tools.tools[name]
        self._metadata = ToolMetadata(
            name=f"{prefix}{name}",
            description=tool.description,
            fn_schema=_model(f"{prefix}{name}", tool.parameters),
        )

    @property
    def metadata(self) -> ToolMetadata:
        """The name, description and arguments."""
        return self._metadata

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool with its arguments by name."""
        arguments = self._arguments(args, kwargs)
        try:
            result = self._tools.call(self._name, arguments, session=self._session)
        except ToolError as error:
            return self._output(arguments, str(error), error, is_error=True)
        return self._output(arguments, result.text, result)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Async version of ``call``."""
        arguments = self._arguments(args, kwargs)
        try:
            result = await self._tools.acall(self._name, arguments, session=self._session)
        except ToolError as error:
            return self._output(arguments, str(error), error, is_error=True)
        return self._output(arguments, result.text, result)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Name an argument that stands alone, as LlamaIndex's older agents write it."""
        required = self._tools.tools[self._name].parameters["required"]
        return {**dict(zip(required, args, strict=False)), **kwargs}

    def _output(
        self, arguments: dict[str, Any], text: str, raw: Any, is_error: bool = False
    ) -> ToolOutput:
        return ToolOutput(
            content=text,
            tool_name=self._metadata.get_name(),
            raw_input={"args": (), "kwargs": arguments},
            raw_output=raw,
            is_error=is_error,
        )


def corpus_toolkit(
    tools: CorpusTools, session: ToolSession | None = None, *, prefix: str = ""
) -> list[CorpusFunctionTool]:
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
        Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools are CorpusTools(graph), not {tools!r:.80}")
    return [CorpusFunctionTool(tools, name, session, prefix) for name in tools.tools]


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
