"""Rerank or filter results, by a reranker that is given by name, as a function or an object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from ...nodegraph.errors import explain_names, nearest_names
from ...nodegraph.models.embedder_adapters import is_async
from ..plans.effects import Compute
from ..plans.plan import Plan, arun, run
from ..protocols import RerankerProtocol, RerankError
from ..ranking import check_cuts, cut_scores
from ..results import OutputFormat, Results, ScoredNode, formatted
from ..tracing import start_span
from ..validation import check_output, check_settings, check_top_k, refuse_settings
from .cross_encoder_reranker import CrossEncoderReranker
from .function_reranker import FunctionReranker
from .keyword_filter import KeywordFilter
from .near_duplicate_filter import NearDuplicateFilter
from .token_limit import TokenLimit


class Reranker:
    """Rerank or filter results: ``reranker(results, query)``.

    Choose ``RerankRetriever`` for a retriever that reranks all its results.

    Args:
        reranker: A name (``"ModuleReranker"`` for ``CrossEncoderReranker``, ``"KeywordFilter"``,
            ``"NearDuplicateFilter"``, ``"TokenLimit"``, or that of a function below
            ``@register_reranker``), such a function, or an object with ``rerank``.
        top_k: How many results at most; None for all.
        cut_off: Drops results with lower scores.
        relative_cut: Drops results that score less than this share of the top score; see
            ``cut_scores``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        name: Its name in traces, logs and errors; None for the reranker's own name.
        **settings: Settings of a reranker that is given by name or as a function: ``model=...``,
            ``required=[...]``.

    Raises:
        TypeError: If it is no reranker, has no such setting or lacks one it needs.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea, tea.", "Green tea is not fermented."])
        >>> results = Retriever(graph, "ROOT")("tea")
        >>> model = lambda query, texts: [float("green" in text.lower()) for text in texts]
        >>> reranker = Reranker("ModuleReranker", model=model, top_k=1, output_format="content")
        >>> reranker(results, "Which tea is green?")
        ['Green tea is not fermented.']
    """

    @explain_names
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
        **settings: object,
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

    @property
    def is_filter(self) -> bool:
        """Whether it costs nothing, and no later result decides whether one stays."""
        return getattr(self.reranker, "is_filter", False) is True

    def __repr__(self) -> str:
        return f"Reranker({self.name!r}, top_k={self.top_k})"

    def __call__(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: object,
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
        **settings: object,
    ) -> Results:
        """Return the selected results, best first; equal scores keep their order.

        Args:
            results: The results to rerank; no model is called without any.
            query: What they were retrieved for.
            top_k: In place of the reranker's own.
            **settings: For this call, in place of the reranker's own: ``required=[...]``.

        Raises:
            TypeError: If the query is no text, a result no ``ScoredNode``, or the reranker has no
                such setting for a call.
            RerankError: If the model or function fails, or its scores are no finite numbers.
        """
        return run(self.plan(results, query, top_k=top_k, **settings))

    async def arerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: object,
    ) -> Results:
        """Return the same without blocking the event loop.

        By the reranker's own ``arerank`` if it has one, else in a thread.
        """
        return await arun(self.plan(results, query, top_k=top_k, **settings))

    def plan(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        top_k: int | None = None,
        **settings: object,
    ) -> Plan[Results]:
        """Return the same as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        if not isinstance(results, Sequence) or not all(
            isinstance(result, ScoredNode) for result in results
        ):
            wrong = next(iter(results), "") if isinstance(results, list | tuple) else results
            raise TypeError(
                f"a reranker takes the results of a retriever, a list of ScoredNode, not "
                f"{wrong!r:.80}; of nodes write [ScoredNode(node, 0.0) for node in nodes]"
            )
        limit = self.top_k if top_k is None else check_top_k(top_k)
        with start_span("rerank", reranker=self.name, query=query, candidates=len(results)) as span:
            reranked: Sequence[ScoredNode] = []
            if results:
                arerank = getattr(self.reranker, "arerank", None)
                reranked = yield from Compute(
                    partial(self.reranker.rerank, results, query, **settings),
                    None if arerank is None else partial(arerank, results, query, **settings),
                )
            if not isinstance(reranked, Sequence) or not all(
                isinstance(result, ScoredNode) for result in reranked
            ):
                raise RerankError(
                    f"{self.name!r} returned {reranked!r:.80}; rerank() returns a list of "
                    "ScoredNode"
                )
            selected = cut_scores(reranked, self.cut_off, self.relative_cut)[:limit]
            span.attributes["results"] = len(selected)
        return selected


