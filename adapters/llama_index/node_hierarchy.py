"""Arrange LlamaIndex nodes by their parents, from the documents down."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from llama_index.core.schema import BaseNode, IndexNode, TextNode
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.document import Document, declared_search_text
from ...nodegraph.imported_groups import Family
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ..frameworks import is_start, own_metadata
from .graph_text_node import read_record
from .imported_fields import (
    IMPORT_FIELDS,
    LLAMA_INDEX_ID,
    LLAMA_INDEX_PROPERTIES,
    TEMPLATES,
)
from .nodes import from_text_node, hidden_fields, user_fields

GroupName = Callable[[BaseNode], str]
"""Returns the name of a node's group."""


class NodeHierarchy:
    """Hold LlamaIndex nodes by their ids, with their parents and documents.

    Args:
        nodes: The nodes, and documents among them, in any order.
        documents: The documents.

    Attributes:
        nodes: The nodes below the documents.
        documents: The documents; missing ones are rebuilt from their nodes.
        parents: The id of each node's parent, a node or a document.
        blank: Ids of nodes without a text, known after ``families``.

    Raises:
        TypeError: If something is no node, or has more than a text.
        ValueError: If a parent is missing, nodes are below each other in a circle, or two nodes
            differ under one id.
    """

    def __init__(self, nodes: Iterable[BaseNode], documents: Iterable[BaseNode]) -> None:
        self.nodes: dict[str, BaseNode] = {}
        self.documents: dict[str, Document] = {}
        self.blank: list[str] = []
        for document in documents:
            self._add(document, is_document=True)
        for node in nodes:
            self._add(node)
        self.parents: dict[str, str] = {}
        for node_id, parent in [(i, self._parent(node)) for i, node in self.nodes.items()]:
            if parent is None:
                self.documents[node_id] = document_of(self.nodes.pop(node_id))
            else:
                self.parents[node_id] = parent
        self._rebuild_documents()
        self._depths = self._node_depths()

    def _add(self, node: BaseNode, *, is_document: bool = False) -> None:
        _check(node)
        node_id = node.node_id
        exported_document = exported_group(node) == ROOT
        if is_document or exported_document or isinstance(node, LlamaIndexDocument):
            document = document_of(node)
            same = self.documents.setdefault(node_id, document) == document
        else:
            same = bool(self.nodes.setdefault(node_id, node) == node)
        if not same or (node_id in self.nodes and node_id in self.documents):
            raise ValueError(f"two different nodes have the id {node_id!r}; give one of them")

    def _parent(self, node: BaseNode) -> str | None:
        """Return the id of a node's parent; None if it has none."""
        parent, source = node.parent_node, node.source_node
        if parent is not None:
            if parent.node_id in self.nodes or parent.node_id in self.documents:
                return parent.node_id
            if source is None or parent.node_id != source.node_id:
                raise ValueError(
                    f"the parent {parent.node_id!r} of node {node.node_id!r} is not among the "
                    "nodes; give all of them, such as docstore.docs.values()"
                )
        if isinstance(node, IndexNode) and node.index_id != node.node_id:
            if node.index_id in self.nodes or node.index_id in self.documents:
                return node.index_id
            if source is None:
                raise ValueError(
                    f"node {node.node_id!r} stands for {node.index_id!r}, which is not among the "
                    "nodes; give that too"
                )
        return None if source is None or source.node_id == node.node_id else source.node_id

    def _rebuild_documents(self) -> None:
        """Make the missing documents of the nodes below them."""
        missing: dict[str, list[BaseNode]] = defaultdict(list)
        for node_id, parent in self.parents.items():
            if parent not in self.nodes and parent not in self.documents:
                missing[parent].append(self.nodes[node_id])
        for document_id, nodes in missing.items():
            first, *others = (user_fields(node.metadata) for node in nodes)
            different = {name for fields in others for name in own_metadata(first, fields)}
            shared = {name: deepcopy(first[name]) for name in first if name not in different}
            source = from_text_node(nodes[0])
            search_text = (
                source.inherited_search_text
                if isinstance(source, Node)
                else imported_search_text(nodes[0])
            )
            self.documents[document_id] = Document(
                joined_text(nodes), shared, id=document_id, search_text=search_text
            )

    def _node_depths(self) -> dict[str, int]:
        """Return how many levels each node is below its document."""
        order = TopologicalSorter({node_id: [parent] for node_id, parent in self.parents.items()})
        depths: dict[str, int] = {}
        try:
            for node_id in order.static_order():
                depths[node_id] = depths[self.parents[node_id]] + 1 if node_id in self.nodes else 0
        except CycleError as error:
            cycle = error.args[1]
            raise ValueError(
                f"node {cycle[0]!r} stands below itself: {' -> '.join(cycle)}"
            ) from None
        return depths

    def group_names(self, groups: Sequence[str] | GroupName | None) -> dict[str, str]:
        """Return the name of each node's group, from the first level down.

        Raises:
            ValueError: If there are not as many names as levels.
        """
        deepest = max(self._depths.values(), default=0)
        if isinstance(groups, str) or (isinstance(groups, Sequence) and len(groups) != deepest):
            count = 1 if isinstance(groups, str) else len(groups)
            raise ValueError(
                f"groups={groups!r} names {count} levels, and the nodes have {deepest}; name each "
                "of them: groups=[...]"
            )

        def name(node_id: str) -> str:
            node, depth = self.nodes[node_id], self._depths[node_id]
            if callable(groups):
                return groups(node)
            return groups[depth - 1] if groups else exported_group(node) or f"level {depth}"

        return {
            node_id: name(node_id) for node_id in sorted(self.nodes, key=self._depths.__getitem__)
        }

    def families(self, group_names: Mapping[str, str]) -> dict[str, list[Family]]:
        """Return the children of each parent as a graph has them, by group.

        Args:
            group_names: The name of each node's group, parents before children.
        """
        parents = {
            document_id: Node(
                document.text,
                start=0,
                inherited=document.metadata,
                inherited_search_text=document.search_text,
            )
            for document_id, document in self.documents.items()
        }
        by_group: dict[str, dict[str, dict[str, Node]]] = defaultdict(dict)
        for node_id, group in group_names.items():
            node, parent_id = self.nodes[node_id], self.parents[node_id]
            parent = parents[parent_id]
            child = child_of(node, parent)
            parents[node_id] = Node(
                child.text,
                start=getattr(node, "start_char_idx", None),
                inherited={**parent.inherited, **child.own_metadata},
                inherited_search_text=child.search_text or parent.inherited_search_text,
            )
            if not child.text.strip():
                self.blank.append(node_id)
            by_group[group].setdefault(parent_id, {})[node_id] = child
        return {
            group: [
                Family(parent, parents[parent].text, self._siblings(by_id))
                for parent, by_id in by_parent.items()
            ]
            for group, by_parent in by_group.items()
        }

    def _siblings(self, by_id: Mapping[str, Node]) -> list[Node]:
        """Return siblings in order, with starts only if these can be true of all of them."""
        siblings = [by_id[i] for i in ordered_ids([self.nodes[i] for i in by_id])]
        starts = [sibling.start for sibling in siblings if sibling.start is not None]
        if all(before < after for before, after in pairwise(starts)):
            return siblings
        # The parser gave several equal texts the start of the first one.
        return [replace(sibling, start=None) for sibling in siblings]


