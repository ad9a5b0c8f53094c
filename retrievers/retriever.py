"""Search one group of nodes, answer with their kin."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from ..nodegraph import Node, NodeGraph
from ..nodegraph.errors import nearest
from ..nodegraph.find import kin, path_to
from .filters import Condition, Filters, parse_filters
from .hits import merge
from .lift import Lift, lift, lift_all
from .output import OutputFormat, check_output, formatted
from .protocols import Similarity
from .scored_node import Evidence, ScoredNode
from .similarities import get_similarity

logger = logging.getLogger(__name__)


class Retriever:
    """Search a node group by a similarity; return the nodes, or their kin in a target group.

    Nothing is built before the first query. A query sees one consistent state of the graph, and
    what was added, changed or removed before it.

    Args:
        graph: A node graph, or several, searched as one.
        group_name: The group to search.
        similarity: A name (``"bm25"``, ``"bm25_chinese"``: both analyse Chinese, English and
            mixed text) or an object (``Bm25(k1=1.2)``).
        similarity_cut_off: Keeps hits that score this or more.
        index: How the similarity is made fast; ``"default"``.
        top_k: How many nodes to return at most: nodes of the target group, where there is one.
        embed_keys: Which embeddings to search; for similarities that compare embeddings.
        target: The group to answer with; hits are lifted to their kin in it, up, down or across.
            None answers with the hits.
        filters: Conditions on metadata, checked before ranking; see ``parse_filters``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        lift: What a target scores: its best hit's score (``"max"``), or the ``"sum"`` or
            ``"mean"`` over all its hits.
        **similarity_kw: Settings of a similarity that was named: ``k1=1.2``.

    Raises:
        UnknownGroupError: If a graph has no such group or target.
        TypeError: If what was given is no graph, or the similarity has no such setting.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented. Black tea is.", "Rivers run to the sea."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> retriever = Retriever(graph, "sentence", "bm25", target="ROOT", top_k=1)
        >>> [result.node.text for result in retriever("Which tea is black?")]
        ['Green tea is not fermented. Black tea is.']
    """

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        group_name: str,
        similarity: str | Similarity | None = None,
        *,
        similarity_cut_off: float | None = None,
        index: str = "default",
        top_k: int = 6,
        embed_keys: Sequence[str] | None = None,
        target: str | None = None,
        filters: Filters | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        lift: Lift = "max",
        **similarity_kw: Any,
    ) -> None:
        graphs = graph if isinstance(graph, Sequence) else [graph]
        if not graphs or not all(isinstance(each, NodeGraph) for each in graphs):
            raise TypeError(f"graph is a NodeGraph or a list of them, not {graph!r:.80}")
        self.graphs = list(dict.fromkeys(graphs))
        self.group_name = group_name
        self.target = group_name if target is None else target
        for each in self.graphs:
            each.ancestry(self.group_name)
            each.ancestry(self.target)
        self.similarity = get_similarity(similarity, similarity_kw)
        if embed_keys is not None:
            raise ValueError(
                f"embed_keys={embed_keys!r} choose among embeddings, and similarity "
                f"{self.similarity.name!r} compares texts; leave them out"
            )
        if index != "default":
            raise ValueError(f"no index {index!r}; there is {nearest(str(index), ['default'])}")
        self.top_k = _check_top_k(top_k)
        self.similarity_cut_off = _check_cut_off(similarity_cut_off)
        self._conditions = parse_filters(filters)
        self.filters = filters
        check_output(output_format, join)
        self.output_format = output_format
        self.join = join
        if lift not in ("max", "sum", "mean"):
            raise ValueError(f"lift is 'max', 'sum' or 'mean', not {lift!r}")
        self.lift = lift

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_conditions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._conditions = parse_filters(self.filters)

    def __repr__(self) -> str:
        return (
            f"Retriever({self.group_name!r} -> {self.target!r}, {self.similarity.name}, "
            f"top_k={self.top_k})"
        )

    def __call__(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> Any:
        """Retrieve, and return the results in the ``output_format``."""
        results = self.retrieve(query, top_k=top_k, filters=filters)
        return formatted(results, self.output_format, self.join)

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first; fewer than ``top_k`` where fewer match.

        Args:
            query: What to look for; a blank query finds nothing.
            top_k: In place of the retriever's own.
            filters: Conditions beside the retriever's own; a field here replaces one there.

        Raises:
            TypeError: If the query is no text.
            ValueError: If a number is out of range, a filter no filter.
            TransformError: If a group has to be built and its transform raises.
        """
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        limit = self.top_k if top_k is None else _check_top_k(top_k)
        conditions = {**self._conditions, **parse_filters(filters)}
        if not query.strip():
            return []
        for graph in self.graphs[1:]:  # built before any is held, which would keep writers waiting
            with graph.reading(self.group_name, self.target):
                pass
        with ExitStack() as held:
            for graph in sorted(self.graphs, key=id):  # all in one order, or two could deadlock
                held.enter_context(graph.reading(self.group_name, self.target))
            return self._search(query, limit, conditions)

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Do what ``retrieve`` does in a worker thread, leaving the event loop free."""
        return await asyncio.to_thread(self.retrieve, query, top_k=top_k, filters=filters)

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        Raises:
            TypeError: If the queries are one text.
        """
        if isinstance(queries, str):
            raise TypeError(f"batch takes a list of queries, not one: {queries!r:.80}")
        return [self.retrieve(query, top_k=top_k, filters=filters) for query in queries]

    def _search(self, query: str, limit: int, conditions: dict[str, Condition]) -> list[ScoredNode]:
        """Search the indexes, more of them as long as the hits give too few targets."""
        indexes = [self.similarity.open(graph, self.group_name) for graph in self.graphs]
        for index in indexes:
            index.sync()
        prepared = self.similarity.prepare(query, indexes)
        lifting = self.target != self.group_name
        cut_off = -math.inf if self.similarity_cut_off is None else self.similarity_cut_off
        name, kin = self.similarity.name, self._kin()
        wanted = 4 * limit if lifting else limit
        while True:
            asked = None if lifting and self.lift != "max" else wanted
            found = [index.search(prepared, asked, conditions) for index in indexes]
            rows, more = merge(found, asked, cut_off)
            hits = (Evidence(self.graphs[at].node(i), score, name, query) for score, at, i in rows)
            if lifting and self.lift != "max":
                return lift_all(hits, kin, limit, self.lift, self._place)
            results = lift(hits, kin, limit)
            if len(results) == limit or not more:
                return results
            wanted *= 4

    def _place(self, node: Node) -> tuple[int, int]:
        return next(at for at, graph in enumerate(self.graphs) if graph is node.graph), node.order

    def _kin(self) -> Callable[[Node], Sequence[Node]]:
        if self.target == self.group_name:
            return lambda node: [node]
        paths = {id(graph): path_to(graph, self.target) for graph in self.graphs}

        def targets(node: Node) -> list[Node]:
            graph = node.graph
            return kin(graph, paths[id(graph)], node) if graph is not None else []

        return targets


def _check_top_k(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int):
        raise TypeError(f"top_k is a whole number, not {top_k!r}")
    if top_k < 1:
        raise ValueError(f"top_k must be 1 or more, not {top_k!r}")
    return top_k


def _check_cut_off(cut_off: float | None) -> float | None:
    if cut_off is None:
        return None
    if isinstance(cut_off, bool) or not isinstance(cut_off, int | float):
        raise TypeError(
            f"similarity_cut_off is a number for a similarity of texts, not {cut_off!r:.80}"
        )
    if math.isnan(cut_off):
        raise ValueError("similarity_cut_off is NaN, which no score reaches; give a number")
    return float(cut_off)
