"""What the tools may see of a graph: its documents, by id, path or file name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.search_text import file_name_of
from ..filters import Filters, parse_filters
from .tool_output import ToolError, span_of

_AT_ONCE = 200  # documents whose texts are in memory


class CorpusView:
    """Read documents and passages of a graph, as far as its conditions allow.

    Args:
        graph: The node graph.
        target: The group of its passages.
        filters: What a document's metadata has to meet. All others do not exist for the tools.
    """

    def __init__(self, graph: NodeGraph, target: str, filters: Filters | None = None) -> None:
        self.graph = graph
        self.target = target
        self._allowed = parse_filters(filters)

    def documents(self, folder: str = "", *, after: str | None = None) -> Iterator[Node]:
        """Yield the documents, or those below a folder. Few of their texts are in memory.

        Args:
            folder: A folder, or a document's id.
            after: The id of the document behind which they begin.

        Raises:
            ToolError: If there is no document ``after`` (any more).
        """
        existing = self.graph.reader.document_ids()
        if after is not None:
            if after not in existing or not self.allows(self.graph.node(after)):
                raise ToolError(f"there is no page {after!r:.80}; list from the beginning")
            existing = existing[existing.index(after) + 1 :]
        ids = (i for i in existing if is_below(i, folder))
        while subset := list(islice(ids, _AT_ONCE)):
            yield from (node for node in self.graph.reader.nodes_by_id(subset) if self.allows(node))

    def document(self, name: str) -> Node:
        """Return the document with this id, or the only one whose path ends so.

        Raises:
            ToolError: If there is none or there are several. It names those that are like it.
        """
        ids = self.graph.reader.document_ids()
        results = [name] if name in set(ids) else [i for i in ids if i.endswith(f"/{name}")]
        if not results:
            nodes = self.documents()
            results = [
                n.id for n in nodes if name in (n.metadata.get("title"), file_name_of(n.metadata))
            ]
        named = (self.graph.node(i) for i in results)
        matching = list(islice(filter(self.allows, named), 9))
        if len(matching) == 1:
            return matching[0]
        if matching:
            listed = ", ".join(repr(node.id) for node in matching[:8])
            raise ToolError(f"{name!r:.200} is several documents; give one of these: {listed}")
        existing = [node.id for node in islice(self.documents(), 2_000)]
        raise ToolError(
            f"there is no document {name!r:.200}; the nearest are {nearest_names(name, existing)}. "
            "outline lists all"
        )

    def passages(self, document: Node) -> Sequence[Node]:
        """Return the passages of a document, in its order."""
        results: Sequence[Node] = self.graph.find(self.target)(document)
        return results

    def passage_at(self, document: Node, at: int) -> Node:
        """Return the passage of a document in which a character stands, or the one before it."""
        passages = [node for node in self.passages(document) if span_of(node)]
        starts = [(span_of(node) or (0, 0))[0] for node in passages]
        if not passages:
            return document
        return passages[max(0, bisect_right(starts, at) - 1)]

    def allows(self, node: Node) -> bool:
        """Return whether a node may be seen: it meets the conditions."""
        return self._allowed.matches(node)


def is_below(document_id: str, folder: str) -> bool:
    """Return whether a document is in a folder, or is the document itself."""
    folder = folder.strip().rstrip("/")
    return not folder or document_id == folder or document_id.startswith(f"{folder}/")
