"""Import hierarchies of LlamaIndex nodes into a graph, and export groups, results and JSON."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from llama_index.core.embeddings import MultiModalEmbedding
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.document import Document, declared_search_text
from ...nodegraph.graph import NodeGraph
from ...nodegraph.graph_reader import Family
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ...retrievers.filters import Filter
from ...retrievers.indexes.exact_index import Exact
from ..frameworks import is_start, own_metadata
from .nodes import (
    IMPORT_FIELDS,
    LLAMA_INDEX_ID,
    LLAMA_INDEX_PROPERTIES,
    NODE_CLASSES,
    TEMPLATES,
    NodeWithEvidence,
    all_relationships,
    fixed_relationships,
    from_text_node,
    hidden_fields,
    id_in_llama_index,
    link_neighbours,
    read_record,
    related,
    to_text_node,
    user_fields,
)

logger = logging.getLogger(__name__)

GroupName = Callable[[BaseNode], str]
"""Returns the name of a node's group."""


@dataclass(frozen=True, slots=True)
class StoredNodes:
    """The imported nodes of some documents that a graph has already.

    Attributes:
        nodes: The nodes by their ids in LlamaIndex.
        groups: The group of each node.
        texts: The searched text of each node.
        parents: The id of each node's parent.
        documents: The documents, without those that were rebuilt from their nodes.
        document_ids: The ids of all these documents.
        kept: The ids of the nodes that no given node replaces.
    """

    nodes: dict[str, BaseNode] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    document_ids: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def merged(self, nodes: Iterable[BaseNode]) -> list[BaseNode]:
        """Return the stored nodes and the given ones, which replace those with their ids."""
        given = [*nodes]
        by_id = {node.node_id: node for node in given}
        self.kept.update(self.nodes.keys() - by_id.keys())
        return [*(by_id.get(i, node) for i, node in self.nodes.items()), *given]


def stored_nodes(
    graph: NodeGraph,
    nodes: Sequence[BaseNode],
    *,
    is_flat: bool,
    documents: Sequence[BaseNode] = (),
    others: Collection[str] = (),
    without: Collection[str] = (),
) -> StoredNodes:
    """Return what a graph has of the documents that nodes are of.

    Args:
        graph: The node graph.
        nodes: The nodes that are imported now.
        is_flat: Whether the flat groups are read, else those of hierarchies.
        documents: The documents that are imported now. One whose text differs replaces the stored
            document with its nodes.
        others: Groups that are not read.
        without: Ids of nodes to leave out.
    """
    imported = [name for name in graph.groups if name in graph.imports]
    stored = StoredNodes()
    if not imported:
        return stored
    sources = [node.source_node.node_id for node in nodes if node.source_node is not None]
    ids = dict.fromkeys([*sources, *(node.node_id for node in nodes), *without])
    given = {document.node_id: document.get_content() for document in documents}
    with graph.reader.reading(*imported):
        for root in _roots(graph, imported, [*ids]):
            if given.get(root.id, root.text) != root.text:
                continue
            found = [node for name in imported for node in graph.find(name)(root)]
            here = [n for n in found if (n.group in _FLAT) == is_flat and n.group not in others]
            document = Document(root.text, root.own_metadata, id=root.id)
            text_nodes = {id_in_llama_index(node): _restored(node) for node in here}
            hierarchy = NodeHierarchy(text_nodes.values(), is_flat=is_flat)
            if len(here) < len(found) or not _is_rebuilt(document, text_nodes.values(), is_flat):
                stored.documents[root.id] = document
            if here:
                stored.document_ids.append(root.id)
            stored.parents.update(hierarchy.parents)
            stored.groups.update((id_in_llama_index(node), node.group) for node in here)
            stored.texts.update(zip(text_nodes, graph.reader.searched_texts(here), strict=True))
            stored.nodes.update((i, n) for i, n in text_nodes.items() if i not in without)
    return stored


def _roots(graph: NodeGraph, groups: Iterable[str], ids: Sequence[str]) -> list[Node]:
    """Return the documents with some ids in LlamaIndex, and those of nodes with these ids."""
    found = graph.reader.existing_nodes(ids)
    for group in groups:
        index = Exact(LLAMA_INDEX_ID, normalize=False).open(graph, group)
        index.sync()
        matches = [match for i in ids for match in index.search(i, 1, Filter()).ids]
        found += graph.reader.existing_nodes(matches)
    document_ids = dict.fromkeys(node.document_id or node.id for node in found)
    return graph.reader.existing_nodes([*document_ids])


