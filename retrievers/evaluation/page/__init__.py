"""An evaluation as a page for a browser, and as plots."""

from ....nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
