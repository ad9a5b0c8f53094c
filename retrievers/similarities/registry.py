"""The similarities that are known by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar, overload

from ...nodegraph.errors import nearest
from ..indexes.map_index import Exact
from ..protocols import Similarity
from .bm25 import Bm25
from .cosine import Cosine
from .custom_similarity import CustomSimilarity

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
    descend: bool = True,
    name: str | None = None,
) -> Callable[[FunctionT], FunctionT]: ...


def register_similarity(
    function: Any = None,
    *,
    mode: Literal["text", "embedding"] = "text",
    batch: bool = False,
    descend: bool = True,
    name: str | None = None,
) -> Any:
    """Register a function as a similarity, to be named in retrievers, or given itself.

    It works wherever the built-in ones do: targets, filters, fusion, cut-offs. What else its
    parameters are called are settings: ``Retriever(graph, "line", "my_similarity", power=2)``.

    Args:
        function: See ``CustomSimilarity``.
        mode: Whether it gets queries as texts or as vectors.
        batch: Whether it takes all nodes at once.
        descend: Whether more is better; else scores in results are negated.
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
        return partial(register_similarity, mode=mode, batch=batch, descend=descend, name=name)
    known = name or function.__name__
    if known in _OURS:
        raise ValueError(f"the similarity {known!r} is there already; give yours another name")
    CustomSimilarity(function, known, mode, batch, descend)  # checks

    def make(**settings: Any) -> CustomSimilarity:
        return CustomSimilarity(function, known, mode, batch, descend, settings)

    SIMILARITIES[known] = make
    _NAMES[function] = known
    return function


def get_similarity(similarity: str | Similarity | None, settings: Mapping[str, Any]) -> Similarity:
    """Return the similarity of a name with settings, or the object that was given; bm25 for None.

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
                f"similarity is one of {nearest('', SIMILARITIES)}, a function that was registered "
                f"with register_similarity, or an object with open(), prepare(), mode and name, "
                f"not {similarity!r:.80}"
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
            f"no similarity {similarity!r}; there is {nearest(similarity, SIMILARITIES)}"
        )
    known = [name for name in inspect.signature(make).parameters if name != "name"]
    for name in settings if similarity in _OURS else ():  # others check for themselves
        if name not in known:
            raise TypeError(
                f"{similarity!r} has no setting {name!r}; it has {nearest(name, known)}"
            )
    return make(**settings)
