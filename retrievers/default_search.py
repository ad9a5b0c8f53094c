"""The default retriever of a graph that is passed instead of a retriever."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..nodegraph.graph import NodeGraph
    from .protocols import RetrieverProtocol

make_default: Callable[[NodeGraph], RetrieverProtocol]
"""A factory set by the package, to avoid an import cycle with the default retriever."""
