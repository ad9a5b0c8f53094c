"""Convert the results of an external search engine to the nodes of a graph."""

from __future__ import annotations

import logging

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..foreign.foreign_retriever import as_retriever
from ..protocols import RetrieverLike
from ..results import Evidence, Results, ScoredNode
from ..retrieval_conditions import HitConditions
from .postprocess_retriever import PostprocessRetriever

logger = logging.getLogger(__name__)


class GraphNodesRetriever(PostprocessRetriever):
    """A retriever that replaces the results of an external search engine with nodes of a graph.

    Use it for a corpus that is too large for one machine. A distributed search engine then searches
    words and vectors, and the graph provides the parents, neighbors and locations of the nodes. In
    this way, ``AutoMergeRetriever``, ``WindowRetriever``, rerankers and strategies can be used with
    the results. Results whose node no longer exists are omitted and logged.

    The filters of a call are applied to the metadata of the engine's documents and to the nodes.

    Args:
        inner: The retriever of the search engine, or a function.
        graph: The graph that contains the nodes.
        id_key: The metadata field that contains the id of the node. If None, the id of the document
            is used.
        top_k: The maximum number of results. If None, all results of the search engine are
            returned.

    Raises:
        TypeError: If ``graph`` is not a NodeGraph.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Black tea."])
        >>> def engine(query: str) -> list[dict[str, str]]:
        ...     return [{"text": "an older copy", "id": ids[1]}]
        >>> [result.text for result in GraphNodesRetriever(engine, graph).retrieve("tea")]
        ['Black tea.']
    """

    name = "graph nodes"
    takes_documents = True

    def __init__(
        self,
        inner: RetrieverLike,
        graph: NodeGraph,
        id_key: str | None = None,
        *,
        top_k: int | None = None,
    ) -> None:
        super().__init__(as_retriever(inner, "inner"), top_k=top_k)
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        self.graph = graph
        self.id_key = id_key

    def postprocess(self, hits: Results, limit: int | None, conditions: HitConditions) -> Results:
        """Return the nodes for the engine's results, best first."""
        ids = [self._id_of(hit.node) for hit in hits]
        with self.graph.reader.reading():
            nodes = {node.id: node for node in self.graph.reader.existing_nodes(ids)}
        missing = [node_id for node_id in ids if node_id not in nodes]
        if missing:
            logger.warning(
                "%s of %s documents of %r are no nodes of the graph, such as %r; remove them from "
                "the engine",
                len(missing),
                len(ids),
                self.inner,
                missing[0],
            )
        results: dict[str, ScoredNode] = {}
        for node_id, hit in zip(ids, hits, strict=True):
            node = nodes.get(node_id)
            if node is not None and conditions([hit]).met_by(node):
                results.setdefault(node.id, _replaced(hit, node))
        return [*results.values()][:limit]

    def _id_of(self, node: Node) -> str:
        """Return the id of the node for a document, or an empty string if it is not known."""
        return node.id if self.id_key is None else str(node.metadata.get(self.id_key, ""))


def _replaced(hit: ScoredNode, node: Node) -> ScoredNode:
    """Replace the node of a result, including in the evidence."""
    evidence = [
        Evidence(node, match.score, match.similarity, match.query) for match in hit.evidence
    ]
    return ScoredNode(node, hit.score, tuple(evidence))
