"""What the page shows of a graph, in parts that stay small however large the graph is."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.source_names import source_title

AT_ONCE = 50  # documents or nodes in one part of a list

_EXCERPT = 240  # characters of a node in a list

_REACH = 3_000  # characters around a passage

_MOST_REACH = 500_000

_FAILURES = 20


class CorpusPages:
    """Read a graph for the page; nothing is built for it.

    Args:
        graph: The node graph.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self.graph = graph

    def groups(self) -> list[dict[str, Any]]:
        """Return the groups with their parents and sizes."""
        return [
            {"name": one.name, "parent": one.parent, "size": one.size, "built": one.built}
            for one in self.graph.groups.values()
        ]

    def failures(self) -> dict[str, Any]:
        """Return how many documents were left out, and why the first of them."""
        failures = self.graph.failures
        first = [{"document": one.document, "reason": str(one.error)} for one in failures]
        return {"count": len(failures), "first": first[:_FAILURES]}

    def documents(self, skip: int = 0, like: str = "") -> dict[str, Any]:
        """Return some documents, of those whose id has a text in it."""
        ids = self.graph.reader.document_ids()
        if like := like.strip().casefold():
            ids = [i for i in ids if like in i.casefold()]
        nodes = self.graph.reader.nodes_by_id(ids[skip : skip + AT_ONCE])
        return {
            "total": len(ids),
            "skip": skip,
            "documents": [
                {"id": n.id, "title": title_of(n), "characters": len(n.text)} for n in nodes
            ],
        }

    def tree(self, node_id: str, group: str = "", skip: int = 0) -> dict[str, Any]:
        """Return a node and, by group, some of its children.

        Args:
            node_id: The node; a document's id is that of its node.
            group: The group of which children are returned; all if empty.
            skip: How many children are left out.

        Raises:
            LookupError: If there is no such node.
        """
        node = self.graph.node(node_id)
        below = self.graph.children(node)
        return {
            "node": self.summary(node),
            "metadata": {str(key): str(value) for key, value in node.metadata.items()},
            "groups": [
                {
                    "name": name,
                    "total": len(children),
                    "nodes": [self.summary(child) for child in islice(children, skip, None)][
                        :AT_ONCE
                    ],
                }
                for name, children in below.items()
                if children and group in ("", name)
            ],
        }

    def summary(self, node: Node) -> dict[str, Any]:
        """Return a node as a list shows it."""
        is_leaf = not any(one.parent == node.group and one.built for one in self._groups())
        return {
            "id": node.id,
            "group": node.group,
            "start": node.start,
            "end": node.end,
            "characters": len(node.text),
            "text": node.text[:_EXCERPT],
            "leaf": is_leaf,
        }

    def _groups(self) -> list[Any]:
        return list(self.graph.groups.values())

    def passage(self, node_id: str, reach: int = _REACH) -> dict[str, Any]:
        """Return a node's text with what stands around it in its document.

        Texts are cut here, as offsets count in characters, which a browser counts otherwise.

        Args:
            node_id: The node.
            reach: How many characters before and behind it.

        Raises:
            LookupError: If there is no such node.
        """
        reach = min(max(reach, 0), _MOST_REACH)
        node = self.graph.node(node_id)
        root = node.root
        text = root.text
        record = {
            "document": root.id,
            "title": title_of(root),
            "place": place_in(node),
            "group": node.group,
            "size": len(text),
        }
        if node.group == ROOT:
            rest = text[2 * reach :]
            parts = {"before": "", "text": text[: 2 * reach], "after": ""}
            return {**record, **parts, "more_before": 0, "more_after": len(rest)}
        if node.start is None or node.end is None:  # it was written, not cut out
            parts = {"before": "", "text": node.text, "after": ""}
            return {**record, **parts, "more_before": 0, "more_after": 0, "generated": True}
        begin, end = max(0, node.start - reach), min(len(text), node.end + reach)
        return {
            **record,
            "before": text[begin : node.start],
            "text": text[node.start : node.end],
            "after": text[node.end : end],
            "more_before": begin,
            "more_after": len(text) - end,
        }


def place_in(node: Node) -> str:
    """Return where a node stands in its document, which is named beside it already."""
    return node.place.removeprefix(title_of(node)).lstrip(", ")


def title_of(node: Node) -> str:
    """Return what a document is called for people: its title, or its id."""
    return source_title(node.metadata) or node.document_id or node.id