def _restored(node: Node) -> BaseNode:
    """Return an imported node as it was given, with no record of the graph."""
    text_node = to_text_node(node, all_relationships(node))
    text_node.relationships[NodeRelationship.SOURCE] = related(node.document_id, ROOT)
    return text_node


def _is_rebuilt(document: Document, nodes: Iterable[BaseNode], is_flat: bool) -> bool:
    """Return whether a document is the one that is made of its nodes if none is given."""
    without_starts = [node.model_copy() for node in nodes]
    for node in without_starts:
        if isinstance(node, TextNode):
            node.start_char_idx = None  # the graph knows positions also of nodes without them
    for variant in (nodes, without_starts):
        made = NodeHierarchy(variant, is_flat=is_flat).documents.get(document.id)
        if made is not None and (made.text, made.metadata) == (document.text, document.metadata):
            return True
    return False


class NodeHierarchy:
    """Hold LlamaIndex nodes by their ids, with their parents and documents.

    Args:
        nodes: The nodes, and documents among them, in any order.
        documents: The documents.
        is_flat: Whether all nodes stand side by side below their documents, whatever they refer
            to. Then a node without a document has its own, and nothing has to be complete.
        stored: What the graph already has of the nodes' documents. Given nodes replace stored
            nodes with their ids.

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

    def __init__(
        self,
        nodes: Iterable[BaseNode],
        documents: Iterable[BaseNode] = (),
        *,
        is_flat: bool = False,
        stored: StoredNodes | None = None,
    ) -> None:
        self.is_flat = is_flat
        self.nodes: dict[str, BaseNode] = {}
        self.documents: dict[str, Document] = {}
        self.blank: list[str] = []
        self.stored = stored = stored or StoredNodes()
        for document in documents:
            self._add(document, is_document=True)
        for node in stored.merged(nodes):
            self._add(node)
        self.documents = {**stored.documents, **self.documents}
        self.parents: dict[str, str] = {}
        self._related: dict[str, dict[str, Any]] = {}
        if is_flat:
            self._stand_below_documents()
            self._depths = dict.fromkeys(self.nodes, 1)
            return
        for node_id, parent in [(i, self._parent(node)) for i, node in self.nodes.items()]:
            if parent is None:
                self.documents[node_id] = document_of(self.nodes.pop(node_id))
            else:
                self.parents[node_id] = parent
        self._rebuild_documents(self.parents)
        self._depths = self._node_depths()

    def _add(self, node: BaseNode, *, is_document: bool = False) -> None:
        _check(node)
        node_id = node.node_id
        exported_document = exported_group(node) == ROOT
        is_document |= isinstance(node, LlamaIndexDocument) and not self.is_flat
        if is_document or exported_document:
            document = document_of(node)
            same = self.documents.setdefault(node_id, document) == document
        else:
            same = bool(self.nodes.setdefault(node_id, node) == node)
        if not same or (node_id in self.nodes and node_id in self.documents):
            raise ValueError(f"two different nodes have the id {node_id!r}; give one of them")

    def _parent(self, node: BaseNode) -> str | None:
        """Return the id of a node's parent. None if it has none."""
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

    def _stand_below_documents(self) -> None:
        """Put each node below its document, and record the relationships that are lost by it."""
        above = {node_id: self._above(node) for node_id, node in self.nodes.items()}
        for node_id, node in self.nodes.items():
            source, way = node.source_node, [node_id]
            while source is None and above[way[-1]] not in (None, *way):
                way.append(str(above[way[-1]]))
                source = self.nodes[way[-1]].source_node
            self.parents[node_id] = way[-1] if source is None else source.node_id
        for document_id in self.nodes.keys() & self.parents.values():
            self.documents[document_id] = document_of(self.nodes[document_id])
            if isinstance(self.nodes[document_id], LlamaIndexDocument):
                if document_id in self.stored.nodes:
                    continue  # it is a result already
                below = [i for i, parent in self.parents.items() if parent == document_id]
                if len(below) > 1:  # it is found by its nodes
                    del self.nodes[document_id], self.parents[document_id]
        highest = {i: parent for i, parent in self.parents.items() if above[i] is None}
        self._rebuild_documents(highest)
        self._rebuild_documents(self.parents)
        ids = dict.fromkeys([*self.parents.values(), *self.stored.documents])
        self.documents = {i: self.documents[i] for i in ids}
        siblings: dict[str, list[BaseNode]] = defaultdict(list)
        for node_id, parent in self.parents.items():
            siblings[parent].append(self.nodes[node_id])
        for nodes in siblings.values():
            if not _is_chain(nodes):
                self._related.update((node.node_id, _related_ids(node)) for node in nodes)

    def _above(self, node: BaseNode) -> str | None:
        """Return the id of the given node that a node is a part of, or stands for."""
        parent = node.parent_node
        ids = [] if parent is None else [parent.node_id]
        ids += [node.index_id] if isinstance(node, IndexNode) else []
        return next((i for i in ids if i in self.nodes and i != node.node_id), None)

    def _rebuild_documents(self, parents: Mapping[str, str]) -> None:
        """Make the missing documents of the nodes below them."""
        missing: dict[str, list[BaseNode]] = defaultdict(list)
        for node_id, parent in parents.items():
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

    def new_documents(self) -> list[Document]:
        """Return the documents to add to the graph, without those that it has already."""
        stored = self.stored.documents
        return [document for i, document in self.documents.items() if document is not stored.get(i)]

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
        stored = self.stored.groups
        given = [node_id for node_id in self.nodes if node_id not in self.stored.kept]
        deepest = max(map(self._depths.__getitem__, given), default=0)
        if isinstance(groups, str) or (isinstance(groups, Sequence) and len(groups) != deepest):
            count = 1 if isinstance(groups, str) else len(groups)
            raise ValueError(
                f"groups={groups!r} names {count} levels, and the nodes have {deepest}; name each "
                "of them: groups=[...]"
            )

        def name(node_id: str) -> str:
            node, depth = self.nodes[node_id], self._depths[node_id]
            if node_id in self.stored.kept:
                return stored[node_id]
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
            child = child_of(node, parent, self._related.get(node_id, {}))
            parents[node_id] = Node(
                child.text,
                start=getattr(node, "start_char_idx", None),
                inherited={**parent.inherited, **child.own_metadata},
                inherited_search_text=child.search_text or parent.inherited_search_text,
            )
            if not child.text.strip():
                self.blank.append(node_id)
            by_group[group].setdefault(parent_id, {})[node_id] = child
        for node_id, parent_id in self.stored.parents.items():  # its child may have moved
            if parent_id in parents:
                by_group[self.stored.groups[node_id]].setdefault(parent_id, {})
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
    if type(node) not in NODE_CLASSES.values():
        raise TypeError(
            f"import_nodes takes nodes of LlamaIndex's classes ({', '.join(NODE_CLASSES)}), and "
            f"{node.node_id!r} is a {type(node).__name__}; leave it out"
        )


