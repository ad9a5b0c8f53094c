"""Find related nodes in other groups, and the positions of nodes in their files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import StoreError
from .locations import Layout, Location, locations_in
from .node import MEMBER, ROOT, Node
from .readers.text import PAGE_BREAK
from .source_names import file_name_of, headings_of, source_title
from .splitters.headings import headings_in, sections_of
from .storage.columns import DAMAGED

if TYPE_CHECKING:
    from .graph import NodeGraph


def find(graph: NodeGraph, group: str, items: Iterable[Any]) -> list[Node]:
    """Return all nodes in a group that are related to the given nodes, in document order.

    Raises:
        LookupError: If the group is unknown, or a node was removed or changed.
        TypeError: If an item is neither a node nor a search result.
        ValueError: If a node belongs to another graph.
    """
    nodes: dict[str, Node] = {}
    with graph.reader.reading(group):
        path = path_to(graph, group)
        for item in items:
            node = as_node(item)
            if node.graph is not graph:
                raise ValueError(f"{node!r} is not a node of this graph")
            start = graph.node(node.id)
            nodes.update((relative.id, relative) for relative in kin(graph, path, start))
    return sorted(nodes.values(), key=lambda node: node.order)


def as_node(item: Any) -> Node:
    """Return the node of a search result. A node is returned unchanged.

    Raises:
        TypeError: If the item is neither a search result nor a node.
    """
    node = getattr(item, "node", item)
    if not isinstance(node, Node):
        raise TypeError(f"items must be nodes or retrieval results, got {item!r:.80}")
    return node


def path_to(graph: NodeGraph, group: str) -> list[str]:
    """Return the names of the groups from ``ROOT`` down to a group."""
    return [ROOT, *(ancestor.name for ancestor in graph.reader.lineage(group))]


def kin(graph: NodeGraph, path: list[str], node: Node) -> list[Node]:
    """Return all nodes in a group that are related to one node.

    The function goes up to the nearest ancestor group that both groups have in common, and then
    down to the group. If a node was derived from a whole group, it goes up to the nodes that the
    node is linked to. For groups whose nodes are matched by position (sections, pages, tables and
    symbols), nodes from other branches are included only if they overlap the node.

    Args:
        graph: The graph, whose lock is held with ``reading``.
        path: The names of the groups from ``ROOT`` to the group, as returned by ``path_to``.
        node: The node whose relatives are returned.
    """
    ancestor = node
    seen: set[str] = set()
    while ancestor.group not in path:
        if ancestor.id in seen:  # This can happen only in a forged or damaged file.
            raise StoreError(f"node {node.id!r} is its own ancestor: {DAMAGED}")
        seen.add(ancestor.id)
        if ancestor.parent_id is None:
            unique: dict[str, Node] = {}
            for member in graph.linked(ancestor, MEMBER):
                unique |= {relative.id: relative for relative in kin(graph, path, member)}
            return sorted(unique.values(), key=lambda relative: relative.order)
        ancestor = graph.node(ancestor.parent_id)
    nodes = [ancestor]
    for name in path[path.index(ancestor.group) + 1 :]:
        children: dict[str, Node] = {}
        for parent in nodes:
            children |= {child.id: child for child in graph.reader.children_in(name, parent)}
        nodes = list(children.values())
    if nodes and nodes[0].group != ancestor.group and ancestor is not node:
        return _at_the_place_of(graph, node, nodes)
    return nodes


def _at_the_place_of(graph: NodeGraph, node: Node, kin: list[Node]) -> list[Node]:
    """Return the related nodes that overlap a node, if the group is matched by position.

    For other groups, all related nodes are returned.
    """
    if graph.reader.lineage(kin[0].group)[-1].by_span:
        return [other for other in kin if _may_overlap(node, other)]
    return kin


def _may_overlap(one: Node, other: Node) -> bool:
    """Return whether two nodes overlap, or whether the position of one of them is unknown."""
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return True
    return one.start < other.end and other.start < one.end


Outline: TypeAlias = tuple[list[int], list[tuple[str, ...]]]
"""The start offsets of the headings in a text, each with the path of headings that leads to it."""

OutlineOf: TypeAlias = Callable[[str, str], "Outline | None"]
"""A function that returns the outline of a document, given its id and file name.

