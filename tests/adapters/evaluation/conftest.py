from support.command_line import here, indexed, nodekin

__all__ = ["here", "indexed", "nodekin"]