def _is_chain(nodes: Sequence[BaseNode]) -> bool:
    """Return whether a graph derives the relationships of a document's nodes by itself."""
    by_id = {node.node_id: node for node in nodes}
    ordered = [by_id[i] for i in ordered_ids(nodes)]
    starts = [getattr(node, "start_char_idx", None) for node in ordered]
    seen = [start for start in starts if start is not None]
    if any(before >= after for before, after in pairwise(seen)):
        return False
    chain = [None, *(node.node_id for node in ordered), None]
    for at, node in enumerate(ordered):
        related_ids = _related_ids(node)
        allowed = {"PREVIOUS": chain[at], "NEXT": chain[at + 2]}
        if any(allowed.get(name) != value for name, value in related_ids["related"].items()):
            return False
    return True


def _related_ids(node: BaseNode) -> dict[str, Any]:
    """Return a node's relationships but its SOURCE, and its place, as properties."""
    source = node.source_node
    related_ids = {
        NodeRelationship(name).name: [info.node_id for info in value]
        if isinstance(value, list)
        else value.node_id
        for name, value in node.relationships.items()
        if name != NodeRelationship.SOURCE
    }
    if source is not None and related_ids.get("PARENT") == source.node_id:
        del related_ids["PARENT"]
    span = [getattr(node, f"{end}_char_idx", None) for end in ("start", "end")]
    return {"related": related_ids, **({} if span[0] is None else {"span": span})}


