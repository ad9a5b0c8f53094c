"""Rerankers and filters that are given by name, as a function or as an object."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

from ...nodegraph.errors import explain_names, nearest_names
from ...nodegraph.models.model_objects import is_async
from ...nodegraph.node import Node
from ..base_retriever import check_texts
from ..plans.plan import Do, arun, run
from ..protocols import RerankerProtocol, RerankError, by_score
from ..ranking import check_cuts, cut_scores, log_threshold
from ..results import Evidence, OutputFormat, Results, ScoredNode, formatted
from ..tracing import start_span
from ..validation import (
    check_output,
    check_settings,
    check_top_k,
    optional_whole,
    refuse_settings,
    takes_any_keyword,
)
from .cross_encoder_reranker import CrossEncoderReranker, as_list
from .keyword_filter import KeywordFilter, NearDuplicateFilter


@dataclass(frozen=True)
class FunctionReranker:
    """A reranker that calls a function. See ``register_reranker`` for the supported functions.

    Args:
        function: A function that receives one or all nodes, the query and the settings.
        batch: Whether the function receives all nodes in a single call.
        name: The name of the reranker in the evidence.
        settings: Further keyword arguments for the function.

    Raises:
        TypeError: If the function does not accept one of the settings.
    """

    function: Callable[..., Any]
    batch: bool
    name: str
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = next(iter(inspect.signature(self.function).parameters), "")
        check_settings(self.settings, self.function, repr(self.name), first, "query")

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the results that the function selects, best first.

        Raises:
            RerankError: If the function raises an error or returns an invalid value.
        """
        if not results:
            return []
        rerank = self._rerank_together if self.batch else self._rerank_separately
        try:
            return rerank(results, query)
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(f"{self.name!r} failed: {type(error).__name__}: {error}") from error

    def _rerank_separately(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Call the function once for each node."""
        outputs = [self._call(result.node, query) for result in results]
        pairs = zip(results, outputs, strict=True)
        if any(_is_score(output) for output in outputs):
            return self._scored(pairs, query)
        kept: Results = []
        for result, output in pairs:
            if isinstance(output, Node):
                kept.append(replace(result, node=output))
            elif output is True:
                kept.append(result)
            elif output not in (None, False):
                raise self._error(output, "a score, the node, True or False, or None")
        return kept

    def _rerank_together(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Call the function once for all nodes."""
        output = self._call([result.node for result in results], query)
        values = as_list(output)
        if values is None or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise self._error(output, "a list of scores, of nodes, or of (node, score)")
        items = [*values]
        if not items:
            return []
        if all(isinstance(item, Node) for item in items):
            items = [(node, 1 / rank) for rank, node in enumerate(items, 1)]
        if all(isinstance(item, tuple) and len(item) == 2 for item in items):
            by_node = {result.node: result for result in results}
            pairs = []
            for node, score in items:
                if not isinstance(node, Node) or node not in by_node:
                    raise self._error(node, "one of the nodes that it was given")
                pairs.append((replace(by_node[node], node=node), score))
            return self._scored(pairs, query)
        if len(items) != len(results):
            raise self._error(output, f"a score for each of {len(results)} nodes")
        return self._scored(zip(results, items, strict=True), query)

    def _call(self, nodes: Node | list[Node], query: str) -> Any:
        signature = inspect.signature(self.function)
        settings = self.settings
        if "query" in signature.parameters or takes_any_keyword(self.function):
            return self.function(nodes, query=query, **settings)
        try:
            signature.bind(nodes, **settings)
        except TypeError:  # the query is a required positional argument
            return self.function(nodes, query, **settings)
        return self.function(nodes, **settings)

    def _scored(self, pairs: Iterable[tuple[ScoredNode, Any]], query: str) -> Results:
        """Set the scores of results, and sort them. Results whose score is None are dropped."""
        scored = []
        for result, score in pairs:
            if score is None:
                continue
            if not _is_score(score) or not math.isfinite(score):
                raise self._error(score, "a finite number as a score")
            evidence = Evidence(result.node, float(score), self.name, query)
            scored.append(ScoredNode(result.node, float(score), (evidence, *result.evidence)))
        return by_score(scored)

    def _error(self, output: object, expected: str) -> RerankError:
        nodes = "all nodes in one call" if self.batch else "one node"
        return RerankError(
            f"{self.name!r} returned {output!r:.80}; for {nodes} it returns {expected}"
        )


def _is_score(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or hasattr(value, "__float__")


class Reranker:
    """A reranker or filter, which is called as ``reranker(results, query)``.

    To rerank all results of a retriever, use ``RerankRetriever``.

    Args:
        reranker: A name, a function decorated with ``@register_reranker``, or an object with a
            method ``rerank``. The built-in names are ``"ModuleReranker"`` (for
            ``CrossEncoderReranker``), ``"KeywordFilter"`` and ``"NearDuplicateFilter"``.
        top_k: The maximum number of results. If None, all results are returned.
        min_score: The minimum score. Results with a lower score are dropped. If no result is left,
            the best score is logged once.
        relative_cut: The minimum score as a share of the highest score. Results with a lower score
            are dropped.
        output_format: The format of the results of a call: None (scored nodes), ``"content"`` or
            ``"dict"``.
        join: The separator that joins the contents into a single text. True stands for a line
            break.
        **settings: Keyword arguments for a reranker that is given by name or as a function, such as
            ``model=...`` or ``required=[...]``.

    Raises:
        TypeError: If the reranker is invalid, or a setting is unknown or missing.
        ValueError: If a name is unknown or a number is out of range.

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
        min_score: float | None = None,
        relative_cut: float | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: object,
    ) -> None:
        self.reranker = get_reranker(reranker, settings)
        self.top_k = optional_whole(top_k, "top_k")
        check_cuts(min_score, relative_cut)
        self.min_score = min_score
        self.relative_cut = relative_cut
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join
        self.name = self.reranker.name

    @property
    def is_filter(self) -> bool:
        """Whether the reranker calls no model, and no result affects the results before it."""
        return getattr(self.reranker, "is_filter", False) is True

    def __repr__(self) -> str:
        return f"Reranker({self.name!r}, top_k={self.top_k})"

    def __call__(
        self, results: Sequence[ScoredNode], query: str, *, top_k: int | None = None
    ) -> Any:
        """Rerank results, and return them in the format given by ``output_format``."""
        reranked = self.rerank(results, query, top_k=top_k)
        return formatted(reranked, self.output_format, self.join)

    def rerank(
        self, results: Sequence[ScoredNode], query: str, *, top_k: int | None = None
    ) -> Results:
        """Return the selected results, best first. Results with equal scores keep their order.

        Args:
            results: The results to rerank. If there are none, no model is called.
            query: The query for which the results were found.
            top_k: The maximum number of results. Overrides the ``top_k`` of the reranker.

        Raises:
            TypeError: If the query is not a string, or a result is not a ``ScoredNode``.
            ValueError: If ``top_k`` is below 1.
            RerankError: If the model or function fails or returns invalid scores.
        """
        return run(lambda: self.plan(results, query, top_k=top_k))

    async def arerank(
        self, results: Sequence[ScoredNode], query: str, *, top_k: int | None = None
    ) -> Results:
        """Asynchronous version of ``rerank``.

        If the reranker has a method ``arerank``, the method is awaited. Otherwise, ``rerank`` runs
        in a thread.
        """
        return await arun(lambda: self.plan(results, query, top_k=top_k))

    async def plan(
        self, results: Sequence[ScoredNode], query: str, *, top_k: int | None = None
    ) -> Results:
        """Rerank results in a coroutine that runs with or without an event loop."""
        check_texts([query])
        if not _are_results(results):
            raise TypeError(
                f"results must be a list of ScoredNode, got {results!r:.80}; for nodes, write "
                "[ScoredNode(node, 0.0) for node in nodes]"
            )
        limit = self.top_k if top_k is None else check_top_k(top_k)
        arerank = getattr(self.reranker, "arerank", None)
        with start_span("rerank", reranker=self.name, query=query, candidates=len(results)) as span:
            reranked: Sequence[ScoredNode] = results
            if results:
                reranked = await Do(
                    lambda: self.reranker.rerank(results, query),
                    arerank and (lambda: arerank(results, query)),
                )
            if not _are_results(reranked):
                raise RerankError(
                    f"{self.name!r} returned {reranked!r:.80}; rerank() returns a list of "
                    "ScoredNode"
                )
            selected = cut_scores(reranked, self.min_score, self.relative_cut)[:limit]
            span.attributes["results"] = len(selected)
        if not selected:
            log_threshold(self.name, self.min_score, reranked)
        return selected


def _are_results(results: object) -> bool:
    return isinstance(results, Sequence) and all(isinstance(r, ScoredNode) for r in results)


Function = TypeVar("Function", bound=Callable[..., Any])

RerankerFactory = Callable[..., RerankerProtocol]

RERANKERS: dict[str, RerankerFactory] = {
    "ModuleReranker": CrossEncoderReranker,
    "KeywordFilter": KeywordFilter,
    "NearDuplicateFilter": NearDuplicateFilter,
}

_FACTORY = "__nodekin_reranker__"
"""The attribute of a registered function that stores a function to create the reranker."""


@overload
def register_reranker(function: Function, /) -> Function: ...


@overload
def register_reranker(
    *, batch: bool = False, name: str | None = None
) -> Callable[[Function], Function]: ...


def register_reranker(
    function: Function | None = None, /, *, batch: bool = False, name: str | None = None
) -> Function | Callable[[Function], Function]:
    """Register a function as a reranker. An existing reranker with the same name is replaced.

    The function can then be used as ``Reranker("name")`` or ``Reranker(function)``. Its first
    argument is a node, or a list of all nodes if ``batch=True``. The query is passed as the keyword
    argument ``query``, in ``**kwargs``, or as the second positional argument if it is required. A
    function without any of these does not receive the query. The settings of the reranker are
    passed as further keyword arguments.

    A function that receives a single node returns a score, or a decision. The node itself or True
    keeps the result and its score, and None or False drops the result. If the function returns a
    score for any of the results, only None drops a result.

    A function that receives all nodes returns one of the following: scores in the order of the
    nodes (None drops a result), pairs ``(node, score)``, or nodes in their new order, which are
    assigned the scores 1, 1/2, 1/3 and so on. Nodes that are not returned are dropped.

    Args:
        function: The function, if the decorator is used without arguments.
        batch: Whether the function receives all nodes in a single call.
        name: The name of the reranker. Defaults to the name of the function.

    Raises:
        TypeError: If the decorated object is not a function, or is an async function.

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
                f"a reranker must be a function of a node and a query, got {decorated!r:.80}; "
                "write @register_reranker or @register_reranker(batch=True) above one"
            )
        if is_async(decorated):
            raise TypeError(
                f"{decorated!r:.80} is async; write an object with name, "
                "rerank(results, query) and async arerank(results, query)"
            )
        registered_name = name or str(getattr(decorated, "__name__", type(decorated).__name__))

        RERANKERS[registered_name] = lambda **settings: FunctionReranker(
            decorated, batch, registered_name, settings
        )
        setattr(decorated, _FACTORY, RERANKERS[registered_name])
        return decorated

    return register if function is None else register(function)


def get_reranker(reranker: Any, settings: Mapping[str, object]) -> RerankerProtocol:
    """Return the reranker that is given by a name, a function or an object.

    Raises:
        ValueError: If the name is unknown.
        TypeError: If the object is not a reranker, a setting is unknown or missing, or settings are
            given for an object.
    """
    if isinstance(reranker, str):
        if reranker not in RERANKERS:
            raise ValueError(
                f"unknown reranker {reranker!r}; known: {nearest_names(reranker, RERANKERS)}; "
                "register your own with @register_reranker"
            )
        factory = RERANKERS[reranker]
        check_settings(settings, factory, repr(reranker))
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
