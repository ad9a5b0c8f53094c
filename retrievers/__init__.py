"""The search in graphs: similarities, their indexes, and retrievers that combine them."""

from ..nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
