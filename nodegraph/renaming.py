"""Give a document another id, and take along what was made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .derive import derive, drafts_of
from .link import Link
from .node import Node
from .store import Derivation, NodeStore, Stamp
from .transform import Draft


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
    for group, derivation in _from_the_top(store, old, set(names)):
        families: list[tuple[Node | None, Sequence[Draft]]] = [
            (names[parent], made) for parent, made in drafts_of(derivation).items()
        ]
        moved = derive(
            group, Stamp(derivation.key, derivation.rule, stamp.metadata), root, families
        )
        store.put_derivations(group, {new: moved})
        pairs = zip(derivation.nodes, moved.nodes, strict=True)
        names.update((node.id, other) for node, other in pairs)
    _copy_links(store, {i: node.id for i, node in names.items()})


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
        ): None
        for links in found
        for link in links
    }
    if copied:
        store.link(list(copied))
