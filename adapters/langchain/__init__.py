"""The LangChain integration: a retriever, a vector store, a reranker and converters."""

from ...nodegraph.lazy_names import attach_stub
from ..extras import extra

with extra("langchain", "langchain_core"):
    import langchain_core  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