It returns None if the document was removed.
"""


def place_of(node: Node, outline_of: OutlineOf) -> str:
    """Describe the position of a node in its file, as in ``report.pdf, page 12, 3.2 Results``.

    For text files, the line is given instead of the page: ``notes.md, line 12, Results``. For
    source code, the function, class or method is given instead of the heading.
    """
    metadata = node.metadata
    name = file_name_of(metadata) or source_title(metadata)
    pages = pages_of(node)
    if pages is None:
        label = _foreign_page(metadata) or _line_label(node, file_name_of(metadata) or "")
    else:
        label = page_label(metadata, *pages)
    parts = [name, label]
    if node.parent_id is not None:
        parts += headings_at(node, outline_of)[-1:]
    return ", ".join([" ".join(part.split()) for part in parts if part])


def headings_at(node: Node, outline_of: OutlineOf) -> list[str]:
    """Return the headings above a node, outermost first.

    For source code, the name of the enclosing function, class or method is returned.
    """
    if symbol := node.metadata.get("symbol"):
        return [str(symbol)]
    own = headings_of(node.own_metadata)
    headings = headings_of(node.metadata)
    if own or node.start is None or node.parent_id is None:
        return own or headings
    from .readers.formats import symbol_finder

    name = file_name_of(node.metadata) or source_title(node.metadata)
    if symbols_in := symbol_finder(name):
        try:
            symbols = symbols_in(_document_text(node) or "", name)
        except ImportError:  # If no grammar is installed, the name of the symbol is unknown.
            return []
        enclosing = [symbol for symbol in symbols if symbol.start <= node.start < symbol.end]
        return [symbol.name for symbol in enclosing[-1:]]
    starts, paths = outline_of(node.document_id, name) or ([], [])
    above = bisect_right(starts, node.start)
    if not above:
        return headings
    path = paths[above - 1]
    return [*(heading for heading in headings if heading not in path), *path]


def page_label(metadata: Mapping[str, Any], first: int, last: int) -> str:
    """Describe a range of pages, using the word that fits the file: ``page 12``, ``slides 3-4``."""
    unit = str(metadata.get("page_unit", "page"))
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"


def pages_of(node: Node) -> tuple[int, int] | None:
    """Return the first and the last page that a node covers. Pages are numbered from 1.

    Return None if the file has no pages, or if the node is a document, has no offsets or was
    removed.
    """
    if "page_unit" not in node.metadata or node.parent_id is None:
        return None
    if node.start is None or node.end is None:
        return None
    text = _document_text(node)
    return None if text is None else pages_between(text, node.start, node.end)


def pages_between(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the first and the last page of a part of a document's text.

    Pages are numbered from 1.
    """
    first = text.count(PAGE_BREAK, 0, start) + 1
    return first, first + text.count(PAGE_BREAK, start, stop)


def locations_of(node: Node, layout: Layout | None) -> list[Location]:
    """Return the pages and rectangles that a node covers. See ``Node.locations``.

    Args:
        node: The node.
        layout: The layout of its document, or None if the file reader did not provide a layout.
    """
    text = _document_text(node)
    if text is None or node.start is None or node.end is None:
        return []
    page_break = PAGE_BREAK if "page_unit" in node.metadata else None
    return locations_in(text, node.start, node.end, layout, page_break)


def _foreign_page(metadata: Mapping[str, Any]) -> str:
    """Return the page number that a LangChain or LlamaIndex loader stored, as text."""
    label = metadata.get("page_label")
    if label is None and "page_unit" not in metadata and "file_path" not in metadata:
        label = metadata.get("page", "")
        # LangChain's loaders count pages from 0.
        if isinstance(label, int) and "source" in metadata:
            label += 1
    return f"page {label}" if isinstance(label, int | str) and label != "" else ""


def _line_label(node: Node, file_name: str) -> str:
    """Return the line number of a node's first word in a text file.

    The result is empty if the file has no lines. Line numbers are available only for files that
    were read as a single document, whose id is the path of the file.
    """
    from .readers.formats import has_lines

    if node.start is None or not file_name or node.document_id.rpartition("/")[2] != file_name:
        return ""
    if node.parent_id is None or not has_lines(file_name):
        return ""
    text = _document_text(node)
    if text is None:
        return ""
    first_word = node.start + len(node.text) - len(node.text.lstrip())
    number = text.count("\n", 0, first_word) + 1
    return f"line {number}"


def read_outline(graph: NodeGraph, state: int, document_id: str, name: str) -> Outline | None:
    """Read the headings of a document. The caller caches the result until the graph changes."""
    text = _text_of(graph, document_id)
    if text is None:
        return None
    _, *sections = sections_of(text, headings_in(text, name))
    return [section.start for section in sections], [section.path for section in sections]


def _document_text(node: Node) -> str | None:
    return None if node.graph is None else _text_of(node.graph, node.document_id)


def _text_of(graph: NodeGraph, document_id: str) -> str | None:
    documents = graph.reader.existing_nodes([document_id])
    return documents[0].text if documents else None
