"""Search documents and answer questions with sources. This module exports the most common names.

All other names are in the packages ``nodegraph``, ``retrievers`` and ``adapters``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import adapters, nodegraph, retrievers
    from .nodegraph import Document as Document
    from .nodegraph import NodeGraph as NodeGraph
    from .retrievers import FusionRetriever as FusionRetriever
    from .retrievers import QueryEngine as QueryEngine
    from .retrievers import Retriever as Retriever
    from .retrievers import as_retriever as as_retriever

    __version__: str

_PACKAGES = ("adapters", "nodegraph", "retrievers")
_NAMES = {
    "Document": "nodegraph",
    "NodeGraph": "nodegraph",
    "FusionRetriever": "retrievers",
    "QueryEngine": "retrievers",
    "Retriever": "retrievers",
    "as_retriever": "retrievers",
}

__all__ = [  # Document is not included, because LangChain and LlamaIndex use the same name
    "FusionRetriever",
    "NodeGraph",
    "QueryEngine",
    "Retriever",
    "adapters",
    "as_retriever",
    "nodegraph",
    "retrievers",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that ``import nodekin`` stays fast."""
    if name == "__version__":
        from importlib.metadata import version

        return version("nodekin")
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name in _NAMES:
        value = getattr(import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(
        f"nodekin has no {name!r}; see nodekin.nodegraph, nodekin.retrievers and nodekin.adapters"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_NAMES, "__version__"})
