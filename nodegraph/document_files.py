"""Documents with a file: renamed files, and LlamaIndex documents with random ids."""

from __future__ import annotations

import re
from dataclasses import replace

from .derivation import Derivation, Stamp, derive, outputs_by_parent
from .document import Document, as_document
from .hashing import digest, metadata_digest
from .node import ROOT
from .storage.graph_store import GraphStore


def rename(store: GraphStore, old: str, new: str) -> None:
    """Copy the derivations of a document to another document with an equal text.

    Both documents must be in the store. Links of the old nodes are copied to the new nodes. If the
    metadata changed, nodes of transforms that receive nodes are rebuilt later.
    """
    before, root = store.get([old, new])
    if before is None or root is None:
        return
    metadata = store.stamps(ROOT, [new])[new].metadata
    names = {old: root}  # old node id -> new node
    derived: dict[str, Derivation] = {}
    waiting = {g: d for g in store.groups() if (d := store.derivation(g, old))}
    # Parents first. Groups whose parents are missing are rebuilt later.
    while ready := [g for g, d in waiting.items() if {n.parent_id for n in d.nodes} <= {*names}]:
        for group in ready:
            derivation = waiting.pop(group)
            stamp = Stamp(derivation.key, derivation.rule, metadata)
            families = [(names[i], d) for i, d in outputs_by_parent(derivation).items()]
            derived[group] = derive(group, stamp, root, families)
            ids = (node.id for node in derivation.nodes)
            names.update(zip(ids, derived[group].nodes, strict=True))
    new_ids = {i: node.id for i, node in names.items()}
    for group, derivation in derived.items():
        links = [replace(k, target=new_ids.get(k.target, k.target)) for k in derivation.links]
        store.put_derivations(group, {new: replace(derivation, links=links)})
    rows = [*store.links([*names]), *store.links([*names], incoming=True)]
    copies = {
        replace(
            link,
            source=new_ids.get(link.source, link.source),
            target=new_ids.get(link.target, link.target),
        ): None
        for links in rows
        for link in links
    }
    if copies:
        store.link(list(copies))


_RANDOM = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)  # UUID 4


def stable_document(item: object) -> Document:
    """Convert an item to a ``Document`` and replace a random id of a file's document.

    The ``SimpleDirectoryReader`` of LlamaIndex sets ``file_path`` and, without
    ``filename_as_id=True``, a new id in each run. A folder that is read twice would be duplicated.
    The new id is a hash of path, text and metadata. Other documents and nodekin's ``Document``
    objects are unchanged.
    """
    document = as_document(item)
    path = document.metadata.get("file_path")
    if document is item or not isinstance(path, str) or not _RANDOM.fullmatch(document.id):
        return document
    return Document(
        document.text,
        document.metadata,
        id=digest("file", path, document.text, metadata_digest(document.metadata)),
        search_text=document.search_text,
        layout=document.layout,
    )
