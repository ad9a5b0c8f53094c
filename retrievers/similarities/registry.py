"""The similarities that are known by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, overload

from ...nodegraph import NodeGraph, nearest_names
from ..indexes import Exact
from ..protocols import Index, Similarity
from .bm25 import Bm25
from .cosine import Cosine
from .custom import CustomSimilarity

SIMILARITIES: dict[str, Callable[..., Similarity]] = {
    "bm25": Bm25,
    # One analysis serves all languages; the second name is for those who look for it.
    "bm25_chinese": partial(Bm25, name="bm25_chinese"),
    "cosine": Cosine,
    "exact": Exact,
}

_OURS = frozenset(SIMILARITIES)

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_NAMES: dict[Callable[..., Any], str] = {}  # of functions that were registered


@overload
def register_similarity(function: FunctionT) -> FunctionT: ...


@overload
def register_similarity(
    *,
    mode: Literal["text", "embedding"] = "text",
    batch: bool = False,
    higher_is_better: bool = True,
    name: str | None = None,
) -> Callable[[FunctionT], FunctionT]: ...


def register_similarity(
    function: Any = None,
    *,
    mode: Literal["text", "embedding"] = "text",
    batch: bool = False,
    higher_is_better: bool = True,
    name: str | None = None,
) -> Any:
    """Register a function as a similarity, to be named in retrievers, or given itself.

    It works wherever the built-in ones do: targets, filters, fusion, cut-offs. What else its
    parameters are called are settings: ``get_similarity("my_similarity", power=2)``.

    Args:
        function: See ``CustomSimilarity``.
        mode: Whether it gets queries as texts or as vectors.
        batch: Whether it takes all nodes at once.
        higher_is_better: Whether more is better; else scores in results are negated.
        name: The function's own by default.

    Raises:
        ValueError: If the name is one of ours.
        TypeError: If the function has no parameters for what it gets.

    Example:
        >>> @register_similarity
        ... def same_length(query, node):
        ...     return -abs(len(query) - len(node.text))
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["tea", "coffee", "milk"])
        >>> [r.node.text for r in Retriever(graph, "ROOT", "same_length", top_k=2)("four")]
        ['milk', 'tea']
    """
    if function is None:
        return partial(
            register_similarity,
            mode=mode,
            batch=batch,
            higher_is_better=higher_is_better,
            name=name,
        )
    known = name or function.__name__
    if known in _OURS:
        raise ValueError(f"the similarity {known!r} is there already; give yours another name")
    CustomSimilarity(function, known, mode, batch, higher_is_better)  # checks

    def make(**settings: Any) -> CustomSimilarity:
        return CustomSimilarity(function, known, mode, batch, higher_is_better, settings)

    SIMILARITIES[known] = make
    _NAMES[function] = known
    return function


def get_similarity(similarity: str | Similarity | None, /, **settings: object) -> Similarity:
    """Return the similarity of a name, with settings; an object as it is; BM25 for None.

    Example:
        >>> get_similarity("bm25", k1=1.2)
        Bm25(k1=1.2)

    Raises:
        ValueError: If there is none of that name.
        TypeError: If it has no such setting, or an object was given settings beside it.
    """
    if similarity is None:
        similarity = "bm25"
    if inspect.isfunction(similarity) and similarity in _NAMES:
        similarity = _NAMES[similarity]
    if not isinstance(similarity, str):
        usable = all(hasattr(similarity, name) for name in ("open", "prepare", "mode", "name"))
        if not usable or isinstance(similarity, type):
            raise TypeError(
                f"similarity is one of {nearest_names('', SIMILARITIES)}, a function that was "
                "registered with register_similarity, or an object with open(), prepare(), mode "
                f"and name, not {similarity!r:.80}"
            )
        if settings:
            raise TypeError(
                f"settings {sorted(settings)} go with a similarity's name; give them to "
                f"{type(similarity).__name__}(...) itself"
            )
        return similarity
    make = SIMILARITIES.get(similarity)
    if make is None:
        raise ValueError(
            f"no similarity {similarity!r}; there is {nearest_names(similarity, SIMILARITIES)}"
        )
    known = [name for name in inspect.signature(make).parameters if name != "name"]
    for name in settings if similarity in _OURS else ():  # others check for themselves
        if name not in known:
            raise TypeError(
                f"{similarity!r} has no setting {name!r}; it has {nearest_names(name, known)}"
            )
    return make(**settings)


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
            known = nearest_names(index, [DEFAULT, "map", *INDEXES])
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
