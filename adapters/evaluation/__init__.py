"""Open what a file of set-ups declares. The commands that measure and tune."""

from ...nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
