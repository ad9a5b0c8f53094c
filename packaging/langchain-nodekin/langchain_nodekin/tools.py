"""LangChain tools with which agents search a node graph."""

from nodekin.adapters.langchain import corpus_toolkit as corpus_toolkit
from nodekin.adapters.langchain import retriever_tool as retriever_tool

__all__ = ["corpus_toolkit", "retriever_tool"]
