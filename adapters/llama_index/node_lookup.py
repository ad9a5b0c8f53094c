"""Find nodes of a graph by their ids in LlamaIndex, also those that were imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from llama_index.core.schema import BaseNode

from ...nodegraph import Node, NodeGraph
from ...nodegraph.hashing import digest
from ...retrievers import Filter
from ...retrievers.indexes import Exact
from .graph_text_node import read_record
from .imported_fields import LLAMA_INDEX_ID, id_in_llama_index


class ImportedChildren:
    """A transform that returns the imported children of each parent.

    Args:
        children: By the parent's id: of a document, or the one that a node had in LlamaIndex.
    """

    trans_node = True

    def __init__(self, children: Mapping[str, Sequence[Node]]) -> None:
        self.children = {parent: list(nodes) for parent, nodes in children.items()}

    def __repr__(self) -> str:
        return f"ImportedChildren({sum(map(len, self.children.values()))} nodes)"

    def __call__(self, node: Node) -> list[Node]:
        """Return the children of a node; none if it was not imported."""
        return self.children.get(id_in_llama_index(node), [])

    @property
    def version(self) -> str:
        """Hash of all children: the same rule wherever the same nodes are imported."""
        rows = [
            (parent, [(*_row(n), n.search_text and n.search_text.version) for n in nodes])
            for parent, nodes in sorted(self.children.items())
        ]
        return digest("import", repr(rows))


def _row(node: Node) -> tuple[Any, ...]:
    return node.text, node.content, node.start, sorted(node.own_metadata.items())


def imported_children(graph: NodeGraph, group: str) -> ImportedChildren | None:
    """Return the transform of an imported group, None for any other group, or none."""
    if group not in graph.groups or group == "ROOT":
        return None
    call = getattr(graph.ancestry(group)[-1].rule, "call", None)
    return call if isinstance(call, ImportedChildren) else None


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
        if imported_children(graph, group) is not None:
            index = by_original_id.open(graph, group)
            with graph.reading(group):
                index.sync()
                for match in index.search(node, 1, Filter()).ids:
                    return graph.node(match)
    return None
