"""Make the nodes of one group from one document, or from another group as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .document import Document
from .groups import NodeGroup
from .hashing import digest, full_digest, metadata_digest
from .node import NO_METADATA, ROOT, Link, Node
from .store import CORPUS, Derivation, NodeStore, Stamp
from .transforms import Draft, PatternRule

DOCUMENT_STRIDE = 1 << 32
"""Order numbers a document takes: its own, and one for each node of a group."""


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
    )
    metadata = document.metadata
    own, full = metadata_digest(metadata), full_digest(metadata)
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
    made = drafts_of(old)
    if old.key == key:
        # Of a parent that has no nodes it is known that it makes none only if nothing has changed.
        return {each.id: [] for each in parents if each is not None} | made
    if group.trans_node or group.parent == ROOT:
        return {}
    if isinstance(group.rule, PatternRule) and _file_names(old.nodes) != _file_names(parents):
        return {}
    return made


def _file_names(nodes: Sequence[Node | None]) -> set[object]:
    return {str(node.metadata.get("file_name")) for node in nodes if node is not None}


def drafts_of(derivation: Derivation) -> dict[str, list[Draft]]:
    """Return what the nodes of a derivation were before they had their ids, by parent id."""
    links: dict[str, list[tuple[str, str]]] = {}
    for link in derivation.links:
        links.setdefault(link.source, []).append((link.type, link.target))
    families: dict[str, list[Draft]] = {}
    for node in derivation.nodes:
        content = None if node.content == node.text else node.content
        end = None if node.offset is None else node.offset + len(node.text)
        of_node = tuple(links.get(node.id, ()))
        draft = Draft(node.text, content, node.own_metadata, node.offset, end, of_node)
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
    seen: Counter[str] = Counter()
    document_id, order = (root.id, root.order) if root else (CORPUS, 0)
    for parent, made in families:
        inherited = NO_METADATA
        if parent is not None:
            inherited = parent.metadata if parent.own_metadata else parent.inherited
        for draft in made:
            identity = draft.text
            if draft.content is not None and draft.content != draft.text:
                identity = f"{draft.text}\0{draft.content!r}"
            occurrence = seen[identity]
            seen[identity] += 1
            node_id = digest(document_id, name, identity, str(occurrence))
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
                )
            )
            links += [Link(node_id, target, kind, derived=True) for kind, target in draft.links]
    return Derivation(*stamp, tuple(nodes), tuple(links))


def unmoved(old: Node, new: Node) -> bool:
    """Tell whether two nodes of the same id are the same in place and metadata too."""
    return (
        (old.order, old.start, old.offset) == (new.order, new.start, new.offset)
        and old.parent_id == new.parent_id
        and old.own_metadata == new.own_metadata
        and old.inherited == new.inherited
    )


def rename(store: NodeStore, old: str, new: str) -> None:
    """Make for one document what was made of another one with the same text, without making it.

    Both are in the store; links of the old one's nodes are put for the new one's too. Nodes of
    rules that look at metadata are made anew when they are needed, should that have changed.
    """
    before, root = store.get([old, new])
    if before is None or root is None:
        return
    stamp = next(iter(store.stamps(root.group, [new]).values()))
    names = {old: root}  # the new nodes by the ids of the old ones
    derived: dict[str, Derivation] = {}
    for group, derivation in _from_the_top(store, old, set(names)):
        families: list[tuple[Node | None, Sequence[Draft]]] = [
            (names[parent], made) for parent, made in drafts_of(derivation).items()
        ]
        moved = derived[group] = derive(
            group, Stamp(derivation.key, derivation.rule, stamp.metadata), root, families
        )
        pairs = zip(derivation.nodes, moved.nodes, strict=True)
        names.update((node.id, other) for node, other in pairs)
    ids = {i: node.id for i, node in names.items()}
    for group, moved in derived.items():
        links = [replace(link, target=ids.get(link.target, link.target)) for link in moved.links]
        store.put_derivations(group, {new: replace(moved, links=links)})
    _copy_links(store, ids)


def _from_the_top(
    store: NodeStore, document_id: str, known: set[str]
) -> Iterator[tuple[str, Derivation]]:
    """Yield a document's derivations, those first whose parents are known."""
    waiting = [(g, d) for g in store.groups() if (d := store.derivation(g, document_id))]
    while waiting:
        ready = [(g, d) for g, d in waiting if {n.parent_id for n in d.nodes} <= known]
        if not ready:
            return  # what is left stands on nodes that are gone, and will be made anew
        for group, derivation in ready:
            yield group, derivation
            known.update(node.id for node in derivation.nodes)
        waiting = [each for each in waiting if each not in ready]


def _copy_links(store: NodeStore, names: dict[str, str]) -> None:
    ids = list(names)
    found = [*store.links(ids), *store.links(ids, incoming=True)]
    copied = {
        Link(
            names.get(link.source, link.source),
            names.get(link.target, link.target),
            link.type,
            link.weight,
            link.metadata,
            link.derived,
        ): None
        for links in found
        for link in links
    }
    if copied:
        store.link(list(copied))
