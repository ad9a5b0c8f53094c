"""Evaluate retrievers of any framework on questions with expected results, and compare them."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
