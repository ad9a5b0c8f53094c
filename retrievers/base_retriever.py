"""The base class of retrievers, which implements calls, batches and output formats."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, get_args, overload

from ..nodegraph.errors import explain_names
from .call import limit_tokens
from .filters import Filters, parse_filters
from .plans.plan import Do, arun, gather_each, run
from .protocols import RetrieverProtocol
from .results import OutputFormat, ResultList, Results, ScoredNode, formatted
from .token_budget import Order, TokenBudget
from .validation import check_output, check_top_k, choice, optional_whole

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


Phrases = Literal["first", "required"]
"""The treatment of results that contain quoted phrases of a query. See ``DefaultRetriever``."""


class CallOptions(TypedDict, total=False):
    """The options of a call, except for its output format. See ``BaseRetriever.__call__``."""

    top_k: int | None
    filters: Filters | None
    max_tokens: int | None
    order: Order


class BaseRetriever:
    """A base class that implements all forms of a search on the basis of ``search_all``.

    A subclass implements ``search_all``, or both ``retrieve`` and ``aretrieve``. Retrievers do not
    have to inherit from this class.

    Each of the searches that a retriever performs reads a single revision of the graph. If the
    graph changes between two searches, the second search reads the new revision.

    Args:
        top_k: The maximum number of results. If None, the ``top_k`` of the inner retrievers is
            used.

    Raises:
        TypeError: If ``top_k`` is not an integer.
        ValueError: If ``top_k`` is below 1.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever, find_all
        >>> class Shortest(BaseRetriever):
        ...     def __init__(self, inner):
        ...         super().__init__(top_k=1)
        ...         self.inner = inner
        ...     async def search_all(self, queries, limit, filters):
        ...         found = await find_all(self.inner, queries, None, filters)
        ...         return [sorted(r, key=lambda item: len(item.text))[:limit] for r in found]
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is."])
        >>> Shortest(Retriever(graph, "ROOT"))("tea", output_format="content")
        ['Black tea is.']
    """

    name: ClassVar[str] = "strategy"

    calls_model: ClassVar[bool] = False
    """Whether the retriever calls a language model and may search for other queries."""

    has_windows: bool = False
    """Whether the retriever returns windows of text if a token budget is given."""

    top_k: int | None = None
    output_format: OutputFormat | None = None
    join: bool | str = False

    def __init_subclass__(cls, **settings: object) -> None:
        super().__init_subclass__(**settings)
        if "__init__" in vars(cls):
            cls.__init__ = explain_names(cls.__init__)  # type: ignore[method-assign]

    @explain_names
    def __init__(self, *, top_k: int | None = None) -> None:
        self.top_k = optional_whole(top_k, "top_k")

    def _set_output(self, output_format: OutputFormat | None, join: bool | str) -> None:
        """Set the output format for calls that do not specify a format."""
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query, at most ``limit`` per query."""
        if type(self).retrieve is BaseRetriever.retrieve:
            raise NotImplementedError(f"{type(self).__name__} must define search_all")

        async def find(query: str) -> Results:
            return await Do(
                lambda: self.retrieve(query, top_k=limit, filters=filters),
                lambda: self.aretrieve(query, top_k=limit, filters=filters),
            )

        return await gather_each(find, queries)

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The inner retrievers, by name.

        By default, this is the attribute ``inner`` if it exists. Subclasses can override the
        property.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import FusionRetriever, Retriever
            >>> words = Retriever(NodeGraph(), "ROOT")
            >>> [name for name, _ in FusionRetriever([words, words]).inner_retrievers]
            ['0', '1']
        """
        inner: RetrieverProtocol | None = getattr(self, "inner", None)
        return [] if inner is None else [("inner", inner)]

    def with_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> Self:
        """Return a copy with different inner retrievers.

        Args:
            retrievers: The new retrievers, by the names in ``inner_retrievers``.

        Raises:
            ValueError: If a name is unknown.
            TypeError: If a custom class must implement ``_replace_inner_retrievers``.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import FusionRetriever, Retriever
            >>> words, exact = (Retriever(NodeGraph(), "ROOT", index=i) for i in ("default", "map"))
            >>> fusion = FusionRetriever([words, words]).with_inner_retrievers({"1": exact})
            >>> [retriever is exact for retriever in fusion.retrievers]
            [False, True]
        """
        names = [name for name, _ in self.inner_retrievers]
        if unknown := [name for name in retrievers if name not in names]:
            raise ValueError(f"{self!r:.80} has no inner retriever {unknown[0]!r}; it has {names}")
        other = copy.copy(self)
        other._replace_inner_retrievers(retrievers)
        return other

    def with_fetch_k(self, fetch_k: int) -> Self:
        """Return a copy that fetches a different number of nodes.

        This applies to every ``Retriever``, including nested ones.
        """
        changed = {
            name: inner.with_fetch_k(fetch_k)
            for name, inner in self.inner_retrievers
            if isinstance(inner, BaseRetriever)
        }
        return self.with_inner_retrievers(changed)

    def with_phrases(self, phrases: Phrases) -> Self:
        """Return a copy in which every default search treats quoted phrases in the given way.

        Raises:
            ValueError: If the value is unknown, or no inner retriever is a default search.
        """
        choice(phrases, "phrases", get_args(Phrases))
        return self._with_default_searches("phrases", lambda inner: inner.with_phrases(phrases))

    def with_weights(self, weights: Mapping[str, float]) -> Self:
        """Return a copy in which every default search uses the given weights of words and vectors.

        Args:
            weights: The weights. See ``DefaultRetriever``.

        Raises:
            TypeError: If the weights are not a mapping from names to numbers.
            ValueError: If a weight is invalid, or no inner retriever is a default search.
        """
        return self._with_default_searches("weights", lambda inner: inner.with_weights(weights))

    def _with_default_searches(
        self, option: str, change: Callable[[BaseRetriever], BaseRetriever]
    ) -> Self:
        """Return a copy in which a function is applied to every default search.

        Raises:
            ValueError: If no inner retriever is a default search.
        """
        changed: dict[str, RetrieverProtocol] = {}
        for name, inner in self.inner_retrievers:
            if isinstance(inner, BaseRetriever) and searches_phrases(inner):
                changed[name] = change(inner)
        if not changed:
            raise ValueError(
                f"{option}= requires a default search, got {self!r:.120}; use as_retriever(graph)"
            )
        return self.with_inner_retrievers(changed)

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        """Set the inner retrievers of a new copy.

        By default, their names are names of attributes.
        """
        for name, retriever in retrievers.items():
            if not hasattr(self, name):
                raise TypeError(
                    f"{type(self).__name__} cannot replace its inner retriever {name!r}; override "
                    "_replace_inner_retrievers together with inner_retrievers"
                )
            setattr(self, name, retriever)

    @property
    def takes_filters(self) -> bool:
        """Whether the retriever applies the filters of a call.

        ``restrict`` rejects retrievers without this attribute.
        """
        return True

    @property
    def is_free(self) -> bool:
        """Whether a search can be repeated without calling a model.

        All inner retrievers are taken into account.
        """
        return not self.calls_model and all(
            getattr(inner, "is_free", True) for _, inner in self.inner_retrievers
        )

    @explain_names
    def retrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Search for a query, and return the best nodes, best first.

        Args:
            query: The question.
            top_k: The maximum number of results. Overrides the ``top_k`` of the retriever.
            filters: Filter conditions, which are passed to the inner retrievers.
            max_tokens: The maximum total number of tokens of the results, which are then
                ``BudgetResults``. Without ``top_k``, as many results are returned as fit into the
                budget.
            order: The order of the results. ``"document"`` sorts the results of each document by
                their position in it.

        Raises:
            TypeError: If a number is not an integer.
            ValueError: If a number is out of range, or the order is unknown.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return run(lambda: self._budgeted([query], top_k, filters, max_tokens, order))[0]

    @explain_names
    async def aretrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Asynchronous version of ``retrieve``."""
        results = await arun(lambda: self._budgeted([query], top_k, filters, max_tokens, order))
        return results[0]

    @overload
    def __call__(self, query: str, **options: Unpack[CallOptions]) -> list[ScoredNode]: ...
    @overload
    def __call__(
        self,
        query: str,
        *,
        output_format: OutputFormat,
        join: bool | str = False,
        **options: Unpack[CallOptions],
    ) -> Any: ...
    @explain_names
    def __call__(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> Any:
        """Search for a query, and return the results in an output format.

        Args:
            query: The question.
            top_k: The maximum number of results. Overrides the ``top_k`` of the retriever.
            filters: Filter conditions, in addition to those of the retriever.
            max_tokens: The maximum total number of tokens of the results. See ``BudgetResults``.
            order: The order of the results. ``"document"`` sorts the results of each document by
                their position in it.
            output_format: ``"content"`` returns contents, and ``"dict"`` returns plain
                dictionaries. If None, the format set for the retriever is used.
            join: The separator that joins the contents into a single text. True stands for a line
                break.

        Raises:
            TypeError: If an argument is unknown. If another library uses this name, the message
                states the name that is used here.
            ValueError: If the format is unknown, or ``join`` is used without ``"content"``.
        """
        if output_format is None and join is False:
            output_format = self.output_format
            join = self.join
        check_output(output_format, join)
        (results,) = run(lambda: self._budgeted([query], top_k, filters, max_tokens, order))
        return formatted(results, output_format, join)

    @explain_names
    def batch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Search for several queries, and return their results in the order of the queries.

        Model calls run concurrently, and all queries are passed to the inner retrievers in a single
        call.

        Args:
            queries: The questions.
            top_k: The maximum number of results per query. Overrides the ``top_k`` of the
                retriever.
            filters: Filter conditions, which are passed to the inner retrievers.
            max_tokens: The maximum total number of tokens of the results of each query.
            order: See ``retrieve``.

        Raises:
            TypeError: If ``queries`` is a string, or a number is not an integer.
            ValueError: If a number is out of range, or the order is unknown.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        check_queries(queries)
        return run(lambda: self._budgeted([*queries], top_k, filters, max_tokens, order))

    @explain_names
    async def abatch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Asynchronous version of ``batch``."""
        check_queries(queries)
        return await arun(lambda: self._budgeted([*queries], top_k, filters, max_tokens, order))

    async def _budgeted(
        self,
        queries: Sequence[str],
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[Results]:
        if not queries:
            return []
        check_texts(queries)
        if max_tokens is None and order == "score":
            limit = self.check_limit(top_k, filters)
            found = await self.search_all(queries, limit, filters)
            return [ResultList(results) for results in found]
        budget = TokenBudget(max_tokens, order, top_k)
        limit = self.check_limit(budget.candidates(self), filters)
        with limit_tokens(budget):
            found = await self.search_all(queries, limit, filters)
        return await Do(lambda: [budget.fit(results) for results in found], kind="work")

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Validate the arguments of a call, and return the maximum number of results."""
        if filters is not None:
            parse_filters(filters)
        return self.top_k if top_k is None else check_top_k(top_k)


def join_notes(*notes: str | None) -> str | None:
    """Join notes into one string. If there are no notes, None is returned."""
    return "; ".join([note for note in notes if note]) or None


def check_queries(queries: Sequence[str]) -> None:
    """Check the argument ``queries`` of a batch.

    Raises:
        TypeError: If ``queries`` is a string.
    """
    if isinstance(queries, str):
        raise TypeError(f"queries must be a list of texts, got {queries!r:.80}")


def check_texts(queries: Iterable[object]) -> None:
    """Check that each query is a string.

    Raises:
        TypeError: If a query is not a string.
    """
    for query in queries:
        if not isinstance(query, str):
            raise TypeError(f"a query must be a str, got {type(query).__name__} {query!r:.80}")


def inner_retrievers(retriever: object) -> Sequence[tuple[str, RetrieverProtocol]]:
    """Return the inner retrievers of any retriever, or an empty sequence if it has none."""
    inner: Sequence[tuple[str, RetrieverProtocol]] = getattr(retriever, "inner_retrievers", ())
    return inner


def searches_phrases(retriever: object) -> bool:
    """Return whether a retriever contains a default search, which supports quoted phrases."""
    return any(hasattr(item, "phrases") for item in with_all_inner(retriever))


def with_all_inner(retriever: object) -> Iterator[object]:
    """Yield a retriever and all nested retrievers, each of them once.

    References between retrievers can form cycles.
    """
    pending = [retriever]
    seen: set[int] = set()
    while pending:
        item = pending.pop(0)
        if id(item) not in seen:
            seen.add(id(item))
            yield item
            pending += [inner for _, inner in inner_retrievers(item)]


def check_takes_filters(retriever: object, owner: str) -> None:
    """Check that a retriever and all of its nested retrievers apply filters.

    Args:
        retriever: Any retriever.
        owner: The origin of the filters, for the error message.

    Raises:
        ValueError: If ``takes_filters`` is not True for one of the retrievers.
    """
    for item in with_all_inner(retriever):
        if getattr(item, "takes_filters", False) is not True:
            raise ValueError(
                f"{owner} adds conditions, and {item!r:.120} does not take them; put them into "
                "what it searches, or set takes_filters = True on its class if it passes filters on"
            )