def child_of(node: BaseNode, parent: Node, properties: Mapping[str, Any] | None = None) -> Node:
    """Make the node of a graph that stands for a LlamaIndex node.

    Args:
        node: The LlamaIndex node.
        parent: Its parent's text, start in the document, and all metadata (as ``inherited``).
        properties: More that makes it differ from an exported node.
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
    metadata = _imported_metadata(node, parent.inherited, properties or {})
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


def _imported_metadata(
    node: BaseNode, inherited: Mapping[str, Any], more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields that a node does not inherit, its id, and its properties."""
    fields = user_fields(node.metadata)
    own = deepcopy(own_metadata(fields, inherited))
    properties = {**_properties(node), **more}
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
        return Document(source.text, source.own_metadata, id=node.node_id, search_text=search_text)
    metadata = deepcopy(user_fields(node.metadata))
    if properties := _properties(node):
        metadata[LLAMA_INDEX_PROPERTIES] = json.dumps(properties, ensure_ascii=False)
    search_text = imported_search_text(node)
    return Document(source.text, metadata, id=node.node_id, search_text=search_text)


def _is_document(node: BaseNode) -> bool:
    """Return whether an import of levels takes a node for a document."""
    has_parent = node.source_node is not None or node.parent_node is not None
    return isinstance(node, LlamaIndexDocument) or exported_group(node) == ROOT or not has_parent


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
    return {**properties, **changed, **_other_class(node)}


def _other_class(node: BaseNode) -> dict[str, Any]:
    """Return the class of a node that is more than a text, and the fields that the text lacks."""
    seen = {*TextNode.model_fields, "class_name", "obj", "text_resource"}
    fields = node.model_dump(exclude=seen, exclude_none=True)
    fields = {name: value for name, value in fields.items() if name not in seen}
    if not fields and type(node) in (TextNode, LlamaIndexDocument):
        return {}
    _add_media(fields, node)
    # An ImageDocument is made of a path or an address, which it looks at.
    kind = LlamaIndexDocument if isinstance(node, LlamaIndexDocument) else type(node)
    return {"class": kind.class_name(), "more": json.loads(json.dumps(fields, default=str))}


_MEDIA = ("image_resource", "audio_resource", "video_resource")


