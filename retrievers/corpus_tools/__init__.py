"""A corpus as tools for agents: search, grep, outline, read, related."""

from .corpus_view import CorpusView
from .tool_output import ToolError, ToolOutput
from .tool_session import ToolSession
from .toolset import CorpusTool, CorpusTools

__all__ = ["CorpusTool", "CorpusTools", "CorpusView", "ToolError", "ToolOutput", "ToolSession"]
