"""A corpus as tools for agents: search, grep, outline, read, related."""

from .output import ToolError, ToolOutput
from .session import ToolSession
from .toolset import CorpusTool, CorpusTools

__all__ = ["CorpusTool", "CorpusTools", "ToolError", "ToolOutput", "ToolSession"]
