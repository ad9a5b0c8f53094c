"""Turn files into documents: by their content, in processes of their own, for any reader."""

from ..lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
