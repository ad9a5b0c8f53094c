"""Fuse the results of several retrievers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from ..base_retriever import BaseRetriever
from ..branch import Branch
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

    ``"rrf"`` uses ranks, for incomparable scores (``bm25`` and ``cosine``). ``"relative"`` also
    uses score differences. ``"distribution"`` is less sensitive to outliers. ``"concat"`` keeps
    scores of one kind, from several groups or corpora. A node that several retrievers find is
    returned once, with all evidence.

    Plain retrievers with the same graph and target share one search and one snapshot of the graph.
    Other retrievers run concurrently, in threads or tasks. They run sequentially if the calling
    thread holds a graph's lock, to avoid a deadlock.

    Args:
        retrievers: Any retrievers, including fusions. Their results should belong to one group.
        mode: See ``fuse``.
        weights: The weight of each retriever, 0 or more. Defaults to equal weights. A retriever
            with weight 0 is not queried.
        top_k: The maximum number of nodes. Each retriever returns its own ``top_k``, or that of the
            call if larger.
        rank_constant: The constant of ``"rrf"``. A larger constant reduces the advantage of the
            first ranks.
        merge_by: A metadata field. Results with an equal value, such as pages of one URL, are
            merged into the first of these results, with all evidence. If None, results are merged
            by node.
        on_error: ``"raise"`` to raise the error of a failed retriever, or ``"skip"`` to skip the
            retriever, with a warning in the log and a failed span in the trace. If all retrievers
            fail, the first error is raised.

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
        """The fused retrievers by number."""
        return [(str(number), inner) for number, inner in enumerate(self.retrievers)]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        self.retrievers = [retrievers.get(name, inner) for name, inner in self.inner_retrievers]

    def __repr__(self) -> str:
        return f"FusionRetriever({self.retrievers!r}, {self.mode!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query. ``limit`` is the ``top_k`` of the call."""
        pairs = zip(self.retrievers, self.weights, strict=True)
        retrievers, weights = zip(*(pair for pair in pairs if pair[1]), strict=True)
        limits = [_limit_of(retriever, limit) for retriever in retrievers]
        top_k = self.top_k if limit is None else limit
        is_plain = self.merge_by is None and self.on_error == "raise"
        with start_span(self.name, mode=self.mode, queries=queries) as span:
            if is_plain and all(map(str.strip, queries)) and _are_local(retrievers):
                results = await self._search_together(retrievers, queries, limits, filters, top_k)
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
        filters: Filters | None,
        top_k: int,
    ) -> list[Results]:
        """Search plain retrievers of one graph in one view."""
        branches = [retriever.branch(filters) for retriever in retrievers]
        depths = [
            retriever.top_k if limit is None else limit
            for retriever, limit in zip(retrievers, limits, strict=True)
        ]

        def work(view: View) -> Results:
            ranking = self._ranked(view, branches, depths)
            return view.first_results(ranking, top_k)

        return await search_branches(branches, queries, work)

    def _ranked(self, view: View, branches: Sequence[Branch], depths: Sequence[int]) -> Ranking:
        """Fuse the rankings of branches for one query."""
        rankings = [
            view.ranking(branch, depth) for branch, depth in zip(branches, depths, strict=True)
        ]
        weights = [weight for weight in self.weights if weight]
        return fused(rankings, self.mode, weights, self.rank_constant)

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Return the ``top_k`` of a call. If None, every retriever uses its own number."""
        limit = super().check_limit(top_k, filters)
        return None if top_k is None else limit


def _are_local(retrievers: Sequence[object]) -> bool:
    """Return whether all retrievers are plain and share one graph and target."""
    local = [item for item in retrievers if type(item) is Retriever and len(item.graphs) == 1]
    same = {(id(item.graphs[0]), item.target) for item in local}
    return len(local) == len(retrievers) and len(same) == 1


def _limit_of(retriever: RetrieverProtocol, top_k: int | None) -> int | None:
    """Return the ``top_k`` of a call, or None if the retriever's ``top_k`` is not smaller."""
    own = getattr(retriever, "top_k", None)
    fewer = top_k is not None and isinstance(own, int) and own >= top_k
    return None if fewer else top_k
