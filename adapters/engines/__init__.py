"""Engines that search a graph's vectors and words beside its store: Milvus, Chroma, OpenSearch."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
