from support.command_line import embedding, here, indexed, nodekin

__all__ = ["embedding", "here", "indexed", "nodekin"]
