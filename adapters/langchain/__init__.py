"""nodekin in LangChain: retrievers, stores, query engines, and conversion in both directions."""

from ...nodegraph.lazy_names import attach_stub
from ..extras import extra

with extra("langchain", "langchain_core"):
    import langchain_core  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
