"""A page for a browser: ask a corpus, and look inside it."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
