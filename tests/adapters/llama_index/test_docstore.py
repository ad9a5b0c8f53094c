import asyncio
from pathlib import Path

import pytest
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from nodekin.adapters.llama_index import NodeGraphDocstore, export_nodes
from nodekin.adapters.llama_index.nodes import to_text_node
from nodekin.nodegraph import NodeGraph, UnknownGroupError


@pytest.fixture
def docstore(graph: NodeGraph) -> NodeGraphDocstore:
    return NodeGraphDocstore(graph, ["sentence"])


def test_the_nodes_of_an_exported_docstore(graph: NodeGraph, docstore: NodeGraphDocstore) -> None:
    exported = SimpleDocumentStore()
    exported.add_documents(export_nodes(graph, "sentence"))
    assert docstore.docs == exported.docs
    for i, node in exported.docs.items():
        assert docstore.get_document(i) == node
        assert asyncio.run(docstore.aget_document(i)) == node
        assert docstore.document_exists(i)
        assert docstore.get_document_hash(i) == node.hash
    assert docstore.get_nodes(list(exported.docs)) == list(exported.docs.values())
    assert set(docstore.get_all_document_hashes().values()) <= set(exported.docs)


def test_what_is_missing(docstore: NodeGraphDocstore) -> None:
    assert docstore.get_document("x", raise_error=False) is None
    assert docstore.get_document_hash("x") is None
    assert docstore.get_ref_doc_info("x") is None
    assert not docstore.document_exists("x")
    assert not asyncio.run(docstore.adocument_exists("x"))
    with pytest.raises(ValueError, match="no node 'x'"):
        docstore.get_document("x")


def test_source_documents(graph: NodeGraph, docstore: NodeGraphDocstore) -> None:
    info = docstore.get_ref_doc_info("panda")
    below = [n.id for g in ("paragraph", "sentence") for n in graph.nodes(g)]
    assert info.node_ids == [i for i in below if graph.node(i).document_id == "panda"]
    assert info.metadata["topic"] == "panda"
    everything = docstore.get_all_ref_doc_info()
    assert everything == asyncio.run(docstore.aget_all_ref_doc_info())
    assert everything["panda"] == info
    assert set(everything) == {"tea", "panda"}
    assert asyncio.run(docstore.aget_ref_doc_info("panda")) == info
    assert docstore.get_ref_doc_info(info.node_ids[0]) is None


def test_only_the_groups_that_are_shown(graph: NodeGraph) -> None:
    graph.build("sentence")
    docstore = NodeGraphDocstore(graph, ["paragraph"])
    paragraph, sentence = graph.nodes("paragraph")[0], graph.nodes("sentence")[0]
    assert docstore.get_node(paragraph.id).child_nodes is None
    assert docstore.get_document(sentence.id, raise_error=False) is None
    assert docstore.groups == ["ROOT", "paragraph"]
    assert NodeGraphDocstore(graph).groups == ["ROOT", "paragraph", "sentence"]
    assert NodeGraphDocstore(NodeGraph()).docs == {}


def test_changes_of_the_graph_are_seen(graph: NodeGraph, docstore: NodeGraphDocstore) -> None:
    sentence = graph.nodes("sentence")[0].id
    graph.remove("tea")
    assert not docstore.document_exists(sentence)
    graph.add("New. Newer.")
    assert "New." in {node.text for node in docstore.docs.values()}


async def test_it_can_not_be_written_to(graph: NodeGraph, docstore: NodeGraphDocstore) -> None:
    node = TextNode(text="x", id_="x")
    calls = [
        lambda: docstore.add_documents([node]),
        lambda: docstore.delete_document("tea"),
        lambda: docstore.delete_ref_doc("tea"),
        lambda: docstore.set_document_hash("tea", "0"),
        lambda: docstore.set_document_hashes({"tea": "0"}),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match=r"graph\.add"):
            call()
    waits = [
        docstore.async_add_documents([node]),
        docstore.adelete_document("tea"),
        docstore.adelete_ref_doc("tea"),
        docstore.aset_document_hash("tea", "0"),
        docstore.aset_document_hashes({"tea": "0"}),
    ]
    for wait in waits:
        with pytest.raises(NotImplementedError, match=r"graph\.add"):
            await wait
    assert docstore.get_node("tea").text == to_text_node(graph.node("tea")).text


async def test_the_loop_stays_free(docstore: NodeGraphDocstore, unblocked: None) -> None:
    assert (await docstore.aget_node("tea")).node_id == "tea"
    assert await docstore.aget_document_hash("tea")
    assert await docstore.aget_all_document_hashes()


def test_wrong_arguments(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError, match="'sentence'"):
        NodeGraphDocstore(graph, ["sentense"])
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        NodeGraphDocstore("graph")  # type: ignore[arg-type]


def test_persisting_before_anything_is_built_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fresh = NodeGraph(progress=False)
    fresh.add("One. Two.")
    NodeGraphDocstore(fresh).persist(str(tmp_path / "docstore.json"))
    assert "no node was written" in caplog.text
    caplog.clear()
    NodeGraphDocstore(fresh, ["FineChunk"]).persist(str(tmp_path / "docstore.json"))
    assert "no node was written" not in caplog.text
    assert SimpleDocumentStore.from_persist_path(str(tmp_path / "docstore.json")).docs
