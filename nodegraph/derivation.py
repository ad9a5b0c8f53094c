"""Make the nodes of one group from one document, or from another group as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .document import Document
from .groups import NodeGroup
from .hashing import digest, digester, full_digest, metadata_digest
from .node import NO_METADATA, ROOT, Link, Node
from .search_text import file_name_of, source_of
from .transforms import Draft, PatternRule

CORPUS = ""
"""Stands for a document's id where nodes are made from a whole group, not from one document."""


DOCUMENT_STRIDE = 1 << 32
"""Order numbers a document takes: its own, and one for each node of a group."""


class Stamp(NamedTuple):
    """Hash the sources of the nodes that a group has from one document.

    Attributes:
        key: A hash of what they were made from, and by which rules: as long as it is the one that
            the graph expects, they are up to date. In ``ROOT`` a hash of the text.
        rule: A hash of the rule; where only ``key`` differs, nodes whose parent is unchanged are
            reused. In ``ROOT`` a hash of the metadata that transforms may look at.
        metadata: Hash of the document's whole metadata and its search text, which the nodes
            inherit.
    """

    key: str
    rule: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """All nodes of one group that were made from one document.

    Attributes:
        key: See ``Stamp``.
        rule: See ``Stamp``.
        metadata: See ``Stamp``.
        nodes: In document order; the children of one parent stand together.
        links: The links from these nodes that the transform made; their targets may not exist.
    """

    key: str
    rule: str
    metadata: str
    nodes: Sequence[Node]
    links: Sequence[Link] = ()

    @property
    def stamp(self) -> Stamp:
        """The derivation without its nodes."""
        return Stamp(self.key, self.rule, self.metadata)


def derive_root(document: Document, place: int) -> Derivation:
    """Make the node of ``ROOT`` that a document is.

    Args:
        document: The document.
        place: Its number in document order, from 1.
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
    return Derivation(digest(document.text), own, full, (node,))


def derivation_key(group: NodeGroup, root: Stamp, above: Stamp) -> str:
    """Name what a group's nodes of one document are made from, and how.

    The text for a rule that sees texts, the document's metadata too for one that sees nodes or
    chooses by the file's name; the parent group's key where the parent is not the documents.
    """
    parts = [group.version, above.key]
    if group.trans_node or isinstance(group.rule, PatternRule):
        parts.append(root.rule)
    return digest(*parts)


def corpus_key(group: NodeGroup, above: Mapping[str, Stamp]) -> str:
    """Name what a group's nodes are made from where its transform sees the whole parent group.

    Args:
        group: The group.
        above: The stamps of its parent group, in document order.
    """
    stamps = (part for i, stamp in above.items() for part in (i, stamp.key, stamp.metadata))
    return digest(group.version, *stamps)


def reusable(
    group: NodeGroup, key: str, parents: Sequence[Node | None], old: Derivation | None
) -> dict[str, list[Draft]]:
    """Collect what need not be made again: by parent id, which stands for the parent's text.

    All of it where only the metadata changed. Otherwise not what came from rules that see nodes,
    which may look around, and not what came from a document, which keeps its id when its text
    changes.
    """
    if old is None or old.rule != group.version or group.scope == "group":
        return {}
    outputs = outputs_by_parent(old)
    if old.key == key:
        # Of a parent that has no nodes it is known that it makes none only if nothing has changed.
        return {node.id: [] for node in parents if node is not None} | outputs
    if group.trans_node or group.parent == ROOT:
        return {}
    if isinstance(group.rule, PatternRule) and _file_names(old.nodes) != _file_names(parents):
        return {}
    return outputs


def _file_names(nodes: Sequence[Node | None]) -> set[object]:
    metadata = [node.metadata for node in nodes if node is not None]
    return {(file_name_of(fields), source_of(fields)) for fields in metadata}


def outputs_by_parent(derivation: Derivation) -> dict[str, list[Draft]]:
    """Return what the nodes of a derivation were before they had their ids, by parent id."""
    links: dict[str, list[tuple[str, str]]] = {}
    for link in derivation.links:
        links.setdefault(link.source, []).append((link.type, link.target))
    families: dict[str, list[Draft]] = {}
    for node in derivation.nodes:
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
    """Give the drafts their ids, spans and places.

    Args:
        name: The group to be made.
        stamp: What it will be known by.
        root: The document, a node of ``ROOT``; None where the nodes come from a whole group.
        families: Each parent with what was made of it, in document order; None as the parent
            where there are several.
    """
    nodes: list[Node] = []
    links: list[Link] = []
    seen: dict[str, int] = {}
    document_id, order = (root.id, root.order) if root else (CORPUS, 0)
    first_id = digester(document_id, name, last="0")
    for parent, outputs in families:
        inherited, inherited_search_text = NO_METADATA, None
        if parent is not None:
            inherited = parent.metadata if parent.own_metadata else parent.inherited
            inherited_search_text = parent.search_text or parent.inherited_search_text
        for draft in outputs:
            identity = _identity(draft)
            occurrence = seen.get(identity, 0)
            seen[identity] = occurrence + 1
            node_id = first_id(identity)
            if occurrence:
                node_id = _node_id(document_id, name, identity, occurrence)
            start = end = offset = None
            if parent is not None and draft.start is not None:
                offset = draft.start
                if parent.start is not None:
                    start = parent.start + offset
                    end = start + len(draft.text)
            nodes.append(
                Node(
                    draft.text,
                    draft.metadata or NO_METADATA,
                    draft.content,
                    start,
                    end,
                    node_id,
                    name,
                    document_id,
                    None if parent is None else parent.id,
                    offset,
                    order + len(nodes),
                    inherited,
                    draft.search_text,
                    inherited_search_text,
                )
            )
            links += [Link(node_id, target, kind, derived=True) for kind, target in draft.links]
    return Derivation(*stamp, tuple(nodes), tuple(links))


def _identity(draft: Draft) -> str:
    if draft.content is None or draft.content == draft.text:
        return draft.text
    return f"{draft.text}\0{draft.content!r}"


def _node_id(document_id: str, group: str, identity: str, occurrence: int) -> str:
    return digest(document_id, group, identity, str(occurrence))


def unmoved(old: Node, new: Node) -> bool:
    """Return whether two nodes of the same id have the same place and metadata."""
    return (
        (old.order, old.start, old.offset) == (new.order, new.start, new.offset)
        and old.parent_id == new.parent_id
        and old.own_metadata == new.own_metadata
        and old.inherited == new.inherited
        and (old.search_text, old.inherited_search_text)
        == (new.search_text, new.inherited_search_text)
    )
