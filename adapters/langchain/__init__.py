"""nodekin in LangChain: retrievers, stores, query engines, and conversion in both directions."""

from importlib.util import find_spec

from ...nodegraph.lazy_names import attach_stub
from ..extras import extra

with extra("langchain", "langchain_core"):
    import langchain_core  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)

if find_spec("langchain_text_splitters") is None:  # which its base is in
    __all__.remove("NodeTextSplitter")
