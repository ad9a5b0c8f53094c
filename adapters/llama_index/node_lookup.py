"""Find nodes of a graph by their ids in LlamaIndex, also those that were imported."""

from __future__ import annotations

from contextlib import suppress

from llama_index.core.schema import BaseNode

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...retrievers.filters import Filter
from ...retrievers.indexes.exact_index import Exact
from .graph_text_node import read_record
from .imported_fields import LLAMA_INDEX_ID


def find_node(graph: NodeGraph, node: BaseNode | str) -> Node | None:
    """Return a node by its id in the graph or, if it was imported, in LlamaIndex.

    Args:
        graph: The node graph.
        node: The id, or the LlamaIndex node.
    """
    if isinstance(node, BaseNode):
        record = read_record(node)
        node = node.node_id if record is None else str(record["id"])
    with suppress(LookupError):
        return graph.node(node)
    by_original_id = Exact(LLAMA_INDEX_ID, normalize=False)
    for group in graph.groups:
        if graph.is_imported(group):
            index = by_original_id.open(graph, group)
            with graph.reading(group):
                index.sync()
                for match in index.search(node, 1, Filter()).ids:
                    return graph.node(match)
    return None