Function = TypeVar("Function", bound=Callable[..., Any])

RerankerFactory = Callable[..., RerankerProtocol]

RERANKERS: dict[str, RerankerFactory] = {
    "ModuleReranker": CrossEncoderReranker,
    "KeywordFilter": KeywordFilter,
    "NearDuplicateFilter": NearDuplicateFilter,
    "TokenLimit": TokenLimit,
}

_BUILT_IN = frozenset(RERANKERS)

_FACTORY = "__nodekin_reranker__"
"""The attribute of a registered function that has its factory."""


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
    or with ``batch=True`` the list of all nodes; it gets the query if it has an argument
    ``query``, a second argument, or ``**kwargs``; the reranker's settings are its further
    arguments.

    For one node it returns a score, or as a filter the node (or True) to select it with its old
    score; None drops it, also among scores, and so does False. For all nodes it returns their
    scores in the same order (None drops), or (node, score) pairs, or nodes in their new order,
    which then score 1, 1/2, 1/3 and so on; other nodes are dropped.

    Args:
        function: The function, if it is decorated without arguments.
        batch: Whether it gets all nodes in one call.
        name: The reranker's name; None for the function's name.

    Raises:
        TypeError: If it is no function, or an async one.
        ValueError: If the name is one of nodekin's own.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import Reranker
        >>> from nodekin.retrievers import ScoredNode
        >>> @register_reranker(batch=False)
        ... def shortest(node, query, max_length=20):
        ...     return -len(node.text) if len(node.text) <= max_length else None
        >>> results = [ScoredNode(Node(text), 1.0) for text in ("black tea", "tea", "t" * 99)]
        >>> [result.node.text for result in Reranker("shortest")(results, "tea")]
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
        registered_name = name or str(getattr(decorated, "__name__", type(decorated).__name__))
        if registered_name in _BUILT_IN:
            raise ValueError(
                f"{registered_name!r} is nodekin's own; give another name: name='my_...'"
            )

        def factory(**settings: object) -> FunctionReranker:
            return FunctionReranker(decorated, batch, registered_name, settings)

        RERANKERS[registered_name] = factory
        setattr(decorated, _FACTORY, factory)
        return decorated

    return register if function is None else register(function)


def get_reranker(reranker: Any, settings: Mapping[str, object]) -> RerankerProtocol:
    """Return the reranker of a name or function with these settings, or the object as it is.

    Raises:
        ValueError: If there is none of that name.
        TypeError: If it has no such setting or lacks a required one, or there are settings
            for an object.
    """
    if isinstance(reranker, str):
        if reranker not in RERANKERS:
            raise ValueError(
                f"no reranker {reranker!r}; there is {nearest_names(reranker, RERANKERS)}; "
                "register your own with @register_reranker"
            )
        factory = RERANKERS[reranker]
        check_settings(settings, factory, repr(reranker))
        for name, p in inspect.signature(factory).parameters.items():
            if name not in settings and p.default is p.empty and p.kind is not p.VAR_KEYWORD:
                raise TypeError(
                    f"{reranker!r} needs {name}: write Reranker({reranker!r}, {name}=...)"
                )
        return factory(**settings)
    if hasattr(reranker, _FACTORY):
        registered: RerankerFactory = getattr(reranker, _FACTORY)
        return registered(**settings)
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
    refuse_settings(settings, reranker, "reranker")
    checked: RerankerProtocol = reranker
    return checked
