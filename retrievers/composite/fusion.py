"""Fuse the results of several retrievers."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ...nodegraph.models.embedder import Vectors
from ...nodegraph.models.passage_vectors import embed_ahead
from ..base_retriever import inner_retrievers
from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..planned_retriever import PlannedRetriever
from ..plans.effects import find_all
from ..plans.plan import All, Do
from ..protocols import RetrieverLike, RetrieverProtocol
from ..ranking import RANK_CONSTANT, Mode, check_mode, fuse
from ..results import OutputOptions, Results
from ..retriever import Retriever
from ..search import Rank, Ranking, Select, all_results, fused, search
from ..tracing import start_span
from ..validation import check_top_k, choice, number

if TYPE_CHECKING:
    from typing_extensions import Unpack


logger = logging.getLogger(__name__)

T = TypeVar("T")


class FusionRetriever(PlannedRetriever):
    """Query several retrievers and fuse their results into one ranking.

    Choose ``"rrf"`` for retrievers whose scores can't be compared (``bm25`` and ``cosine``): only
    ranks count. ``"relative"`` also uses by how much one result is better than the next.
    ``"distribution"`` does so too, and one outlier matters less. ``"concat"`` is for scores of
    one kind, from several groups or corpora. A node that several retrievers return is one result,
    with the evidence of all of them.

    Plain retrievers of one graph and target are searched in one go, in one state of the graph.
    Others run in parallel, in threads or tasks; one after the other if the calling thread
    holds a graph's lock (``graph.reading``), since they could then wait for that lock forever.

    Args:
        retrievers: Any retrievers, also fusions; their results should be of one group.
        mode: See ``fuse``.
        weights: The weight of each retriever, 0 or more; all the same by default. One of weight 0
            is not queried.
        top_k: How many nodes to return at most. Each retriever returns its own ``top_k``, or the
            ``top_k`` of the call, where that is more.
        rank_constant: For ``"rrf"``: the larger, the less the first ranks stand out.
        merge_by: A metadata field: results with the same value of it are one result, the first
            of them, with the evidence of all (pages of one URL, records of one key). None merges
            results that are the same node.
        on_error: What happens if a retriever fails: ``"raise"``, or ``"skip"`` to fuse the results
            of the others, with a warning in the log and a failed span in the trace. If all fail,
            the first one's error is raised in any case.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If a retriever is none, or a number is none.
        ValueError: If there is no retriever or no such mode, or a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea. It is not fermented.", "Black tea. It is fermented."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> documents = Retriever(graph, "ROOT")
        >>> sentences = Retriever(graph, "sentence", target="ROOT")
        >>> fusion = FusionRetriever([documents, sentences], weights=[1, 2])
        >>> [result.node.text for result in fusion("black tea")]
        ['Black tea. It is fermented.', 'Green tea. It is not fermented.']
    """

    name = "fuse"

    def __init__(
        self,
        retrievers: Sequence[RetrieverLike],
        mode: Mode = "rrf",
        weights: Sequence[float] | None = None,
        top_k: int = 6,
        rank_constant: float = RANK_CONSTANT,
        *,
        merge_by: str | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=check_top_k(top_k), **output)
        self.on_error = choice(on_error, "on_error", ("raise", "skip"))
        if not isinstance(retrievers, Iterable) or isinstance(retrievers, str):
            raise TypeError(
                "retrievers is a list of retrievers, FusionRetriever([first, second]), not "
                f"{retrievers!r:.80}"
            )
        self.retrievers = [as_retriever(retriever) for retriever in retrievers]
        if not self.retrievers:
            raise ValueError("retrievers=[] leaves nothing to fuse; give one or more")
        self.mode: Mode = check_mode(mode)
        self.weights = check_weights(weights, len(self.retrievers))
        self.rank_constant = number(rank_constant, "rank_constant")
        if merge_by is not None and not isinstance(merge_by, str):
            raise TypeError(f"merge_by names a metadata field, not {merge_by!r:.80}")
        self.merge_by = merge_by

    def with_weights(self, weights: Sequence[float] | None) -> FusionRetriever:
        """Return the same fusion with other weights, for one call or many; it costs nothing.

        Args:
            weights: The weight of each retriever; None for all the same.

        Raises:
            TypeError: If a weight is no number.
            ValueError: If they are not as many as the retrievers, below 0, or all 0.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import Retriever
            >>> graph = NodeGraph()
            >>> ids = graph.add(["Green tea.", "Green, green leaves."])
            >>> words = Retriever(graph, "ROOT")
            >>> fusion = FusionRetriever([words, words], weights=[0.5, 0.5])
            >>> fusion.with_weights([1, 0]).retrieve("tea")[0].node.text
            'Green tea.'
        """
        other = copy.copy(self)
        other.weights = check_weights(weights, len(self.retrievers))
        return other

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The retrievers that are fused, by their number."""
        return [(str(number), inner) for number, inner in enumerate(self.retrievers)]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        self.retrievers = [retrievers.get(name, inner) for name, inner in self.inner_retrievers]

    def __repr__(self) -> str:
        return f"FusionRetriever({self.retrievers!r}, {self.mode!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query; ``limit`` is the ``top_k`` of the call."""
        branches = [
            (retriever, weight)
            for retriever, weight in zip(self.retrievers, self.weights, strict=True)
            if weight
        ]
        top_k = self.top_k if limit is None else limit
        local = local_retrievers([retriever for retriever, _ in branches])
        with start_span(self.name, mode=self.mode, queries=queries) as span:
            if (
                local
                and (self.merge_by, self.on_error) == (None, "raise")
                and all(map(str.strip, queries))
            ):
                rank = partial(self._rank, [weight for _, weight in branches], top_k)
                limits = [_limit_of(retriever, limit) for retriever in local]
                found = await search_together(local, queries, limits, filters, rank, all_results)
                span.set_results(found)
                return found
            outcomes = await All(
                [
                    partial(find_all, item, queries, _limit_of(item, limit), filters)
                    for item, _ in branches
                ],
                max_parallel=len(branches),
                fail_fast=self.on_error == "raise",
            )
            errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            if errors and (self.on_error == "raise" or len(errors) == len(branches)):
                raise errors[0]
            rankings, weights = [], []
            for (retriever, weight), outcome in zip(branches, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    logger.warning("left out of a fusion: %r failed: %s", retriever, outcome)
                else:
                    rankings.append(outcome)
                    weights.append(weight)
            options = self.mode, weights, top_k, self.rank_constant, self.merge_by
            per_query = zip(*rankings, strict=True)
            results = await Do(
                lambda: [fuse(ranked, *options) for ranked in per_query], kind="work"
            )
            span.set_results(results)
        return results

    def _rank(
        self,
        weights: Sequence[float],
        top_k: int | None,
        query: str,
        rankings: Sequence[Ranking],
    ) -> Ranking:
        return fused(rankings, self.mode, weights, self.rank_constant).first(top_k)

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Return the ``top_k`` of a call: without one every retriever returns its own."""
        limit = super().check_limit(top_k, filters)
        return None if top_k is None else limit


def local_retrievers(retrievers: Sequence[object]) -> list[Retriever]:
    """Return retrievers that can be searched together: plain ones of one graph and one target.

    The list is empty if one of the retrievers is another one.
    """
    local = [item for item in retrievers if type(item) is Retriever]
    same = {(*map(id, item.graphs), item.target) for item in local}
    is_local = len(local) == len(retrievers) and len(same) == 1 and len(local[0].graphs) == 1
    return local if is_local else []


async def search_together(
    retrievers: Sequence[Retriever],
    queries: Sequence[str],
    limits: Sequence[int | None],
    filters: Filters | None,
    rank: Rank,
    select: Select[T],
) -> list[T]:
    """Return the results of one search with several retrievers.

    Args:
        retrievers: ``local_retrievers``.
        queries: The queries, none of which is blank.
        limits: The maximum number of targets per retriever; None for its own ``top_k``.
        filters: Conditions, in addition to those of the retrievers.
        rank: Makes one ranking of the rankings of the retrievers.
        select: Reads the result of a query from its ranking.
    """
    searches = [
        retriever.search_for(queries, limit, filters)
        for retriever, limit in zip(retrievers, limits, strict=True)
    ]
    vectors = []
    for retriever in retrievers:
        of_retriever: Sequence[Sequence[Vectors]] = ()
        if retriever.embed_keys:
            of_retriever = await Do(
                partial(retriever.query_vectors, queries),
                partial(retriever.aquery_vectors, queries),
            )
        vectors.append(of_retriever)
    work = partial(search, searches, queries, vectors, rank, select)
    is_async = any(retriever.embeds_by_async_model for retriever in retrievers)
    return await Do(work, partial(embed_ahead, work) if is_async else None, kind="work")


def _limit_of(retriever: RetrieverProtocol, top_k: int | None) -> int | None:
    """Return the ``top_k`` of a call, but None where the retriever's own is not less."""
    own = getattr(retriever, "top_k", None)
    fewer = top_k is not None and isinstance(own, int) and own >= top_k
    return None if fewer else top_k


def check_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """Return the weights of so many retrievers; all the same by default.

    Raises:
        TypeError: If one is no number.
        ValueError: If they are not as many, below 0, or all 0.
    """
    if weights is None:
        return [1.0] * count
    checked = [number(weight, "a weight") for weight in weights]
    if len(checked) != count:
        raise ValueError(f"weights={weights!r} are {len(checked)}, for {count} retrievers")
    if not any(checked):
        raise ValueError(f"weights={weights!r} leave no retriever to query; give one above 0")
    return checked


def with_weights(retriever: RetrieverProtocol, weights: Sequence[float]) -> RetrieverProtocol:
    """Return a copy of a retriever, in which the one fusion has other weights; it costs nothing.

    The fusion is the retriever itself, or the outermost one within: in a reranker, a strategy, a
    restriction. A ``DefaultRetriever`` is one of the words of sentences, those of its
    targets, and each embedding.

    Args:
        retriever: Any retriever; it is not changed.
        weights: The weight of each retriever that is fused.

    Raises:
        TypeError: If there is no fusion, or a weight is no number.
        ValueError: If there are several of which none is within another, or the weights are not
            as many as the retrievers, below 0, or all 0.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Green, green leaves."])
        >>> words, exact = Retriever(graph, "ROOT"), Retriever(graph, "ROOT", index="map")
        >>> fusion = FusionRetriever([words, exact])
        >>> reranked = RerankRetriever(fusion, "ModuleReranker", model=lambda q, t: [1.0] * len(t))
        >>> with_weights(reranked, [1, 0]).retrieve("tea")[0].node.text
        'Green tea.'
    """
    paths = _paths(retriever, (), ())
    if not paths:
        raise TypeError(
            f"weights are for a FusionRetriever or a DefaultRetriever, and there is none in "
            f"{retriever!r:.120}; leave them out"
        )
    if len(paths) > 1:
        names = [".".join(path) for path in paths]
        raise ValueError(
            f"weights are for one fusion, and {retriever!r:.120} has {len(paths)}, {names}; set "
            "those of each where it is made"
        )
    return _replaced(retriever, paths[0], weights)


def _paths(
    retriever: Any, path: tuple[str, ...], holders: tuple[object, ...]
) -> list[tuple[str, ...]]:
    """Return the names that lead to the outermost fusions."""
    if hasattr(type(retriever), "with_weights"):
        return [path]
    if any(retriever is holder for holder in holders) or not hasattr(
        type(retriever), "with_inner_retrievers"
    ):  # a node may refer back to a retriever that holds it
        return []
    inner = inner_retrievers(retriever)
    return [p for name, item in inner for p in _paths(item, (*path, name), (*holders, retriever))]


def _replaced(retriever: Any, path: Sequence[str], weights: Sequence[float]) -> RetrieverProtocol:
    if not path:
        changed: RetrieverProtocol = retriever.with_weights(weights)
        return changed
    name, *remaining = path
    inner = dict(inner_retrievers(retriever))[name]
    copied: RetrieverProtocol = retriever.with_inner_retrievers(
        {name: _replaced(inner, remaining, weights)}
    )
    return copied