def _check(node: object) -> None:
    if not isinstance(node, BaseNode):
        raise TypeError(
            f"import_nodes takes LlamaIndex nodes, not {node!r:.80}; of a NodeWithScore give the "
            ".node"
        )
    media = [getattr(node, f"{kind}_resource", None) for kind in ("image", "audio", "video")]
    if type(node) not in (TextNode, IndexNode, LlamaIndexDocument) or any(media):
        raise TypeError(
            f"import_nodes takes nodes that are texts (TextNode, IndexNode, Document), and "
            f"{node.node_id!r} is a {type(node).__name__} with more; leave it out"
        )


def child_of(node: BaseNode, parent: Node) -> Node:
    """Make the node of a graph that stands for a LlamaIndex node.

    Args:
        node: The LlamaIndex node.
        parent: Its parent's text, start in the document, and all metadata (as ``inherited``).
    """
    source = from_text_node(node)
    start = getattr(node, "start_char_idx", None)
    # It counts in the document or, below the first level, in the parent.
    starts = () if start is None or not source.text else (start - (parent.start or 0), start)
    offset = next((start for start in starts if is_start(start, source.text, parent.text)), None)
    if isinstance(source, Node):  # an exported node
        own = dict(source.own_metadata)
        search_text = source.search_text
        return Node(source.text, own, source.content, start=offset, search_text=search_text)
    search_text = imported_search_text(node, parent.inherited)
    if search_text == parent.inherited_search_text:
        search_text = None
    metadata = _imported_metadata(node, parent.inherited)
    return Node(source.text, metadata, start=offset, search_text=search_text)


