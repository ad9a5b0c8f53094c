"""The content of a corpus: documents, the nodes derived from them, transforms and storage."""

from .lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
