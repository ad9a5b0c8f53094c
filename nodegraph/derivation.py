"""Derivation of the nodes of one group, from one document or from a whole parent group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from .document import Document
from .groups import NodeGroup
from .hashing import digest, full_digest, metadata_digest, stable_repr
from .node import NO_METADATA, ROOT, Link, Node
from .transforms import Draft

CORPUS = ""
"""The document id of nodes that are derived from a whole group."""


DOCUMENT_STRIDE = 1 << 32
"""Number of order values reserved for a document: its own, and one per node of a group."""


class Stamp(NamedTuple):
    """The hashes to determine whether a derivation is up to date.

    Attributes:
        key: Hash of the sources and the rules. The nodes are up to date if the graph expects this
            key. In ``ROOT``: hash of the text.
        rule: Hash of the rule. If only ``key`` changes, nodes with an unchanged parent are
            reused. In ``ROOT``: hash of the metadata without volatile fields, and of the search
            text.
        metadata: Hash of all metadata and the search text of the document, which the nodes
            inherit.
    """

    key: str
    rule: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """All nodes of one group that were derived from one document, or from a whole group.

    Attributes:
        stamp: The hashes of the sources and the rules.
        nodes: The nodes, in document order. The children of one parent are adjacent.
        links: The links that the transform created from these nodes. Targets can be missing.
    """

    stamp: Stamp
    nodes: Sequence[Node]
    links: Sequence[Link] = ()


def derive_root(document: Document, place: int) -> Derivation:
    """Return the derivation of ``ROOT`` from a document: one node.

    Args:
        document: The document.
        place: Its position in document order, from 1.
    """
    node = Node(
        document.text,
        document.metadata or NO_METADATA,
        start=0,
        end=len(document.text),
        id=document.id,
        group=ROOT,
        document_id=document.id,
        order=place * DOCUMENT_STRIDE,
        search_text=document.search_text,
    )
    metadata, search_text = document.metadata, document.search_text
    own, full = metadata_digest(metadata), full_digest(metadata)
    if search_text is not None:
        own, full = digest(own, search_text.version), digest(full, search_text.version)
    return Derivation(Stamp(digest(document.text), own, full), (node,))


def derivation_key(group: NodeGroup, root: Stamp, above: Stamp) -> str:
    """Return the key of a group's derivation from one document.

    The key covers the rule and the parent's key, which is the hash of the text in ``ROOT``. For
    transforms of nodes, it also covers the document's metadata.
    """
    parts = [group.version, above.key]
    if group.rule.trans_node:
        parts.append(root.rule)
    return digest(*parts)


def corpus_key(group: NodeGroup, above: Mapping[str, Stamp]) -> str:
    """Return the key of a derivation from a whole parent group.

    Args:
        group: The group.
        above: The stamps of its parent group, in document order.
    """
    stamps = (part for i, stamp in above.items() for part in (i, stamp.key, stamp.metadata))
    return digest(group.version, *stamps)


def reusable(
    group: NodeGroup, key: str, parents: Sequence[Node], old: Derivation | None
) -> dict[str, list[Draft]]:
    """Return the drafts of an old derivation that are still valid, by parent id.

    If the key is unchanged, all drafts are valid. With another rule, or for nodes derived from a
    whole group, no draft is valid. Otherwise, drafts are valid if an equal parent id implies an
    equal input. This excludes the following groups:

    - Transforms of nodes, which can read other nodes.
    - Children of ``ROOT``, since a document keeps its id when its text changes.
    """
    if old is None or old.stamp.rule != group.version or group.scope == "group":
        return {}
    is_same = old.stamp.key == key
    if not is_same and (group.rule.trans_node or group.parent == ROOT):
        return {}
    links: dict[str, list[tuple[str, str]]] = {}
    for link in old.links:
        links.setdefault(link.source, []).append((link.type, link.target))
    # With an unchanged key, a parent without drafts has no children.
    families: dict[str, list[Draft]] = {node.id: [] for node in parents if is_same}
    for node in old.nodes:
        content = None if node.content == node.text else node.content
        end = None if node.offset is None else node.offset + len(node.text)
        of_node = tuple(links.get(node.id, ()))
        draft = Draft(
            node.text, content, node.own_metadata, node.offset, end, of_node, node.search_text
        )
        families.setdefault(node.parent_id or "", []).append(draft)
    return families


def derive(
    name: str,
    stamp: Stamp,
    root: Node | None,
    families: Sequence[tuple[Node | None, Sequence[Draft]]],
) -> Derivation:
    """Convert drafts to nodes with ids, offsets and order values.

    Args:
        name: The group to derive.
        stamp: The hashes of the derivation.
        root: The ``ROOT`` node of the document. None: the nodes are derived from a whole group.
        families: The parents with their drafts, in document order. A parent of None: the drafts
            are derived from a whole group.
    """
    nodes: list[Node] = []
    links: list[Link] = []
    seen: dict[str, int] = {}
    document_id, first_order = (root.id, root.order) if root else (CORPUS, 0)
    for parent, outputs in families:
        inherited, inherited_search_text = NO_METADATA, None
        if parent is not None:
            inherited = parent.metadata if parent.own_metadata else parent.inherited
            inherited_search_text = parent.search_text or parent.inherited_search_text
        for draft in outputs:
            identity = draft.text
            if draft.content is not None and draft.content != draft.text:
                identity = f"{draft.text}\0{stable_repr(draft.content)}"
            occurrence = seen.get(identity, 0)
            seen[identity] = occurrence + 1
            node_id = digest(document_id, name, identity, str(occurrence))
            offset = None if parent is None else draft.start
            start = end = None
            if parent is not None and parent.start is not None and offset is not None:
                start = parent.start + offset
                end = start + len(draft.text)
            parent_id, order = None if parent is None else parent.id, first_order + len(nodes)
            own = draft.metadata or NO_METADATA
            fields = (draft.text, own, draft.content, start, end, node_id, name, document_id)
            above = (inherited, draft.search_text, inherited_search_text)
            nodes.append(Node(*fields, parent_id, offset, order, *above))
            links += [Link(node_id, target, kind, derived=True) for kind, target in draft.links]
    return Derivation(stamp, tuple(nodes), tuple(links))


def unmoved(old: Node, new: Node) -> bool:
    """Return whether two nodes with one id have equal positions, parents and metadata."""
    return bool(_position(old) == _position(new))


_position = attrgetter(
    *("order", "start", "offset", "parent_id", "own_metadata", "inherited"),
    *("search_text", "inherited_search_text"),
)