def imported_search_text(node: BaseNode, inherited: Iterable[str] = ()) -> SearchText:
    """Return what LlamaIndex embeds of a node: of the fields that it inherits here only its own."""
    fields = user_fields(node.metadata)
    excluded = [
        *IMPORT_FIELDS,
        *node.excluded_embed_metadata_keys,
        *(name for name in inherited if name not in fields),
    ]
    return replace(declared_search_text(node) or SearchText(None), excluded=tuple(excluded))


def _imported_metadata(node: BaseNode, inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a node does not inherit, its id, and its properties."""
    fields = user_fields(node.metadata)
    own = deepcopy(own_metadata(fields, inherited))
    properties = _properties(node)
    if list(fields) != list(user_fields({**inherited, **own})):
        properties["fields"] = list(fields)
    own[LLAMA_INDEX_ID] = node.node_id
    if properties or LLAMA_INDEX_PROPERTIES in inherited:
        own[LLAMA_INDEX_PROPERTIES] = json.dumps(properties, ensure_ascii=False)
    return own


def document_of(node: BaseNode) -> Document:
    """Make the document of a graph that stands for a LlamaIndex node."""
    source = from_text_node(node)
    if isinstance(source, Node):
        search_text = source.search_text
        return Document(source.text, source.own_metadata, id=source.id, search_text=search_text)
    metadata = deepcopy(user_fields(node.metadata))
    if properties := _properties(node):
        metadata[LLAMA_INDEX_PROPERTIES] = json.dumps(properties, ensure_ascii=False)
    search_text = imported_search_text(node)
    return Document(source.text, metadata, id=node.node_id, search_text=search_text)


def exported_group(node: BaseNode) -> str | None:
    """Return the group that a node was exported from, None if it was not."""
    record = read_record(node)
    return None if record is None else str(record["group"])


def _properties(node: BaseNode) -> dict[str, Any]:
    """Return what makes a node differ from one that is exported from a graph."""
    hidden = hidden_fields(node.metadata)
    excluded = {"embed": node.excluded_embed_metadata_keys, "llm": node.excluded_llm_metadata_keys}
    properties = {kind: list(names) for kind, names in excluded.items() if names != hidden}
    values = {name: getattr(node, name, None) for name in TEMPLATES}
    defaults = {name: (None, getattr(_DEFAULT_NODE, name)) for name in TEMPLATES}
    changed = {name: value for name, value in values.items() if value not in defaults[name]}
    return {**properties, **changed}


_DEFAULT_NODE = TextNode(text="")


def joined_text(siblings: Sequence[BaseNode]) -> str:
    """Return the text that siblings are parts of, as far as their starts allow."""
    by_id = {node.node_id: node for node in siblings}
    nodes = [by_id[node_id] for node_id in ordered_ids(siblings)]
    parts: list[str] = []
    previous, previous_start, length = "", -1, 0
    for node in nodes:
        text, start = node.get_content(), getattr(node, "start_char_idx", None)
        overlap = "" if start is None else previous[start - previous_start :]
        # Starts that do not increase are wrong: the parser confused equal texts.
        if start is None or start <= previous_start or not text.startswith(overlap):
            return "\n\n".join(node.get_content() for node in nodes)
        parts.append(" " * (start - length) + text[len(overlap) :])
        previous, previous_start, length = text, start, start + len(text)
    return "".join(parts)


def ordered_ids(nodes: Sequence[BaseNode]) -> list[str]:
    """Return siblings' ids in the order of NEXT and PREVIOUS, or of their starts, or as given."""
    ids = [node.node_id for node in nodes]
    existing = set(ids)
    next_id = {n.node_id: n.next_node.node_id for n in nodes if n.next_node is not None}
    next_id.update({n.prev_node.node_id: n.node_id for n in nodes if n.prev_node is not None})
    if not any(i in next_id and next_id[i] in existing for i in ids):
        starts = {node.node_id: getattr(node, "start_char_idx", None) for node in nodes}
        if None not in starts.values() and len(set(starts.values())) == len(ids):
            ids.sort(key=lambda node_id: starts[node_id] or 0)
        return ids
    followers = {after for before, after in next_id.items() if before in existing}
    ordered: dict[str, None] = {}
    for node_id in [*(i for i in ids if i not in followers), *ids]:
        current = node_id
        while current in existing and current not in ordered:
            ordered[current] = None
            current = next_id.get(current, "")
    return list(ordered)
