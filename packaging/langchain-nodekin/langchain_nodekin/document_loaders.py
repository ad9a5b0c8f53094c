"""A LangChain document loader for files and folders."""

from nodekin.adapters.langchain import FileLoader as FileLoader

__all__ = ["FileLoader"]
