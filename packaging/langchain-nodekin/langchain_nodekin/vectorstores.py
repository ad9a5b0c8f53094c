"""The vector store."""

from nodekin.adapters.langchain import NodeGraphVectorStore as NodeGraphVectorStore

__all__ = ["NodeGraphVectorStore"]
