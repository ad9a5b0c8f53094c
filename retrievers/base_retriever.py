"""What every retriever offers besides ``retrieve``: calls in a format, and batches."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, overload

from ..nodegraph.concurrency import context_value, run_in_tasks
from ..nodegraph.errors import explain_names
from .filters import Filters, all_of
from .protocols import RetrieverProtocol
from .results import OutputFormat, ScoredNode, formatted
from .token_budget import Order, TokenBudget
from .validation import check_output, whole

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class CallOptions(TypedDict, total=False):
    """The options of a call, whatever form its results have, to type it. See ``__call__``."""

    top_k: int | None
    filters: Filters | None
    max_tokens: int | None
    order: Order


class BaseRetriever:
    """Give a retriever with ``retrieve`` and ``aretrieve`` its other methods.

    A retriever need not be a subclass; a subclass need not write these methods.

    Args:
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        ValueError: If there is no such format, or anything but content is to be joined.
    """

    calls_model: ClassVar[bool] = False
    """Whether it calls a language model, and may search for other queries than the one it gets."""

    has_windows: bool = False
    """Whether it returns windows within a budget of tokens, as the default search does."""

    output_format: OutputFormat | None = None
    join: bool | str = False

    def __init_subclass__(cls, **settings: object) -> None:
        super().__init_subclass__(**settings)
        if "__init__" in vars(cls):
            cls.__init__ = explain_names(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self, *, output_format: OutputFormat | None = None, join: bool | str = False
    ) -> None:
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retrievers that this one queries, with their names in it.

        A retriever that wraps another one as ``inner`` has it here; others override this.

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
        """Return a copy that queries other retrievers in place of some of its own.

        Args:
            retrievers: The other ones, by the names in ``inner_retrievers``.

        Raises:
            ValueError: If a name is unknown.
            TypeError: If a class of yours does not say how (``_replace_inner_retrievers``).

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

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        """Set some inner retrievers of a copy; their names are those of attributes by default."""
        for name, retriever in retrievers.items():
            if not hasattr(self, name):
                raise TypeError(
                    f"{type(self).__name__} does not say how its inner retriever {name!r} is "
                    "replaced; override _replace_inner_retrievers where inner_retrievers is"
                )
            setattr(self, name, retriever)

    @property
    def takes_filters(self) -> bool:
        """Whether it adds the filters of a call to its own conditions and passes them on.

        False for one that can't filter what it retrieves. A retriever that is no subclass says so
        itself; where it does not, nothing relies on it (see ``restrict``).
        """
        return True

    @property
    def is_free(self) -> bool:
        """Whether it may be queried again for more results without paying for a model again.

        It is, unless it or one of the retrievers within calls a model.
        """
        return not self.calls_model and all(
            getattr(inner, "is_free", True) for _, inner in self.inner_retrievers
        )

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        raise NotImplementedError

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Async version of ``retrieve``."""
        raise NotImplementedError

    @overload
    def __call__(self, query: str, **options: Unpack[CallOptions]) -> list[ScoredNode]: ...
    @overload
    def __call__(
        self,
        query: str,
        *,
        output_format: Literal["content"],
        join: Literal[False] = False,
        **options: Unpack[CallOptions],
    ) -> list[Any]: ...
    @overload
    def __call__(
        self,
        query: str,
        *,
        output_format: Literal["content"],
        join: Literal[True] | str,
        **options: Unpack[CallOptions],
    ) -> str: ...
    @overload
    def __call__(
        self, query: str, *, output_format: Literal["dict"], **options: Unpack[CallOptions]
    ) -> list[dict[str, Any]]: ...
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
        **unknown: object,
    ) -> Any:
        """Retrieve, and return the results as scored nodes or in a format.

        Args:
            query: The question.
            top_k: How many results at most, in place of the retriever's own.
            filters: Conditions, beside the retriever's own.
            max_tokens: How many tokens all results may have together; see ``BudgetResults``.
            order: ``"document"`` puts results of one document into its order.
            output_format: ``"content"`` for contents, ``"dict"`` for plain dicts; None for the
                retriever's own, which is scored nodes unless it was given another. Type checkers
                know the form from the call alone.
            join: Joins contents to one text: True with line breaks, or the separator.
            **unknown: Arguments that only ``retrieve`` of a class of yours has.

        Raises:
            TypeError: If there is no such argument; with its name here if it is another library's.
            ValueError: If there is no such format, or anything but content is to be joined.
        """
        if output_format is None and join is False:
            output_format, join = self.output_format, self.join
        check_output(output_format, join)
        retrieve = explain_names(self.retrieve) if unknown else self.retrieve
        budget = TokenBudget(max_tokens, order, top_k)
        limit = budget.candidates(self)
        with budget.holding():
            results = retrieve(query, top_k=limit, filters=filters, **unknown)
        results = budget.fit(results) if budget else results
        return formatted(results, output_format, join)

    def batch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        Args:
            queries: The questions.
            top_k: How many results at most, in place of the retriever's own.
            filters: Conditions, beside the retriever's own.
            max_tokens: How many tokens the results of a query may have together.
            order: ``"document"`` puts results of one document into its order.

        Raises:
            TypeError: If the queries are one text.
        """
        check_queries(queries)
        budget = TokenBudget(max_tokens, order, top_k)
        limit = budget.candidates(self)
        with budget.holding():
            results = [self.retrieve(query, top_k=limit, filters=filters) for query in queries]
        return [*map(budget.fit, results)] if budget else results

    async def abatch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop, all queries at once."""
        check_queries(queries)
        budget = TokenBudget(max_tokens, order, top_k)
        limit = budget.candidates(self)
        calls = [partial(self.aretrieve, query, top_k=limit, filters=filters) for query in queries]
        with budget.holding():
            results = await run_in_tasks(calls, len(calls))
        return [*map(budget.fit, results)] if budget else results


def check_queries(queries: Sequence[str]) -> None:
    """Check what a batch is given.

    Raises:
        TypeError: If the queries are one text.
    """
    if isinstance(queries, str):
        raise TypeError(f"batch takes a list of queries, not one: {queries!r:.80}")


def check_texts(queries: Iterable[object]) -> None:
    """Check that each query is a text.

    Raises:
        TypeError: If one is not.
    """
    for query in queries:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")


def inner_retrievers(retriever: object) -> Sequence[tuple[str, RetrieverProtocol]]:
    """Return ``BaseRetriever.inner_retrievers`` of any retriever, none if it does not say."""
    inner: Sequence[tuple[str, RetrieverProtocol]] = getattr(retriever, "inner_retrievers", ())
    return inner


def with_all_inner(retriever: object) -> Iterator[object]:
    """Yield a retriever and all within it, each once: a node may refer back to what holds it."""
    pending, seen = [retriever], set[int]()
    while pending:
        item = pending.pop(0)
        if id(item) not in seen:
            seen.add(id(item))
            yield item
            pending += [inner for _, inner in inner_retrievers(item)]


def check_takes_filters(retriever: object, owner: str) -> None:
    """Check that a retriever, and all that it holds, honours filters.

    Args:
        retriever: Any retriever.
        owner: What adds conditions, for the error.

    Raises:
        ValueError: If one does not, or does not say that it does.
    """
    for item in with_all_inner(retriever):
        if getattr(item, "takes_filters", False) is not True:
            raise ValueError(
                f"{owner} adds conditions, and {item!r:.120} does not take them; put them into "
                "what it searches, or set takes_filters = True on its class if it passes filters on"
            )


RESTRICTION: ContextVar[Filters | None] = ContextVar("restriction", default=None)
"""The restriction that holds for what is retrieved now; None where there is none."""


def restricting(filters: Filters) -> AbstractContextManager[Filters | None]:
    """Let a restriction hold for all that is retrieved in the block, besides those around it.

    It reaches every retriever, also in the threads and tasks that are started in the block, and
    also behind one that does not pass filters on; see ``restrict``.
    """
    return context_value(RESTRICTION, all_of(RESTRICTION.get(), filters))


def current_restriction() -> Filters | None:
    """Return the restriction that holds for what is retrieved now; None where there is none."""
    return RESTRICTION.get()


CHILD_K: ContextVar[int | None] = ContextVar("child_k", default=None)
"""How many hits every retriever looks at now, in place of its own number; None for its own."""


def child_k_override(child_k: int | None) -> AbstractContextManager[int | None]:
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
        >>> with child_k_override(3):
        ...     [len(result.evidence) for result in retriever("tea")]
        [3]
        >>> len(retriever("tea"))
        2
    """
    if child_k is None:
        return nullcontext()
    return context_value(CHILD_K, whole(child_k, "child_k", 1))


def effective_child_k(own: int | None) -> int | None:
    """Return how many hits a retriever looks at: the block's override, else its own number."""
    override = CHILD_K.get()
    return own if override is None else override
