"""Derive the nodes of one group from a document or from a whole parent group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from .document import Document
from .groups import NodeGroup
from .hashing import digest, digest_of, framed, full_digest, metadata_digest, stable_repr
from .node import NO_METADATA, ROOT, Link, Node, node_of_fields
from .search_text import SearchText, as_stored_search_text
from .transforms import Draft

if TYPE_CHECKING:
    from .graph import NodeGraph

CORPUS = ""
"""A placeholder for the document id of nodes that are derived from a whole group."""


_FIRST = framed("0")  # the number of the first node with a text, as part of its id

_MAX_MERGED = 4096  # maximum number of cached pairs of mappings


DOCUMENT_STRIDE = 1 << 32
"""The number of sort positions reserved for each document and its nodes in a group."""


class Stamp(NamedTuple):
    """Content hashes that determine whether the derived nodes of a document are up to date.

    Attributes:
        key: A hash of the input and the rules. The nodes are up to date if this hash equals the
            expected hash. For a document, it is the hash of the text.
        rule: A hash of the rule. If only ``key`` changes, nodes with an unchanged parent are
            reused. For a document, it is the hash of the search text and of the metadata without
            volatile fields.
        metadata: A hash of the document's metadata and search text, which the nodes inherit.
    """

    key: str
    rule: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """All nodes of one group that were derived from one document or from a whole parent group.

    Attributes:
        stamp: The hashes of the input and the rules.
        nodes: The nodes in document order. Children of the same parent are adjacent.
        links: The links from these nodes that the transform created. Their target nodes may be
            missing.
        text: The text of the document, to which the spans of the nodes refer. It is None if the
            nodes are derived from a whole group.
    """

    stamp: Stamp
    nodes: Sequence[Node]
    links: Sequence[Link] = ()
    text: str | None = None

    def has_span(self, node: Node) -> bool:
        """Return whether the text of a node is a span of the document."""
        if self.text is None or node.start is None or node.start < 0:
            return False
        return self.text.startswith(node.text, node.start)

    @property
    def has_plain_nodes(self) -> bool:
        """True if the nodes consist only of texts, so that they can always be stored.

        Such nodes equal the nodes that will be read from the store.
        """
        for node in self.nodes:
            if node.content is not node.text or type(node.text) is not str:
                return False
            if node.own_metadata or node.search_text is not None:
                return False
        return True


def document_stamp(document: Document) -> Stamp:
    """Compute the hashes of a document for the group ``ROOT``."""
    lasting = metadata_digest(document.metadata)
    full = full_digest(document.metadata)
    if document.search_text is not None:
        version = document.search_text.version
        lasting = digest(lasting, version)
        full = digest(full, version)
    return Stamp(digest(document.text), lasting, full)


def derivation_key(group: NodeGroup, root: Stamp, above: Stamp) -> str:
    """Compute the hash that identifies the input for deriving a group from one document.

    The hash covers the rule and the key of the parent nodes. For a document, this key is the hash
    of its text. If the transform receives nodes instead of texts, the hash also covers the
    document's metadata.
    """
    parts = [group.version, above.key]
    if group.rule.trans_node:
        parts.append(root.rule)
    return digest(*parts)


def corpus_key(group: NodeGroup, above: Mapping[str, Stamp]) -> str:
    """Compute the hash that identifies the input for deriving a group from a whole parent group.

    Args:
        group: The group.
        above: The stamps of the parent group, in document order.
    """
    parts = [group.version]
    for i, stamp in above.items():
        parts += [i, stamp.key, stamp.metadata]
    return digest(*parts)


def reusable(
    group: NodeGroup, key: str, parents: Sequence[Node], old: Derivation | None
) -> dict[str, list[Draft]]:
    """Return the transform outputs of an old derivation that can be reused, keyed by parent id.

    If the key is unchanged, all outputs can be reused. If the rule has changed, or if the nodes are
    derived from a whole group, no output can be reused. In all other cases, an output can be reused
    if an equal parent id implies that the input is equal. This excludes the following groups:

    - Groups whose transform receives nodes, since the transform can also read other nodes.
    - Groups whose parent is ``ROOT``, since a document keeps its id when its text changes.
    """
    if old is None or old.stamp.rule != group.version or group.scope == "group":
        return {}
    is_same = old.stamp.key == key
    if not is_same and (group.rule.trans_node or group.parent == ROOT):
        return {}
    links: dict[str, list[tuple[str, str]]] = {}
    for link in old.links:
        links.setdefault(link.source, []).append((link.type, link.target))
    # If the key is unchanged, a parent without outputs has no children.
    families: dict[str, list[Draft]] = {node.id: [] for node in parents if is_same}
    for node in old.nodes:
        draft = Draft(
            node.text,
            None if node.content == node.text else node.content,
            node.own_metadata,
            start=node.offset,
            end=None if node.offset is None else node.offset + len(node.text),
            links=tuple(links.get(node.id, ())),
            search_text=node.search_text,
        )
        families.setdefault(node.parent_id or "", []).append(draft)
    return families


def derive(
    name: str,
    stamp: Stamp,
    root: Node | None,
    families: Sequence[tuple[Node | None, Sequence[Draft]]],
    merged: MergedMetadata,
) -> Derivation:
    """Convert the outputs of a transform to nodes with ids, offsets and sort positions.

    Args:
        name: The name of the group.
        stamp: The hashes of the input and the rules.
        root: The ``ROOT`` node of the document. If None, the nodes are derived from a whole group.
        families: Pairs of a parent node and its outputs, in document order. The parent is None if
            the outputs are derived from a whole group.
        merged: A cache of the metadata that nodes inherit.
    """
    nodes: list[Node] = []
    links: list[Link] = []
    occurrences: dict[str, int] = {}
    above = _OfParent()
    of_group = framed(name)
    document = framed(above.document_id) + of_group  # the beginning of the hashed data
    order = 0 if root is None else root.order
    for parent, drafts in families:
        if parent is not None:
            above = _of_parent(parent, merged)
            document = framed(above.document_id) + of_group
        for draft in drafts:
            identity = _identity(draft)
            occurrence = occurrences.get(identity, 0)
            occurrences[identity] = occurrence + 1
            number = framed(str(occurrence)) if occurrence else _FIRST
            node_id = digest_of(document + framed(identity) + number)
            nodes.append(_node(draft, above, name, node_id, order))
            if draft.links:
                links += [Link(node_id, target, kind, derived=True) for kind, target in draft.links]
            order += 1
    text = None if root is None else root.text
    return Derivation(stamp, tuple(nodes), tuple(links), text)


class _OfParent(NamedTuple):
    """The fields that a node inherits from its parent.

    The defaults are for nodes without a parent.
    """

    document_id: str = CORPUS
    parent_id: str | None = None
    start: int | None = None
    metadata: Mapping[str, Any] = NO_METADATA
    search_text: SearchText | None = None
    graph: NodeGraph | None = None


def _of_parent(parent: Node, merged: MergedMetadata) -> _OfParent:
    return _OfParent(
        document_id=parent.document_id,
        parent_id=parent.id,
        start=parent.start,
        metadata=merged.of(parent),
        search_text=parent.search_text or parent.inherited_search_text,
        graph=parent.graph,
    )


class MergedMetadata:
    """A cache of the metadata that nodes inherit from their parents.

    Parents that share their metadata mappings share one merged mapping.
    """

    def __init__(self) -> None:
        self._merged: dict[tuple[int, int], tuple[Node, Mapping[str, Any]]] = {}

    def of(self, parent: Node) -> Mapping[str, Any]:
        """Return the metadata that the children of a node inherit."""
        if not parent.own_metadata:
            return parent.inherited
        key = (id(parent.inherited), id(parent.own_metadata))
        merged = self._merged.get(key)
        if merged is None:
            if len(self._merged) >= _MAX_MERGED:
                self._merged = {}
            # The cached parent keeps its mappings alive, so their object ids stay valid.
            merged = parent, parent.metadata
            self._merged[key] = merged
        return merged[1]


def _identity(draft: Draft) -> str:
    """Return the part of a node's id that depends on the output of the transform."""
    if draft.content is None or draft.content == draft.text:
        return draft.text
    return f"{draft.text}\0{stable_repr(draft.content)}"


def _node(draft: Draft, above: _OfParent, group: str, node_id: str, order: int) -> Node:
    start: int | None = None
    end: int | None = None
    if above.start is not None and draft.start is not None:
        start = above.start + draft.start
        end = start + len(draft.text)
    search_text = draft.search_text
    if search_text is not None:
        search_text = as_stored_search_text(search_text)
    # Positional arguments are faster.
    return node_of_fields(
        draft.text,
        draft.metadata or NO_METADATA,
        draft.text if draft.content is None else draft.content,
        start,
        end,
        node_id,
        group,
        above.document_id,
        above.parent_id,
        draft.start,
        order,
        above.metadata,
        search_text,
        above.search_text,
        above.graph,
    )


def unmoved(old: Node, new: Node) -> bool:
    """Return whether two versions of a node have the same position, parent and metadata."""
    return bool(_position(old) == _position(new))


_position = attrgetter(
    "order",
    "start",
    "offset",
    "parent_id",
    "own_metadata",
    "inherited",
    "search_text",
    "inherited_search_text",
)