def _add_media(fields: dict[str, Any], node: BaseNode) -> None:
    """Add the bytes of a node's media to its dumped fields; LlamaIndex leaves them out."""
    for name in _MEDIA:
        if data := getattr(getattr(node, name, None), "data", None):
            fields[name]["data"] = data.decode()


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
    """Return siblings' ids by their starts, unless NEXT and PREVIOUS differ; else as given."""
    ids = [node.node_id for node in nodes]
    existing = set(ids)
    next_id = {n.node_id: n.next_node.node_id for n in nodes if n.next_node is not None}
    next_id.update({n.prev_node.node_id: n.node_id for n in nodes if n.prev_node is not None})
    links = [(before, after) for before, after in next_id.items() if {before, after} <= existing]
    starts = {node.node_id: getattr(node, "start_char_idx", None) for node in nodes}
    if None not in starts.values() and len(set(starts.values())) == len(ids):
        positions = {node_id: start or 0 for node_id, start in starts.items()}
        if all(positions[before] < positions[after] for before, after in links):
            return sorted(ids, key=positions.__getitem__)
    if not links:
        return ids
    followers = {after for before, after in next_id.items() if before in existing}
    ordered: dict[str, None] = {}
    for node_id in [*(i for i in ids if i not in followers), *ids]:
        current = node_id
        while current in existing and current not in ordered:
            ordered[current] = None
            current = next_id.get(current, "")
    return list(ordered)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Hold the outcome of an import.

    Attributes:
        documents: Ids of the documents, in the graph and in LlamaIndex.
        groups: Names of the groups, from the first below the documents down.
        blank: Ids of nodes without a text, which a graph leaves out.
        vectors: How many nodes' vectors were taken over.
    """

    documents: tuple[str, ...]
    groups: tuple[str, ...]
    blank: tuple[str, ...] = ()
    vectors: int = 0


def import_nodes(
    graph: NodeGraph,
    nodes: Iterable[BaseNode],
    *,
    documents: Iterable[BaseNode] = (),
    groups: Sequence[str] | GroupName | None = None,
    embed_key: str | None = None,
) -> ImportResult:
    """Make documents and groups of LlamaIndex nodes, with their relationships.

    Takes the nodes of ``HierarchicalNodeParser``, ``SentenceWindowNodeParser`` or any other
    parser, all nodes of a docstore (``docstore.docs.values()``), ``IndexNode`` objects with the
    nodes they refer to, or those of ``export_nodes``. Each level becomes a group, which can be
    searched, lifted and split further like any other. Results and ``export_nodes`` restore the
    original nodes: ids, texts, metadata, templates, relationships. A node's vector
    (``embedding``) is taken over if ``embed_key`` names the graph's embedding that made it, and if
    the text that LlamaIndex embedded is the one that is searched here.

    The parent of a node is its PARENT, else the node of its ``index_id``, else its SOURCE
    document. A missing SOURCE document is rebuilt from its nodes: each at its ``start_char_idx``
    if the texts agree, with the metadata that all have. A node without any of these is a document
    itself. Positions of nodes in their document are checked, and searched for if they are wrong.

    Importing more, or again, adds to the groups: the other nodes of a document stay, and a node
    replaces the one with its id. A given document whose text has changed is replaced with its
    nodes.
    Documents that are added to the graph in other ways have no nodes in these groups, nor has a
    document whose text is changed in other ways. The groups are part of the graph: one that is
    opened from its file has them, and the original nodes are not needed again.

    Args:
        graph: The node graph.
        nodes: The nodes, and documents among them, in any order.
        documents: The documents that the nodes were made from.
        groups: Names by level, the first below the documents first; or a function from a node to
            its group's name. By default the group noted by ``export_nodes``, else ``"level 1"``
            and so on.
        embed_key: The key of the graph's embedding whose model made the nodes' vectors,
            ``"default"`` for ``NodeGraph(embed=model)``. None to embed the nodes again when needed.

    Raises:
        TypeError: If something is no node, or of a class of yours.
        ValueError: If a parent is missing, nodes are below each other in a circle, two nodes
            differ under one id, the names don't fit the levels, or a group exists with another
            rule.
        LookupError: If the graph has no embedding of that key.
        EmbeddingError: If the vectors can't be of that model.

    Example:
        >>> from llama_index.core.node_parser import SentenceWindowNodeParser
        >>> from llama_index.core.schema import Document
        >>> parser = SentenceWindowNodeParser.from_defaults(
        ...     sentence_splitter=lambda text: text.split("|"), window_size=1
        ... )
        >>> document = Document(text="One.|Two.|Three.", id_="numbers")
        >>> graph = NodeGraph()
        >>> result = import_nodes(
        ...     graph, parser.get_nodes_from_documents([document]), documents=[document],
        ...     groups=["sentence"],
        ... )
        >>> result.documents, result.groups
        (('numbers',), ('sentence',))
        >>> [(node.text, node.start, node.metadata["window"]) for node in graph.nodes("sentence")]
        [('One.', 0, 'One. Two.'), ('Two.', 5, 'One. Two. Three.'), ('Three.', 10, 'Two. Three.')]
    """
    nodes, documents = [*nodes], [*documents]
    with graph.imports.exclusively():
        return _import_levels(graph, nodes, documents, groups, embed_key)


def _import_levels(
    graph: NodeGraph,
    nodes: Sequence[BaseNode],
    documents: Sequence[BaseNode],
    groups: Sequence[str] | GroupName | None,
    embed_key: str | None,
) -> ImportResult:
    for node in (*nodes, *documents):
        _check(node)
    given = [*documents, *(node for node in nodes if _is_document(node))]
    others: set[str] = set()  # groups that have given nodes under another name
    while True:
        stored = stored_nodes(graph, nodes, is_flat=False, documents=given, others=others)
        hierarchy = NodeHierarchy(nodes, documents, stored=stored)
        names = hierarchy.group_names(groups)
        known = {stored.groups[i] for i in names if stored.groups.get(i, names[i]) != names[i]}
        if not known:
            break
        others |= known
    families = hierarchy.families(names)
    parents = _parent_groups(hierarchy, names)
    for name in parents:
        if name in graph.groups and name not in graph.imports:
            raise ValueError(
                f"the group {name!r} is there with another rule; name the groups of the import "
                "otherwise: groups=[...]"
            )
    if embed_key is not None:
        embed_key = graph.embeddings.key(embed_key)
    ids = [*hierarchy.documents]
    graph.add(hierarchy.new_documents())
    for name, parent in parents.items():
        graph.imports.add(name, families[name], parent, id_field=LLAMA_INDEX_ID)
    graph.build(*parents)
    vectors = 0 if embed_key is None else _take_vectors(graph, hierarchy, parents, embed_key)
    return ImportResult(tuple(ids), tuple(parents), tuple(hierarchy.blank), vectors)


NODES, EMBEDDED_NODES = "node", "embedded node"
"""The group of an index of nodes; of those that came with vectors, which are searched then."""

_FLAT = (NODES, EMBEDDED_NODES)


def put_documents(graph: NodeGraph, documents: Sequence[LlamaIndexDocument]) -> list[str]:
    """Add documents to a graph, with the images of those that have some; return their ids."""
    if blank := [item.doc_id for item in documents if _has_media(item) and not item.text.strip()]:
        logger.warning("the images of %s can't be found, as they have no text", ", ".join(blank))
    return graph.add([document_of(item) if _has_media(item) else item for item in documents])


def _has_media(node: BaseNode) -> bool:
    return any(getattr(node, name, None) for name in (*_MEDIA, "image", "image_path", "image_url"))


def with_image_vectors(nodes: Sequence[BaseNode], model: object) -> Sequence[BaseNode]:
    """Return nodes with the vectors of their images, where the model embeds images.

    Raises:
        ValueError: If two images have the same text, under which their vectors are kept.
    """
    if not isinstance(model, MultiModalEmbedding):
        return nodes
    images: dict[str, Any] = {}
    for node in images_without_vectors(nodes, model):
        text = node.get_content(MetadataMode.EMBED)
        if text in images:
            raise ValueError(
                f"the images {images[text].node_id!r} and {node.node_id!r} have the same text, "
                f"{text!r:.80}, under which vectors are kept; give them a metadata field that "
                "differs, such as their file_name"
            )
        images[text] = node
    vectors = model.get_image_embedding_batch([node.resolve_image() for node in images.values()])
    by_id = {
        node.node_id: node.model_copy(update={"embedding": vector})
        for node, vector in zip(images.values(), vectors, strict=True)
    }
    return [by_id.get(node.node_id, node) for node in nodes]


def images_without_vectors(nodes: Sequence[BaseNode], model: object) -> list[BaseNode]:
    """Return the images that a model embeds; those without a text are in no graph."""
    if not isinstance(model, MultiModalEmbedding):
        return []
    return [
        node
        for node in nodes
        if hasattr(node, "resolve_image") and node.embedding is None and _has_media(node)
        if node.get_content(MetadataMode.NONE).strip()
    ]


def import_flat(
    graph: NodeGraph, nodes: Sequence[BaseNode], *, use_vectors: bool | None = None
) -> str:
    """Make one group of LlamaIndex nodes, as they are searched in LlamaIndex; return its name.

    It has nodes of all levels, and ``IndexNode`` objects as well as what they stand for.
    Their relationships are those that they have. Nothing that they refer to has to be given.

    Args:
        graph: The node graph.
        nodes: The nodes.
        use_vectors: Whether their vectors are taken over, which are of the graph's model; None
            if the graph has a model and one of the nodes has a vector.

    Raises:
        TypeError: If something is no node, or of a class of yours.
        ValueError: If two nodes differ under one id.
        EmbeddingError: If the vectors can't be of that model.
    """
    with graph.imports.exclusively():
        return _import_flat(graph, nodes, use_vectors)


def delete_flat(graph: NodeGraph, ids: Collection[str], *, use_vectors: bool) -> None:
    """Delete nodes of the flat group by their ids, and documents that have no nodes left."""
    with graph.imports.exclusively():
        _import_flat(graph, [], use_vectors, ids)


def _import_flat(
    graph: NodeGraph,
    nodes: Sequence[BaseNode],
    use_vectors: bool | None,
    deleted: Collection[str] = (),
) -> str:
    for node in nodes:
        _check(node)
    stored = stored_nodes(graph, nodes, is_flat=True, without=deleted)
    hierarchy = NodeHierarchy(nodes, is_flat=True, stored=stored)
    if use_vectors is None:
        use_vectors = any(node.embedding is not None for node in hierarchy.nodes.values())
    embed_keys = [*graph.embeddings.embedders] if use_vectors else []
    group = EMBEDDED_NODES if embed_keys else NODES
    families = hierarchy.families(dict.fromkeys(hierarchy.nodes, group))
    if hierarchy.blank:
        logger.warning("left out, as they have no text: %s", ", ".join(hierarchy.blank))
    graph.add(hierarchy.new_documents())
    if emptied := [i for i in stored.document_ids if i not in hierarchy.documents]:
        graph.remove(emptied)
    graph.imports.add(group, families.get(group, []), id_field=LLAMA_INDEX_ID)
    graph.build(group)
    for embed_key in embed_keys:
        _take_vectors(graph, hierarchy, [group], embed_key)
    return group


def _take_vectors(
    graph: NodeGraph, hierarchy: NodeHierarchy, groups: Iterable[str], embed_key: str
) -> int:
    """Store the vectors of imported nodes; return how many."""
    vectors: dict[str, list[float]] = {}
    moved: dict[str, str] = {}
    for group in groups:
        nodes = graph.nodes(group)
        for node, text in zip(nodes, graph.reader.searched_texts(nodes), strict=True):
            original = hierarchy.nodes.get(id_in_llama_index(node))
            before = hierarchy.stored.texts.get(id_in_llama_index(node), text)
            if id_in_llama_index(node) in hierarchy.stored.kept and before != text:
                moved[text] = before
            if original is None or original.embedding is None:
                continue
            # The same fields may stand in another order.
            embedded = original.get_content(MetadataMode.EMBED)
            if sorted(embedded.split("\n")) == sorted(text.split("\n")):
                vectors[text] = original.embedding
    if moved:  # the fields stand in another order since the document has changed
        kept = graph.embeddings.vectors([*moved.values()], embed_key)
        graph.embeddings.put([*moved], [*kept], embed_key)
    graph.embeddings.put([*vectors], [*vectors.values()], embed_key)
    return len(vectors)


def _parent_groups(hierarchy: NodeHierarchy, names: Mapping[str, str]) -> dict[str, str]:
    """Return the parent group of each group, from the first level down."""
    parents: dict[str, str] = {}
    for node_id, name in names.items():
        parent = names.get(hierarchy.parents[node_id], ROOT)
        if parents.setdefault(name, parent) != parent or name in (parent, ROOT):
            raise ValueError(
                f"the nodes of group {name!r} stand below nodes of {parents[name]!r} and of "
                f"{parent!r}; a group has one parent group: name them apart, groups=function"
            )
    return parents


def export_nodes(graph: NodeGraph, *groups: str) -> list[TextNode]:
    """Make LlamaIndex nodes of groups and of the groups above them, independent of the graph.

    Choose it to fill a docstore or a vector index, or for components that follow relationships.
    They are what ``to_text_node`` makes, with children in the exported groups (CHILD, absent on
    leaves), and neighbours in their group and document, across parents (PREVIOUS, NEXT). Documents
    are not among them, and are nobody's PARENT, as with LlamaIndex's own parsers: a vector index
    must not return whole documents, nor a merging retriever climb to them. Name ``"ROOT"`` to get
    them first, with their children: ``import_nodes`` makes the same graph of these again.

    Args:
        graph: The node graph.
        groups: Names of groups; none for the documents alone.

    Returns:
        Each group in document order, parents before children.

    Raises:
        UnknownGroupError: If there is no such group.
        TransformError: If a group has to be built and its transform raises.

    Example:
        >>> from llama_index.core.node_parser import get_leaf_nodes
        >>> graph = NodeGraph()
        >>> ids = graph.add("One. Two.\\nThree.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", str.split, parent="line")
        >>> [node.text for node in get_leaf_nodes(export_nodes(graph, "word"))]
        ['One.', 'Two.', 'Three.']
    """
    roots = [ROOT] if ROOT in groups or not groups else []
    names = dict.fromkeys(
        [*roots, *(group.name for name in groups for group in graph.reader.lineage(name))]
    )
    with graph.reader.reading(*names):
        return relate([node for name in names for node in graph.nodes(name)])


def relate(nodes: Sequence[Node]) -> list[TextNode]:
    """Make LlamaIndex nodes with their children and neighbours among each other.

    Args:
        nodes: Whole groups, each in document order.
    """
    pairs = [(node, to_text_node(node, fixed_relationships(node))) for node in nodes]
    children: dict[str, list[RelatedNodeInfo]] = defaultdict(list)
    for node, text_node in pairs:
        if node.parent_id is not None:
            children[node.parent_id].append(related(text_node.node_id))
    for node, text_node in pairs:
        if node.id in children:
            text_node.relationships[NodeRelationship.CHILD] = children[node.id]
    for (node, text_node), (following, next_text_node) in pairwise(pairs):
        if (node.group, node.document_id) == (following.group, following.document_id):
            link_neighbours(text_node, next_text_node)
    return [text_node for _, text_node in pairs]


_FORMAT = "nodekin llama_index nodes"

_VERSION = 1

_CLASSES: dict[str, Any] = {
    **NODE_CLASSES,
    **{cls.class_name(): cls for cls in (NodeWithScore, NodeWithEvidence)},
}


def dump_nodes(nodes: Iterable[BaseNode | NodeWithScore]) -> str:
    """Write nodes, or results with their scores and evidence, as a JSON text.

    LlamaIndex can write a ``NodeWithScore`` but not read it; use this to store results in a file,
    a cache or a queue. ``load_nodes`` returns equal objects of the same classes; it creates
    nothing but nodes, whatever the text contains (no pickle).

    Raises:
        TypeError: If one is neither, or of a class of your own; or if a value can't be written
            in JSON, or would be read as another one (a tuple, a date).

    Example:
        >>> text = dump_nodes([NodeWithScore(node=TextNode(text="茶", id_="n1"), score=0.0)])
        >>> [(result.node.text, result.score) for result in load_nodes(text)]
        [('茶', 0.0)]
    """
    if isinstance(nodes, BaseNode | NodeWithScore | str):
        raise TypeError(f"dump_nodes takes a list of nodes or results, not one: {nodes!r:.80}")
    items = [_to_json(item) for item in nodes]
    return json.dumps({"format": _FORMAT, "version": _VERSION, "nodes": items}, ensure_ascii=False)


def load_nodes(text: str) -> list[Any]:
    """Read the nodes and results that ``dump_nodes`` wrote, with their classes.

    Raises:
        ValueError: If the text is something else, or of a newer version.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}")
    if data.get("version") != _VERSION:
        raise ValueError(
            f"the nodes were written in version {data.get('version')!r}; this one reads "
            f"{_VERSION}: update nodekin"
        )
    return [_from_json(item) for item in data["nodes"]]


