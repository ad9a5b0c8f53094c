"""Put what was found in a better order."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from ...nodegraph import nearest_names
from ...nodegraph.models import is_async
from ..protocols import RerankerProtocol, RerankError
from ..ranking import above, check_cuts
from ..results import OutputFormat, ScoredNode, formatted
from ..tracing import start_span
from ..validation import check_output, check_top_k
from .cross_encoder_reranker import CrossEncoderReranker
from .function_reranker import FunctionReranker
from .keyword_filter import KeywordFilter


class Reranker:
    """Rerank or filter results: ``reranker(results, query)``.

    Choose ``RerankRetriever`` to have a retriever that does so with everything it finds.

    Args:
        reranker: A name (``"ModuleReranker"`` scores by a cross-encoder, ``"KeywordFilter"``
            looks for keywords, or what ``@register_reranker`` made known), a function that was
            registered, or an object with ``rerank``.
        top_k: How many results at most; None for all that stay.
        cut_off: Keeps scores that are this or more.
        relative_cut: Keeps scores that are at least this share of the top score; see ``above``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        name: What stages, logs and errors call it; the reranker's own name if left out.
        **settings: Settings of a reranker that was named: ``model=...``, ``required=[...]``.

    Raises:
        TypeError: If it is no reranker, has no such setting or lacks one it needs.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea, tea.", "Green tea is not fermented."])
        >>> found = Retriever(graph, "ROOT")("tea")
        >>> model = lambda query, texts: [float("green" in text.lower()) for text in texts]
        >>> reranker = Reranker("ModuleReranker", model=model, top_k=1, output_format="content")
        >>> reranker(found, "Which tea is green?")
        ['Green tea is not fermented.']
    """

    def __init__(
        self,
        reranker: str | RerankerProtocol | Callable[..., Any],
        *,
        top_k: int | None = None,
        cut_off: float | None = None,
        relative_cut: float | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        name: str | None = None,
        **settings: Any,
    ) -> None:
        self.reranker = get_reranker(reranker, settings)
        self.top_k = None if top_k is None else check_top_k(top_k)
        check_cuts(cut_off, relative_cut)
        self.cut_off = cut_off
        self.relative_cut = relative_cut
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join
        self.name = name or self.reranker.name

    def __repr__(self) -> str:
        return f"Reranker({self.name!r}, top_k={self.top_k})"

    def __call__(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> Any:
        """Rerank, and return the results in the ``output_format``."""
        reranked = self.rerank(results, query, top_k=top_k, **settings)
        return formatted(reranked, self.output_format, self.join)

    def rerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> list[ScoredNode]:
        """Return the results that stay, best first; equal scores keep their order.

        Args:
            results: What was found; nothing gives nothing, and asks no model.
            query: What it was found for.
            top_k: In place of the reranker's own.
            **settings: For this call, in place of the reranker's own: ``required=[...]``.

        Raises:
            TypeError: If the query is no text, or the reranker has no such setting for a call.
            RerankError: If the model or function fails, or its scores are no finite numbers.
        """
        limit = self._check(query, top_k)
        with start_span("rerank", reranker=self.name, query=query, candidates=len(results)) as done:
            made = self.reranker.rerank(results, query, **settings) if results else []
            kept = self._kept(made, limit)
            done.attributes["results"] = len(kept)
        return kept

    async def arerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: Any,
    ) -> list[ScoredNode]:
        """Do the same without blocking the event loop.

        By the reranker's own async form where it has one, else in a thread.
        """
        limit = self._check(query, top_k)
        with start_span("rerank", reranker=self.name, query=query, candidates=len(results)) as done:
            own = getattr(self.reranker, "arerank", None)
            if not results:
                made: Sequence[ScoredNode] = []
            elif own is not None:
                made = await own(results, query, **settings)
            else:
                made = await asyncio.to_thread(self.reranker.rerank, results, query, **settings)
            kept = self._kept(made, limit)
            done.attributes["results"] = len(kept)
        return kept

    def _check(self, query: str, top_k: int | None) -> int | None:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        return self.top_k if top_k is None else check_top_k(top_k)

    def _kept(self, made: Any, limit: int | None) -> list[ScoredNode]:
        if not isinstance(made, Sequence) or not all(isinstance(r, ScoredNode) for r in made):
            raise RerankError(
                f"{self.name!r} returned {made!r:.80}; rerank() returns a list of ScoredNode"
            )
        return above(made, self.cut_off, self.relative_cut)[:limit]


Function = TypeVar("Function", bound=Callable[..., Any])

RERANKERS: dict[str, Callable[..., RerankerProtocol]] = {
    "ModuleReranker": CrossEncoderReranker,
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
        >>> from nodekin.retrievers import Reranker
        >>> from nodekin.retrievers import ScoredNode
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


def get_reranker(reranker: Any, settings: Mapping[str, Any]) -> RerankerProtocol:
    """Return the reranker of a name with settings, or the object that was given.

    Raises:
        ValueError: If there is none of that name.
        TypeError: If it has no such setting or lacks one it needs, or an object was given
            settings beside it.
    """
    if isinstance(reranker, str):
        if reranker not in RERANKERS:
            raise ValueError(
                f"no reranker {reranker!r}; there is {nearest_names(reranker, RERANKERS)}; "
                "register your own with @register_reranker"
            )
        return _made(reranker, RERANKERS[reranker], settings)
    make = getattr(reranker, _REGISTERED, None)
    if make is not None:
        made: RerankerProtocol = make(**settings)
        return made
    if not callable(getattr(reranker, "rerank", None)) or inspect.isclass(reranker):
        raise TypeError(
            f"a reranker is one of {nearest_names('', RERANKERS)}, a function below "
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
    given: RerankerProtocol = reranker
    return given


def _made(
    name: str, make: Callable[..., RerankerProtocol], settings: Mapping[str, Any]
) -> RerankerProtocol:
    parameters = inspect.signature(make).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for setting in settings:
        if setting not in parameters and not takes_all:
            raise TypeError(
                f"{name!r} has no setting {setting!r}; it has {nearest_names(setting, parameters)}"
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
