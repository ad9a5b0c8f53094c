"""Rerankers: cross-encoders, functions, filters. And the retriever around them."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
