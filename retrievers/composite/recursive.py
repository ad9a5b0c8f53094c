"""A retriever that searches several groups together and follows references to other retrievers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...nodegraph.concurrency import context_value
from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.navigation import path_to
from ...nodegraph.node import Node
from ..base_retriever import BaseRetriever
from ..branch import Branch
from ..call import Call
from ..filters import Filters, all_of
from ..foreign.foreign_retriever import as_retriever
from ..plans.effects import find_all, find_one
from ..protocols import RetrieverLike, RetrieverProtocol, Similarity
from ..ranking import Lift, by_node, merge
from ..results import Evidence, Results, ScoredNode
from ..retriever import Retriever
from ..similarities.registry import DEFAULT, MakeIndex
from ..tracing import start_span
from ..validation import check_top_k, whole

if TYPE_CHECKING:
    from typing_extensions import Self


FIELD = "retriever"
"""The metadata field that contains the name of a reference."""


Ranked = tuple[tuple[int, ...], ScoredNode]
"""A result with its position among results that have the same score."""

_ACTIVE: ContextVar[tuple[int, ...]] = ContextVar("active recursive retrievers", default=())


class RecursiveRetriever(BaseRetriever):
    """A retriever that searches several groups together and follows references to other retrievers.

    Use it instead of ``Retriever`` if a text should be found through several kinds of nodes, such
    as chunks of several sizes, summaries or generated questions. The nodes of all groups compete in
    one ranking, and each target is returned once. (If the scores of the rankings cannot be
    compared, use ``FusionRetriever``.)

    A node can refer to another retriever or graph, just as an entry in a table of contents refers
    to a part of a corpus. The node is then replaced by the results of that retriever. The best of
    these results is assigned the score of the node. Lower scores are scaled proportionally, or
    shifted if a score is not positive. The evidence contains a match with the
    similarity ``"reference"``, followed by the evidence of the node. Each retriever is called once
    per query, with the score of the best node that refers to it. A reference that leads back to a
    retriever that is already active is ignored. If a retriever returns no results, its node is not
    replaced.

    Args:
        graph: A graph, or several graphs that are searched as one.
        groups: The names of the groups to search.
        target: The name of the group that the results belong to. If None, it is the nearest common
            ancestor of the groups.
        similarity: The similarity for all groups. See ``Retriever``.
        top_k: The number of results.
        filters: Conditions on metadata, which also apply to the referenced retrievers.
        references: A mapping from names to retrievers and graphs. A node refers to a name by its
            id, or by its metadata field ``"retriever"``, which its children inherit. A node with a
            reference is not replaced by its parent.
        max_depth: The maximum number of consecutive references. Beyond it, references are not
            followed, and their nodes are returned.
        index: See ``Retriever``.
        min_score: The minimum score of a node, either as a number or as a mapping by embedding.
        embed_keys: The names of the embeddings to search. See ``Retriever``.
        lift: The method that computes the score of a target from the scores of its nodes:
            ``"max"``, ``"sum"`` or ``"mean"``. See ``Retriever``.
        fetch_k: The number of nodes that are fetched before they are replaced by their targets. By
            default, as many nodes are fetched as are needed for ``top_k`` targets.

    Raises:
        UnknownGroupError: If a graph does not have one of the groups or the target.
        TypeError: If an argument has the wrong type.
        ValueError: If ``groups`` is empty, or an argument is invalid.
        LookupError: During a search, if a node refers to a name that is not in ``references``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> graph.create_node_group("question", lambda text: f"What about {text.split()[0]}?")
        >>> retriever = RecursiveRetriever(graph, groups=["sentence", "question"], target="ROOT")
        >>> [(r.node.text, [e.group for e in r.evidence]) for r in retriever("rivers")]
        [('Rivers run.', ['sentence', 'question'])]

    Source:
        ``RecursiveRetriever`` of LlamaIndex with references to chunks and metadata, and
        ``ParentDocumentRetriever`` and ``MultiVectorRetriever`` of LangChain.
    """

    name = "recurse"

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        groups: Sequence[str],
        target: str | None = None,
        similarity: str | Similarity | None = None,
        *,
        top_k: int = 6,
        filters: Filters | None = None,
        references: Mapping[str, RetrieverLike] | None = None,
        max_depth: int = 3,
        index: str | MakeIndex = DEFAULT,
        min_score: float | Mapping[str, float] | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift = "max",
        fetch_k: int | None = None,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        if isinstance(groups, str) or not isinstance(groups, Sequence):
            raise TypeError(f"groups must be a list of names, got {groups!r:.80}")
        if not groups:
            raise ValueError("groups must not be empty, got []")
        self.groups = list(dict.fromkeys(groups))
        if not isinstance(references, Mapping | None):
            raise TypeError(
                f"references must be a mapping from names to retrievers, got {references!r:.80}"
            )
        self.references = {
            name: as_retriever(item, f"what {name!r:.120} refers to")
            for name, item in (references or {}).items()
        }
        self.max_depth = whole(max_depth, "max_depth", 1)
        self._pool = _GroupPool(
            graph,
            self.groups,
            similarity,
            self._reference if references else None,
            target=target,
            top_k=top_k,
            filters=filters,
            index=index,
            min_score=min_score,
            embed_keys=embed_keys,
            lift=lift,
            fetch_k=fetch_k,
        )
        self.target = self._pool.target
        self.similarity = self._pool.similarity
        self.filters = filters

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The referenced retrievers, by name."""
        return [*self.references.items()]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        self.references = {**self.references, **retrievers}

    def __repr__(self) -> str:
        return (
            f"RecursiveRetriever({self.groups!r} -> {self.target!r}, {self.similarity.name}, "
            f"top_k={self.top_k})"
        )

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query.

        Without references, all queries are searched together.
        """
        assert limit is not None
        if not self.references:
            return await find_all(self._pool, queries, limit, filters)
        return [await self._recurse(query, limit, filters) for query in queries]

    def with_fetch_k(self, fetch_k: int) -> Self:
        """Return a copy that fetches a different number of nodes."""
        other = copy.copy(self)
        other._pool = self._pool.with_fetch_k(fetch_k)
        return other

    async def _recurse(self, query: str, limit: int, filters: Filters | None) -> Results:
        """Search the groups and follow references. Fetch more nodes if results are missing."""
        active = _ACTIVE.get()
        span_of_query = start_span(self.name, queries=[query], target=self.target)
        with context_value(_ACTIVE, (*active, id(self))), span_of_query as span:
            if id(self) in active:  # a reference leads back to this retriever, so it is ignored
                span.attributes["leads_back"] = True
                return []
            answers: dict[int, Results] = {}
            results: Results = []
            hit_count = limit
            complete = False
            while len(results) < limit and not complete:
                hits = await find_one(self._pool, query, hit_count, filters)
                complete = len(hits) < hit_count
                results = await self._follow(query, hits, limit, filters, answers)
                hit_count *= 4
            results = results[:limit]
            span.attributes["references"] = len(answers)
            span.set_results([results])
            return results

    async def _follow(
        self,
        query: str,
        hits: Results,
        limit: int,
        filters: Filters | None,
        answers: dict[int, Results],
    ) -> Results:
        """Replace nodes that have references by the results of these references, level by level.

        The results are stored by the id of the retriever, so that each retriever is called only
        once.
        """
        level: list[Ranked] = [((rank,), hit) for rank, hit in enumerate(hits)]
        results: list[Ranked] = []
        followed: dict[int, RetrieverProtocol] = {}
        for depth in range(self.max_depth + 1):
            entries: dict[int, list[Ranked]] = {}
            for place, hit in level:
                reference = self._reference(hit.node)
                key = id(reference)
                if reference is None:
                    results.append((place, hit))
                elif key in followed and key not in entries:
                    continue  # the results of the reference are already in the ranking
                elif depth < self.max_depth:
                    followed[key] = reference
                    entries.setdefault(key, []).append((place, hit))
                else:
                    results.append((place, hit))
            level = []
            for key, of_reference in entries.items():
                if key not in answers:
                    conditions = all_of(self.filters, filters)
                    answers[key] = await find_one(followed[key], query, limit, conditions)
                level += _replaced(query, of_reference, answers[key])
        results.sort(key=lambda ranked: (-ranked[1].score, ranked[0]))
        same_nodes = by_node([result for _, result in results])
        return [merge(same[0].node, same, same[0].score) for same in same_nodes]

    def _reference(self, node: Node) -> RetrieverProtocol | None:
        """Return the retriever that a node refers to, or None."""
        if node.id in self.references and node.graph in self._pool.graphs:
            return self.references[node.id]
        name = node.metadata.get(FIELD)
        if name is None:
            return None
        if not isinstance(name, str) or name not in self.references:
            raise LookupError(
                f"{node!r} refers to the retriever {name!r}, and references has "
                f"{nearest_names(str(name), self.references)}; add it there"
            )
        return self.references[name]


class _GroupPool(Retriever):
    """A retriever that searches all groups of a recursive retriever together."""

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        groups: Sequence[str],
        similarity: str | Similarity | None,
        refers: Callable[[Node], object] | None,
        *,
        target: str | None,
        **options: Any,
    ) -> None:
        super().__init__(graph, groups[0], similarity, target=target, **options)
        self._groups = groups
        self._refers = refers
        paths = [path_to(graph, group) for graph in self.graphs for group in groups]
        if target is None:  # every path begins with ROOT
            shared = [names[0] for names in zip(*paths, strict=False) if len(set(names)) == 1]
            self.target = shared[-1]
            for item in self.graphs:
                item.reader.lineage(self.target)

    def branch(self, call: Call) -> Branch:
        """Return the search over all groups."""
        return replace(super().branch(call), groups=self._groups, refers=self._refers)


def _replaced(query: str, entries: Sequence[Ranked], results: Results) -> list[Ranked]:
    """Return the results that replace the nodes of a reference, with scores and positions.

    The scores are scaled to the scores of the nodes, or shifted if a score is not positive.
    """
    # The first of several equal entries is used.
    place, best = max(entries, key=lambda entry: entry[1].score)
    path: list[Evidence] = []
    for _, entry in sorted(entries, key=lambda entry: -entry[1].score):
        path += [Evidence(entry.node, entry.score, "reference", query), *entry.evidence]
    scores = [result.score for result in results]
    highest = max(scores, default=0.0)
    if best.score > 0 and highest > 0 and min(scores) >= 0:
        scores = [best.score * (score / highest) for score in scores]
    else:
        scores = [best.score - (highest - score) for score in scores]
    return [
        ((*place, rank), ScoredNode(result.node, score, (*result.evidence, *path)))
        for rank, (result, score) in enumerate(zip(results, scores, strict=True))
    ]
