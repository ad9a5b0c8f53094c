"""The rerankers that are known by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, overload

from ...nodegraph.embeddings.embedding_model import is_async
from ...nodegraph.errors import nearest
from .function_reranker import FunctionReranker
from .keyword_filter import KeywordFilter
from .module_reranker import ModuleReranker
from .reranks import Reranks

Function = TypeVar("Function", bound=Callable[..., Any])

RERANKERS: dict[str, Callable[..., Reranks]] = {
    "ModuleReranker": ModuleReranker,
    "KeywordFilter": KeywordFilter,
}
_BUILT_IN = frozenset(RERANKERS)
_REGISTERED = "__nodekin_reranker__"


@overload
def register_reranker(function: Function, /) -> Function: ...


@overload
def register_reranker(
    *, batch: bool = False, name: str | None = None
) -> Callable[[Function], Function]: ...


def register_reranker(
    function: Function | None = None, /, *, batch: bool = False, name: str | None = None
) -> Function | Callable[[Function], Function]:
    """Register a function as a reranker, replacing an earlier one of the same name.

    ``Reranker("its_name")`` and ``Reranker(function)`` both use it. Its first argument is a node,
    or with ``batch=True`` the list of all; it gets the query where it has an argument ``query``,
    a second argument, or ``**kwargs``; the reranker's settings are its further arguments.

    For one node it returns a score, or as a filter the node (or True) to keep it with the score
    it had; None drops it, also among scores, and so does False. For all nodes it returns their
    scores in the same order (None drops), or (node, score) pairs, or nodes in their new order,
    which then score 1, 1/2, 1/3 and so on; nodes that it leaves out are dropped.

    Args:
        function: The function, where it is decorated without arguments.
        batch: Whether it is given all nodes at once.
        name: What it is known by; the function's name if left out.

    Raises:
        TypeError: If it is no function, or an async one.
        ValueError: If the name is one of nodekin's own.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers.rerankers.reranker import Reranker
        >>> from nodekin.retrievers.scored_node import ScoredNode
        >>> @register_reranker(batch=False)
        ... def shortest(node, query, most=20):
        ...     return -len(node.text) if len(node.text) <= most else None
        >>> found = [ScoredNode(Node(text), 1.0) for text in ("black tea", "tea", "t" * 99)]
        >>> [result.node.text for result in Reranker("shortest")(found, "tea")]
        ['tea', 'black tea']
    """

    def register(decorated: Function) -> Function:
        if not callable(decorated) or inspect.isclass(decorated):
            raise TypeError(
                f"a reranker is a function of a node and a query, not {decorated!r:.80}; write "
                "@register_reranker or @register_reranker(batch=True) above one"
            )
        if is_async(decorated):
            raise TypeError(
                f"{decorated!r:.80} is async; write an object with name, "
                "rerank(results, query) and async arerank(results, query)"
            )
        known_as = name or str(getattr(decorated, "__name__", type(decorated).__name__))
        if known_as in _BUILT_IN:
            raise ValueError(f"{known_as!r} is nodekin's own; give another name: name='my_...'")
        make = partial(_of_function, decorated, batch, known_as)
        RERANKERS[known_as] = make
        setattr(decorated, _REGISTERED, make)
        return decorated

    return register if function is None else register(function)


def get_reranker(reranker: Any, settings: Mapping[str, Any]) -> Reranks:
    """Return the reranker of a name with settings, or the object that was given.

    Raises:
        ValueError: If there is none of that name.
        TypeError: If it has no such setting or lacks one it needs, or an object was given
            settings beside it.
    """
    if isinstance(reranker, str):
        if reranker not in RERANKERS:
            raise ValueError(
                f"no reranker {reranker!r}; there is {nearest(reranker, RERANKERS)}: register "
                "your own with @register_reranker"
            )
        return _made(reranker, RERANKERS[reranker], settings)
    make = getattr(reranker, _REGISTERED, None)
    if make is not None:
        made: Reranks = make(**settings)
        return made
    if not callable(getattr(reranker, "rerank", None)) or inspect.isclass(reranker):
        raise TypeError(
            f"a reranker is one of {nearest('', RERANKERS)}, a function below "
            f"@register_reranker, or an object with rerank(results, query), not {reranker!r:.80}; "
            'a model goes into Reranker("ModuleReranker", model=...)'
        )
    if not isinstance(getattr(reranker, "name", None), str):
        raise TypeError(
            f"{reranker!r:.80} has rerank() but no name for evidence; a reranker's rerank() takes "
            'results and a query: if it is a model, write Reranker("ModuleReranker", model=...)'
        )
    if settings:
        raise TypeError(
            f"settings {sorted(settings)} go with a reranker's name; give them to "
            f"{type(reranker).__name__}(...) itself"
        )
    given: Reranks = reranker
    return given


def _made(name: str, make: Callable[..., Reranks], settings: Mapping[str, Any]) -> Reranks:
    parameters = inspect.signature(make).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for setting in settings:
        if setting not in parameters and not takes_all:
            raise TypeError(
                f"{name!r} has no setting {setting!r}; it has {nearest(setting, parameters)}"
            )
    for needed, parameter in parameters.items():
        required = (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        )
        if required and needed not in settings:
            raise TypeError(f"{name!r} needs {needed}: write Reranker({name!r}, {needed}=...)")
    return make(**settings)


def _of_function(
    function: Callable[..., Any], batch: bool, name: str, /, **settings: Any
) -> FunctionReranker:
    return FunctionReranker(function, batch, name, settings)
