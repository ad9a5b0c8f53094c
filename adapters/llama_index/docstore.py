"""A LlamaIndex docstore that is stored together with a node graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import DEFAULT_PERSIST_PATH, RefDocInfo
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ..frameworks import in_thread

_NODES = "docstore/data"
_HASHES = "docstore/metadata"
_SOURCES = "docstore/ref_doc_info"
PLACES = "docstore/node_places"
"""The name of the collection that stores the positions of nodes in their source documents."""

_OF_DOCUMENTS = (_NODES, _HASHES, _SOURCES, PLACES)

_MEDIA = ("image_resource", "audio_resource", "video_resource")


def _record(node: BaseNode) -> dict[str, Any]:
    """Convert a node to JSON data, including the bytes of images and other media."""
    record = doc_to_json(node)
    for name in _MEDIA:  # LlamaIndex omits the bytes of media
        if content := getattr(getattr(node, name, None), "data", None):
            record["__data__"][name]["data"] = content.decode()
    return record


class GraphRecords(BaseKVStore):
    """A LlamaIndex key-value store that saves JSON records in the same database as a graph.

    The records are separate from the documents of the graph.

    Args:
        graph: The node graph.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Store a single record."""
        self.put_all([(key, val)], collection)

    def put_all(
        self,
        kv_pairs: list[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = 1,
    ) -> None:
        """Store all new and changed records in one transaction."""
        rows = {key: json.dumps(value, default=str).encode() for key, value in kv_pairs}
        stored = self._graph.reader.values(_kind(collection), list(rows))
        changed = {key: row for key, row in rows.items() if stored.get(key) != row}
        self._graph.reader.save(_kind(collection), changed)

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Return the record with the given key, or None if it does not exist."""
        return self.get_many([key], collection).get(key)

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all records of a collection as a dictionary."""
        return self.get_many(None, collection)

    def get_many(self, keys: Sequence[str] | None, collection: str) -> dict[str, dict[str, Any]]:
        """Return the records with the given keys, or all records if ``keys`` is None.

        Unknown keys are ignored.
        """
        rows = self._graph.reader.values(_kind(collection), keys)
        return {key: json.loads(value) for key, value in rows.items()}

    def delete_many(self, keys: Sequence[str], collection: str) -> None:
        """Delete records. Unknown keys are ignored."""
        self._graph.reader.delete_values(_kind(collection), keys)

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Delete a single record, and return whether it existed."""
        exists = self.get(key, collection) is not None
        self.delete_many([key], collection)
        return exists

    aput = in_thread(put)
    aget = in_thread(get)
    aget_all = in_thread(get_all)
    adelete = in_thread(delete)


def _kind(collection: str) -> str:
    return f"llama_index {collection}"


class GraphDocstore(KVDocumentStore):
    """A LlamaIndex docstore that stores nodes in a graph. Each node is saved completely, as JSON.

    Args:
        graph: The node graph.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self.records = GraphRecords(graph)
        super().__init__(self.records)
        self.graph = graph
        self.keeps_vectors = False

    def add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
    ) -> None:
        """Add nodes to the docstore, and replace nodes with the same ids.

        The required time is linear in the number of nodes.
        """
        nodes = {node.node_id: _record(node) for node in docs}
        hashes = {node.node_id: {"doc_hash": node.hash} for node in docs}
        of_sources = [(node.ref_doc_id, node) for node in docs if node.ref_doc_id]
        sources = self.records.get_many([*{source for source, _ in of_sources}], _SOURCES)
        for source, node in of_sources:
            hashes[node.node_id]["ref_doc_id"] = source
            info = sources.setdefault(source, {"node_ids": [], "metadata": dict(node.metadata)})
            info["node_ids"].append(node.node_id)
        for info in sources.values():
            info["node_ids"] = [*dict.fromkeys(info["node_ids"])]
        for collection, values in ((_NODES, nodes), (_HASHES, hashes), (_SOURCES, sources)):
            self.records.put_all([*values.items()], collection)

    async_add_documents = in_thread(add_documents)

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete a source document and its nodes.

        Raises:
            ValueError: If the id is unknown and ``raise_error`` is True.
        """
        if raise_error and not self.ref_doc_exists(ref_doc_id):
            raise ValueError(f"unknown document {ref_doc_id!r}")
        ids = [*self.nodes_of(ref_doc_id), ref_doc_id]
        for collection in _OF_DOCUMENTS:
            self.records.delete_many(ids, collection)

    adelete_ref_doc = in_thread(delete_ref_doc)

    def nodes_of(self, ref_doc_id: str) -> list[str]:
        """Return the ids of the nodes that currently belong to a source document."""
        info = self.get_ref_doc_info(ref_doc_id) or RefDocInfo()
        hashes = self.records.get_many(info.node_ids, _HASHES)
        return [i for i, record in hashes.items() if record.get("ref_doc_id") == ref_doc_id]

    def given_nodes(self, nodes: Sequence[Node]) -> dict[str, BaseNode]:
        """Return the stored LlamaIndex nodes from which nodes of the graph were derived.

        The result is a dictionary that is keyed by id. The metadata of each returned node is the
        current metadata of its document in the graph.
        """
        documents = {node.document_id or node.id for node in nodes}
        records = self.records.get_many([*documents], _NODES)
        for node in nodes:
            if (record := records.get(node.id)) is not None:
                record["__data__"]["metadata"] = deepcopy(node.metadata)
        return {node_id: json_to_doc(record) for node_id, record in records.items()}

    def persist(self, persist_path: str = DEFAULT_PERSIST_PATH, fs: Any = None) -> None:
        """Save the nodes with their vectors to a file that ``SimpleDocumentStore`` can read."""
        data = {name: self.records.get_all(name) for name in _OF_DOCUMENTS}
        if self.keeps_vectors and self.graph.embeddings.embedders:
            nodes = self.graph.nodes(ROOT)
            texts = self.graph.reader.searched_texts(nodes)
            vectors = self.graph.embeddings.vectors(texts, self.graph.embeddings.key(None))
            for node, vector in zip(nodes, vectors, strict=True):
                data[_NODES][node.id]["__data__"]["embedding"] = vector.tolist()
        SimpleKVStore(data).persist(persist_path, fs)
