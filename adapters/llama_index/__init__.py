"""The LlamaIndex integration: indexes, retrievers, query engines and converters for node graphs."""

from ...nodegraph.lazy_names import attach_stub
from ..extras import extra

with extra("llama-index", "llama_index"):
    import llama_index.core  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
