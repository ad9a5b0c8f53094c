"""Documents with a file: renamed files, and LlamaIndex documents with random ids."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .derivation import Derivation, Stamp, derive, outputs_by_parent
from .document import Document, as_document
from .hashing import digest, metadata_digest
from .node import ROOT, Link, Node
from .storage.graph_store import GraphStore
from .transforms import Draft

logger = logging.getLogger(__name__)


def rename(store: GraphStore, old: str, new: str) -> None:
    """Copy the derivations of a document to another document with an equal text.

    Both documents must be in the store. Links of the old nodes are copied to the new nodes. If the
    metadata changed, nodes of transforms that receive nodes are rebuilt later.
    """
    before, root = store.get([old, new])
    if before is None or root is None:
        return
    stamp = next(iter(store.stamps(root.group, [new]).values()))
    names = {old: root}  # old node id -> new node
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
    store: GraphStore, document_id: str, placed: set[str]
) -> Iterator[tuple[str, Derivation]]:
    """Yield the derivations of a document, parents first."""
    waiting = [(g, d) for g in store.groups() if (d := store.derivation(g, document_id))]
    while waiting:
        ready = [(g, d) for g, d in waiting if {n.parent_id for n in d.nodes} <= placed]
        if not ready:
            return  # the remaining nodes lack their parents and are rebuilt later
        for group, derivation in ready:
            yield group, derivation
            placed.update(node.id for node in derivation.nodes)
        waiting = [pair for pair in waiting if pair not in ready]


def _copy_links(store: GraphStore, names: dict[str, str]) -> None:
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


_RANDOM = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)  # UUID 4

_FILES = "files of documents with random ids"  # kind of values in the store


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
        id=_stable_id(document),
        search_text=document.search_text,
        layout=document.layout,
    )


def _stable_id(document: Document) -> str:
    metadata = document.metadata
    return digest("file", str(metadata.get("file_path")), document.text, metadata_digest(metadata))


def report_changed_files(store: GraphStore, documents: Sequence[Document]) -> None:
    """Store the documents of each file, and warn about earlier documents of these files.

    A warning is logged only for several documents, since the parts of one file may be added in
    several calls. Nothing is removed.

    Args:
        store: The graph's store.
        documents: The documents returned by ``stable_document``.
    """
    ids: dict[str, list[str]] = {}
    for document in documents:
        if "file_path" in document.metadata and document.id == _stable_id(document):
            ids.setdefault(str(document.metadata["file_path"]), []).append(document.id)
    if not ids:
        return
    noted: Mapping[str, list[str]] = {
        path: json.loads(value) for path, value in store.get_values(_FILES, ids.keys()).items()
    }
    existing: Any = store.stamps(ROOT, {i for batch in noted.values() for i in batch})
    earlier = {
        path: [i for i in batch if i in existing and i not in ids[path]]
        for path, batch in noted.items()
    }
    values = {path: json.dumps([*earlier.get(path, ()), *new]) for path, new in ids.items()}
    store.put_values(_FILES, {path: value.encode() for path, value in values.items()})
    changed = {path: batch for path, batch in earlier.items() if batch}
    if changed and len(documents) > 1:
        logger.warning(
            "%d files were added before with another text, which stays: %s; if they have changed, "
            "remove it, graph.remove(%r), or read files with filename_as_id=True, by which a "
            "changed file replaces its documents",
            len(changed),
            ", ".join([*changed][:10]) + (", ..." if len(changed) > 10 else ""),
            [i for batch in changed.values() for i in batch][:50],
        )
