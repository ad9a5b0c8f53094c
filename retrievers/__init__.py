"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from typing import TYPE_CHECKING

from ..nodegraph.lazy_names import attach_stub
from . import protocols

if TYPE_CHECKING:
    from ..nodegraph.graph import NodeGraph

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


def _search_by_default(graph: "NodeGraph") -> protocols.RetrieverProtocol:
    from .composite.default_retriever import DefaultRetriever

    return DefaultRetriever(graph)


protocols.search_by_default = _search_by_default
