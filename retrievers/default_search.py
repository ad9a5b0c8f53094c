"""Which retriever searches a graph that stands where a retriever is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..nodegraph.graph import NodeGraph
    from .protocols import RetrieverProtocol

make_default: Callable[[NodeGraph], RetrieverProtocol]
"""Set by the package: the default retriever is made of retrievers that take a graph themselves."""
