"""What makes nodekin a citizen of LangChain: the retriever, and conversion both ways."""

from ..extras import extra

with extra("langchain", "langchain_core"):
    from .documents import from_document, to_document
    from .retriever import NodeGraphRetriever
    from .transform import as_transform

__all__ = ["NodeGraphRetriever", "as_transform", "from_document", "to_document"]
