"""The retriever."""

from nodekin.adapters.langchain import NodeGraphRetriever as NodeGraphRetriever

__all__ = ["NodeGraphRetriever"]