def _to_json(item: BaseNode | NodeWithScore) -> dict[str, Any]:
    name = type(item).__name__
    if _CLASSES.get(name) is not type(item):
        raise TypeError(
            f"dump_nodes takes nodes and results of LlamaIndex ({', '.join(_CLASSES)}), not a "
            f"{name}: {item!r:.80}"
        )
    if isinstance(item, BaseNode):
        _check_json(item.metadata, item.node_id)
        fields = item.to_dict()
        _add_media(fields, item)
        return {"class": name, "data": json.loads(json.dumps(fields, default=str))}
    data: dict[str, Any] = {"node": _to_json(item.node), "score": item.score}
    if isinstance(item, NodeWithEvidence):
        _check_json(item.evidence, name)
        data["evidence"] = item.evidence
    return {"class": name, "data": data}


def _check_json(value: Any, owner: str) -> None:
    """Check that JSON restores a value as it is."""
    try:
        restored = json.loads(json.dumps(value))
    except (TypeError, ValueError):
        restored = None
    if repr(restored) != repr(value):
        raise TypeError(
            f"{owner!r} holds {value!r:.200}, of which JSON would not give everything back; make "
            "its values texts, numbers, lists or dicts with names"
        )


def _from_json(item: Any) -> BaseNode | NodeWithScore:
    name = item.get("class") if isinstance(item, dict) else None
    if name not in _CLASSES:
        raise ValueError(f"load_nodes knows no class {name!r}; it knows {[*_CLASSES]}")
    data = dict(item["data"])
    if "node" in data:
        data["node"] = _from_json(data["node"])
    loaded: BaseNode | NodeWithScore = _CLASSES[name].from_dict(data)
    return loaded
