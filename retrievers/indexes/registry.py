"""The indexes that are known by name, besides those that similarities open themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from ...nodegraph import NodeGraph
from ...nodegraph.errors import nearest
from ..protocols import Index, Similarity
from .map_index import Exact

MakeIndex = Callable[[NodeGraph, str, "str | None", Similarity], Index[Any]]
"""Makes an index of a graph's group, for a key of its embeddings or None, and a similarity."""

MakeT = TypeVar("MakeT", bound=MakeIndex)

DEFAULT = "default"
INDEXES: dict[str, MakeIndex] = {}


def register_index(name: str) -> Callable[[MakeT], MakeT]:
    """Register what makes an index, a class or a function, to be named in ``Retriever(index=)``.

    It is called once for each graph, group, embedding and similarity. The index searches for
    the query as it is, a text or a vector; ``similarity.prepare(query, [index])`` makes more of it
    where the index is one that the similarity knows. An index with a ``close`` method is told
    when the graph is closed; ``graph.index_file(name)`` says where it may keep itself.

    Raises:
        ValueError: If the name is one of ours.
    """
    if name in (DEFAULT, "map"):
        raise ValueError(f"the index {name!r} is there already; give yours another name")

    def register(make: MakeT) -> MakeT:
        INDEXES[name] = make
        return make

    return register


def with_index(similarity: Similarity, index: str | MakeIndex) -> Similarity:
    """Return a similarity that opens this index instead of its own.

    Args:
        similarity: The similarity; ``"map"`` looks up exact texts, whatever it is.
        index: A name, or what makes one.

    Raises:
        ValueError: If there is no index of that name.
        TypeError: If what was given makes none.
    """
    if index == DEFAULT:
        return similarity
    if index == "map":
        return similarity if isinstance(similarity, Exact) else Exact()
    if isinstance(index, str):
        if index not in INDEXES:
            known = nearest(index, [DEFAULT, "map", *INDEXES])
            raise ValueError(f"no index {index!r}; there is {known}")
        index = INDEXES[index]
    if not callable(index):
        raise TypeError(
            f"index is a name or a callable (graph, group, key, similarity), not {index!r:.80}"
        )
    return _Indexed(similarity, index)


class _Indexed:
    """A similarity with another index."""

    def __init__(self, similarity: Similarity, make: MakeIndex) -> None:
        self._similarity = similarity
        self._make = make
        self.name = similarity.name
        self.mode = similarity.mode

    def prepare(self, query: Any, indexes: Sequence[Any]) -> Any:
        """Return the query as it is."""
        return query

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Any]:
        """Return the index, shared by all who want the same."""
        similarity, make = self._similarity, self._make
        which = similarity if isinstance(similarity, Hashable) else id(similarity)
        return graph.shared(
            ("index", make, group, key, which), lambda: make(graph, group, key, similarity)
        )
