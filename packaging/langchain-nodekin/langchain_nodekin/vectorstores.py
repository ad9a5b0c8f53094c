"""A LangChain vector store that is backed by a node graph."""

from nodekin.adapters.langchain import NodeGraphVectorStore as NodeGraphVectorStore

__all__ = ["NodeGraphVectorStore"]
