"""How many hits retrievers look at before lifting, for what is retrieved in a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_child_k: ContextVar[int | None] = ContextVar("child_k", default=None)


@contextmanager
def looking_at(child_k: int | None) -> Iterator[None]:
    """Let every retriever in the block look at so many hits, in place of its own ``child_k``.

    It reaches those that are held by others (a fusion, a reranking, a strategy), also in the
    threads and tasks that these start, without their knowing. See ``Retriever`` for what it does.

    Args:
        child_k: How many hits; None changes nothing.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea. Green tea. Black tea.", "Rice. Some like tea with rice."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> retriever = Retriever(graph, "sentence", target="ROOT")
        >>> with looking_at(3):
        ...     [len(result.evidence) for result in retriever("tea")]
        [3]
        >>> len(retriever("tea"))
        2
    """
    token = _child_k.set(_child_k.get() if child_k is None else check_child_k(child_k))
    try:
        yield
    finally:
        _child_k.reset(token)


def hits_to_look_at(own: int | None) -> int | None:
    """Return how many hits a retriever looks at: what the block says, else its own number."""
    said = _child_k.get()
    return own if said is None else said


def check_child_k(child_k: int) -> int:
    """Return the number.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.
    """
    if isinstance(child_k, bool) or not isinstance(child_k, int):
        raise TypeError(f"child_k is a whole number, not {child_k!r:.80}")
    if child_k < 1:
        raise ValueError(f"child_k must be 1 or more, not {child_k!r}")
    return child_k
