"""The docstore and the storage of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore


@pytest.fixture
def docstore(index: Any) -> Any:
    return index.docstore


def test_nodes_are_read_by_their_ids(docstore: Any) -> None:
    assert docstore.docs
    for node_id, node in docstore.docs.items():
        assert node.node_id == node_id
        assert docstore.document_exists(node_id)
        for same in (docstore.get_document(node_id), docstore.get_node(node_id)):
            assert (same.node_id, same.get_content()) == (node_id, node.get_content())
        assert docstore.get_document_hash(node_id) == node.hash
    ids = [*docstore.docs]
    assert [node.node_id for node in docstore.get_nodes(ids)] == ids


async def test_async_docstore_equals_sync_docstore(docstore: Any) -> None:
    node_id = next(iter(docstore.docs))
    assert await docstore.adocument_exists(node_id)
    assert (await docstore.aget_document(node_id)).node_id == node_id
    assert (await docstore.aget_node(node_id)).node_id == node_id
    assert [node.node_id for node in await docstore.aget_nodes([node_id])] == [node_id]
    assert await docstore.aget_all_ref_doc_info() == docstore.get_all_ref_doc_info()


def test_what_is_not_there(docstore: Any) -> None:
    assert not docstore.document_exists("none")
    assert docstore.get_document("none", raise_error=False) is None
    assert docstore.get_document_hash("none") is None
    assert docstore.get_ref_doc_info("none") is None
    with pytest.raises(ValueError, match="none"):
        docstore.get_document("none")


def test_source_documents_and_their_nodes(docstore: Any) -> None:
    infos = docstore.get_all_ref_doc_info()
    assert infos.keys() == {"tea", "rivers", "bridges"}
    for document_id, info in infos.items():
        assert info.metadata["topic"] == document_id
        for node_id in info.node_ids:
            assert docstore.get_node(node_id).ref_doc_id == document_id


def test_neighbors_are_added(kind: Any) -> None:
    text = " ".join(f"The king of land {at} was called {name}." for at, name in enumerate("ABCDEF"))
    splitter = kind.splitter
    nodes = splitter([Document(text=text, id_="kings")])
    index = kind.index(nodes)
    middle = index.docstore.get_node(nodes[2].node_id)
    for mode, expected in (("next", nodes[2:4]), ("previous", nodes[1:3]), ("both", nodes[1:4])):
        postprocessor = PrevNextNodePostprocessor(docstore=index.docstore, num_nodes=1, mode=mode)
        results = postprocessor.postprocess_nodes([NodeWithScore(node=middle, score=1.0)])
        assert [result.node_id for result in results] == [node.node_id for node in expected]


def test_it_is_persisted(index: Any, tmp_path: Path) -> None:
    index.storage_context.persist(str(tmp_path))
    read = StorageContext.from_defaults(persist_dir=str(tmp_path)).docstore
    assert read.docs.keys() == index.docstore.docs.keys()
    alone = SimpleDocumentStore.from_persist_path(str(tmp_path / "docstore.json"))
    for node_id, node in index.docstore.docs.items():
        assert alone.docs[node_id].hash == node.hash


def test_an_index_is_loaded_from_its_storage(index: Any, tmp_path: Path) -> None:
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert loaded.as_retriever().retrieve("tea")


def test_nodes_are_added_to_the_docstore(docstore: Any) -> None:
    docstore.add_documents([TextNode(text="Milk.", id_="milk")])
    assert docstore.get_node("milk").get_content() == "Milk."
