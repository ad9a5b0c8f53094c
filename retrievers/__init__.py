"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from typing import TYPE_CHECKING

from ..nodegraph.lazy_names import attach_stub
from . import default_search

if TYPE_CHECKING:
    from ..nodegraph.graph import NodeGraph
    from .protocols import RetrieverProtocol

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _make_default(graph: "NodeGraph") -> "RetrieverProtocol":
    from .composite.default_retriever import DefaultRetriever

    return DefaultRetriever(graph)


default_search.make_default = _make_default
