"""Documents of files whose ids are random: known by their file and content instead."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .document import Document, as_document
from .hashing import digest, metadata_digest
from .node import ROOT
from .store import NodeStore

logger = logging.getLogger(__name__)

_RANDOM = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)  # UUID 4

_FILES = "files of documents with random ids"  # kind of values in the store


def stable_document(item: object) -> Document:
    """Take anything that ``as_document`` takes; give a file's document an id that is not random.

    LlamaIndex's ``SimpleDirectoryReader`` gives each document its ``file_path`` and, unless it is
    told ``filename_as_id=True``, another id each time: a folder that is read twice would be there
    twice. The new id is made of the path, the text and the metadata. Other documents, and
    nodekin's own, stay as they are.
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
    )


def _stable_id(document: Document) -> str:
    metadata = document.metadata
    return digest("file", str(metadata.get("file_path")), document.text, metadata_digest(metadata))


def report_changed_files(store: NodeStore, documents: Sequence[Document]) -> None:
    """Note which documents came from which file; warn of files that have earlier ones.

    Nothing is removed: a file that is read in parts may come in several calls.

    Args:
        store: The graph's store.
        documents: What ``stable_document`` returned.
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
