"""A retriever that fuses the results of several retrievers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from ..base_retriever import BaseRetriever
from ..branch import Branch
from ..call import Call
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever
from ..hits import Ranking, fused
from ..plans.effects import find_all
from ..plans.plan import All, Do
from ..protocols import RetrieverLike, RetrieverProtocol
from ..ranking import RANK_CONSTANT, Mode, check_mode, fuse
from ..results import Results
from ..retriever import Retriever, search_branches
from ..search import View
from ..tracing import start_span
from ..validation import check_top_k, choice, number

logger = logging.getLogger(__name__)


class FusionRetriever(BaseRetriever):
    """A retriever that fuses the results of several retrievers into one ranking.

    The mode ``"rrf"`` (reciprocal rank fusion) uses ranks only and is suitable for scores that
    cannot be compared, such as those of ``bm25`` and ``cosine``. ``"relative"`` also uses the
    differences between scores, and ``"distribution"`` is less sensitive to outliers. ``"concat"``
    keeps the scores, which must be of the same kind but can come from several groups or corpora. A
    node that is found by several retrievers is returned once, with all evidence.

    If all retrievers are plain ``Retriever`` objects with the same graph and target, they search
    the same snapshot of the graph. Other retrievers run concurrently, in threads or tasks. If the
    calling thread holds the lock of a graph, they run sequentially to avoid a deadlock.

    Args:
        retrievers: Any retrievers, including fusions. Their results should belong to the same
            group.
        mode: The method of fusion. See ``fuse``.
        weights: The weight of each retriever, at least 0. By default, all weights are equal. A
            retriever with a weight of 0 is not called.
        top_k: The maximum number of nodes. Each retriever uses its own ``top_k``, or the ``top_k``
            of the call if this is larger.
        rank_constant: The constant of ``"rrf"``. A larger constant reduces the advantage of the
            first ranks.
        merge_by: The name of a metadata field. Results with an equal value, such as pages of the
            same URL, are merged into the first of them, with all evidence. If None, only results of
            the same node are merged.
        on_error: The reaction if a retriever fails. ``"raise"`` raises the error. ``"skip"`` skips
            the retriever, logs a warning and marks the span in the trace as failed. If all
            retrievers fail, the first error is raised.

    Raises:
        TypeError: If a retriever or a number has the wrong type.
        ValueError: If ``retrievers`` is empty, the mode is unknown, or a number is out of range.

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
    top_k: int

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
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        self.on_error = choice(on_error, "on_error", ("raise", "skip"))
        if not isinstance(retrievers, Iterable) or isinstance(retrievers, str):
            raise TypeError(
                "retrievers must be a list, FusionRetriever([first, second]), got "
                f"{retrievers!r:.80}"
            )
        self.retrievers = [as_retriever(retriever) for retriever in retrievers]
        if not self.retrievers:
            raise ValueError("retrievers must not be empty, got []")
        self.mode: Mode = check_mode(mode)
        count = len(self.retrievers)
        given = [1.0] * count if weights is None else weights
        self.weights = [number(weight, "a weight") for weight in given]
        if len(self.weights) != count:
            raise ValueError(f"weights must have one value per retriever, got {weights!r}")
        if not any(self.weights):
            raise ValueError(f"weights must have a number above 0, got {weights!r}")
        self.rank_constant = number(rank_constant, "rank_constant")
        if merge_by is not None and not isinstance(merge_by, str):
            raise TypeError(f"merge_by must be a metadata field, got {merge_by!r:.80}")
        self.merge_by = merge_by

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The fused retrievers, which are named by their numbers."""
        return [(str(number), inner) for number, inner in enumerate(self.retrievers)]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        self.retrievers = [retrievers.get(name, inner) for name, inner in self.inner_retrievers]

    def __repr__(self) -> str:
        return f"FusionRetriever({self.retrievers!r}, {self.mode!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query. ``limit`` is the ``top_k`` of the call."""
        call = Call.begin(filters)
        pairs = zip(self.retrievers, self.weights, strict=True)
        retrievers, weights = zip(*(pair for pair in pairs if pair[1]), strict=True)
        limits = [_limit_of(retriever, limit) for retriever in retrievers]
        top_k = self.top_k if limit is None else limit
        is_plain = self.merge_by is None and self.on_error == "raise"
        with start_span(self.name, mode=self.mode, queries=queries) as span:
            if is_plain and all(map(str.strip, queries)) and _are_local(retrievers):
                results = await self._search_together(retrievers, queries, limits, call, top_k)
            else:
                outcomes = await All(
                    [
                        partial(find_all, retriever, queries, count, filters)
                        for retriever, count in zip(retrievers, limits, strict=True)
                    ],
                    max_parallel=len(retrievers),
                    fail_fast=self.on_error == "raise",
                )
                rankings, used, errors = [], [], []
                for retriever, weight, outcome in zip(retrievers, weights, outcomes, strict=True):
                    if isinstance(outcome, Exception):
                        logger.warning("left out of a fusion: %r failed: %s", retriever, outcome)
                        errors.append(outcome)
                    else:
                        rankings.append(outcome)
                        used.append(weight)
                if errors and (self.on_error == "raise" or not rankings):
                    raise errors[0]
                options = self.mode, used, top_k, self.rank_constant, self.merge_by
                per_query = zip(*rankings, strict=True)
                results = await Do(lambda: [fuse(r, *options) for r in per_query], kind="work")
            span.set_results(results)
        return results

    async def _search_together(
        self,
        retrievers: Sequence[Retriever],
        queries: Sequence[str],
        limits: Sequence[int | None],
        call: Call,
        top_k: int,
    ) -> list[Results]:
        """Search with several plain retrievers in one snapshot of their common graph."""
        branches = [retriever.branch(call) for retriever in retrievers]
        depths = [
            retriever.top_k if limit is None else limit
            for retriever, limit in zip(retrievers, limits, strict=True)
        ]

        def work(view: View) -> Results:
            ranking = self._ranked(view, branches, depths)
            return view.first_results(ranking, top_k)

        return await search_branches(branches, queries, work)

    def _ranked(self, view: View, branches: Sequence[Branch], depths: Sequence[int]) -> Ranking:
        """Fuse the rankings of several searches for one query."""
        rankings = [
            view.ranking(branch, depth) for branch, depth in zip(branches, depths, strict=True)
        ]
        weights = [weight for weight in self.weights if weight]
        return fused(rankings, self.mode, weights, self.rank_constant)

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Return the ``top_k`` of a call.

        If it is None, each retriever uses its own ``top_k``.
        """
        limit = super().check_limit(top_k, filters)
        return None if top_k is None else limit


def _are_local(retrievers: Sequence[object]) -> bool:
    """Return whether all retrievers are plain ``Retriever`` objects of one graph and one target."""
    local = [item for item in retrievers if type(item) is Retriever and len(item.graphs) == 1]
    same = {(id(item.graphs[0]), item.target) for item in local}
    return len(local) == len(retrievers) and len(same) == 1


def _limit_of(retriever: RetrieverProtocol, top_k: int | None) -> int | None:
    """Return the ``top_k`` of a call, or None if the ``top_k`` of the retriever is sufficient."""
    own = getattr(retriever, "top_k", None)
    fewer = top_k is not None and isinstance(own, int) and own >= top_k
    return None if fewer else top_k
