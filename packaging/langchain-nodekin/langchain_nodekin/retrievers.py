"""A LangChain retriever that searches a node graph."""

from nodekin.adapters.langchain import NodeGraphRetriever as NodeGraphRetriever

__all__ = ["NodeGraphRetriever"]
