"""A web page for questions to a corpus and for its nodes."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
