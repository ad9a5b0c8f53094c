"""Move what was made of a document to another one with the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .derivation import Derivation, Stamp, derive, outputs_by_parent
from .node import Link, Node
from .store import NodeStore
from .transforms import Draft


def rename(store: NodeStore, old: str, new: str) -> None:
    """Copy the derivations of a document to another one with the same text.

    Both are in the store. Links of the old one's nodes are put for the new one's too. Nodes of
    rules that look at metadata are made again when needed, if the metadata has changed.
    """
    before, root = store.get([old, new])
    if before is None or root is None:
        return
    stamp = next(iter(store.stamps(root.group, [new]).values()))
    names = {old: root}  # the new nodes by the ids of the old ones
    derived: dict[str, Derivation] = {}
    for group, derivation in _from_the_top(store, old, set(names)):
        families: list[tuple[Node | None, Sequence[Draft]]] = [
            (names[parent], outputs) for parent, outputs in outputs_by_parent(derivation).items()
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
    store: NodeStore, document_id: str, placed: set[str]
) -> Iterator[tuple[str, Derivation]]:
    """Yield a document's derivations, parents first."""
    waiting = [(g, d) for g in store.groups() if (d := store.derivation(g, document_id))]
    while waiting:
        ready = [(g, d) for g, d in waiting if {n.parent_id for n in d.nodes} <= placed]
        if not ready:
            return  # the rest has parents that were removed, and is derived again
        for group, derivation in ready:
            yield group, derivation
            placed.update(node.id for node in derivation.nodes)
        waiting = [pair for pair in waiting if pair not in ready]


def _copy_links(store: NodeStore, names: dict[str, str]) -> None:
    ids = list(names)
    rows = [*store.links(ids), *store.links(ids, incoming=True)]
    copied = {
        Link(
            names.get(link.source, link.source),
            names.get(link.target, link.target),
            link.type,
            link.weight,
            link.metadata,
            link.derived,
        ): None
        for links in rows
        for link in links
    }
    if copied:
        store.link(list(copied))
