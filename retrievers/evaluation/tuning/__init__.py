"""Choose a set-up by questions: search a space of set-ups, report on questions held back."""

from ....nodegraph.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
