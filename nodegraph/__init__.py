"""What the corpus is: documents, groups of nodes made from them, transforms and the store."""

from .lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
