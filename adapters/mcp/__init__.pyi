from .mcp_server import CorpusServer as CorpusServer
