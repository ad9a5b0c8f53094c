"""Documents and nodes that come and go: pipelines, and the methods of an index."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext
from llama_index.core.extractors import BaseExtractor
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from support.llama_index_models import Words


def topics(index: Any, question: str) -> list[str]:
    return [r.metadata["topic"] for r in index.as_retriever(similarity_top_k=1).retrieve(question)]


def milk(text: str = "Yoghurt is sour milk.") -> Document:
    return Document(text=text, id_="milk", metadata={"topic": "milk"})


# As a transformation of a pipeline


async def test_splitter_in_pipeline_keeps_spans_and_neighbors(
    kind: Any, documents: list[Document]
) -> None:
    for document in documents:
        document.metadata = {}
    pipeline = IngestionPipeline(transformations=[kind.splitter])
    nodes = pipeline.run(documents=documents)
    assert len(nodes) > len(documents)
    by_id = {document.id_: document for document in documents}
    for node, following in pairwise(nodes):
        text = by_id[node.ref_doc_id].text
        assert text[node.start_char_idx : node.end_char_idx] == node.get_content()
        if node.ref_doc_id == following.ref_doc_id:
            assert node.next_node.node_id == following.node_id
            assert following.prev_node.node_id == node.node_id
    again = await pipeline.arun(documents=documents)
    assert [node.get_content() for node in again] == [node.get_content() for node in nodes]


def test_metadata_and_templates_are_copied_to_nodes(kind: Any) -> None:
    document = milk()
    document.excluded_llm_metadata_keys = ["topic"]
    document.text_template = "{content} / {metadata_str}"
    (node,) = IngestionPipeline(transformations=[kind.splitter]).run(documents=[document])
    assert node.metadata == {"topic": "milk"}
    assert node.get_content("llm") == "Yoghurt is sour milk."
    assert node.get_content("embed") == "Yoghurt is sour milk. / topic: milk"


def test_persisted_pipeline_returns_equal_ids(
    kind: Any, documents: list[Document], tmp_path: Path
) -> None:
    pipeline = IngestionPipeline(transformations=[kind.splitter])
    nodes = pipeline.run(documents=documents)
    pipeline.persist(str(tmp_path))
    again = IngestionPipeline(transformations=[kind.splitter])
    again.load(str(tmp_path))
    assert [n.node_id for n in again.run(documents=documents)] == [n.node_id for n in nodes]


def test_pipeline_with_docstore_skips_known_documents(kind: Any, documents: list[Document]) -> None:
    pipeline = IngestionPipeline(
        transformations=[kind.splitter, Words()],
        docstore=SimpleDocumentStore(),
        vector_store=SimpleVectorStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
    )
    assert pipeline.run(documents=documents)
    assert pipeline.run(documents=documents) == []


# The methods of an index


class Topic(BaseExtractor):
    """Add a field to every node."""

    async def aextract(self, nodes: Any) -> list[dict[str, Any]]:
        return [{"length": len(node.get_content())} for node in nodes]


def test_transformations_of_index_change_the_nodes(kind: Any, documents: list[Document]) -> None:
    steps = [SentenceSplitter(chunk_size=32, chunk_overlap=0), Topic()]
    index = kind.index.from_documents(documents, transformations=steps)
    (result, *_) = index.as_retriever().retrieve("Black tea is fermented.")
    assert result.metadata["length"] == len(result.text)


# The docstore of an index


@pytest.fixture
def docstore(index: Any) -> Any:
    return index.docstore


def test_docstore_returns_nodes_by_id(docstore: Any) -> None:
    assert docstore.docs
    for node_id, node in docstore.docs.items():
        assert node.node_id == node_id
        assert docstore.document_exists(node_id)
        for same in (docstore.get_document(node_id), docstore.get_node(node_id)):
            assert (same.node_id, same.get_content()) == (node_id, node.get_content())
        assert docstore.get_document_hash(node_id) == node.hash
    ids = [*docstore.docs]
    assert [node.node_id for node in docstore.get_nodes(ids)] == ids


async def test_async_docstore_returns_nodes_by_id(docstore: Any) -> None:
    node_id = next(iter(docstore.docs))
    assert await docstore.adocument_exists(node_id)
    assert (await docstore.aget_document(node_id)).node_id == node_id
    assert (await docstore.aget_node(node_id)).node_id == node_id
    assert [node.node_id for node in await docstore.aget_nodes([node_id])] == [node_id]
    assert await docstore.aget_all_ref_doc_info() == docstore.get_all_ref_doc_info()


def test_unknown_ids_return_none_or_raise(docstore: Any) -> None:
    assert not docstore.document_exists("none")
    assert docstore.get_document("none", raise_error=False) is None
    assert docstore.get_document_hash("none") is None
    assert docstore.get_ref_doc_info("none") is None
    with pytest.raises(ValueError, match="none"):
        docstore.get_document("none")


def test_ref_doc_info_lists_nodes_of_documents(docstore: Any) -> None:
    infos = docstore.get_all_ref_doc_info()
    assert infos.keys() == {"tea", "rivers", "bridges"}
    for document_id, info in infos.items():
        assert info.metadata["topic"] == document_id
        for node_id in info.node_ids:
            assert docstore.get_node(node_id).ref_doc_id == document_id


def test_prev_next_postprocessor_adds_neighbors(kind: Any) -> None:
    text = " ".join(f"The king of land {at} was called {name}." for at, name in enumerate("ABCDEF"))
    splitter = kind.splitter
    nodes = splitter([Document(text=text, id_="kings")])
    index = kind.index(nodes)
    middle = index.docstore.get_node(nodes[2].node_id)
    for mode, expected in (("next", nodes[2:4]), ("previous", nodes[1:3]), ("both", nodes[1:4])):
        postprocessor = PrevNextNodePostprocessor(docstore=index.docstore, num_nodes=1, mode=mode)
        results = postprocessor.postprocess_nodes([NodeWithScore(node=middle, score=1.0)])
        assert [result.node_id for result in results] == [node.node_id for node in expected]


def test_persisted_docstore_has_equal_nodes(index: Any, tmp_path: Path) -> None:
    index.storage_context.persist(str(tmp_path))
    read = StorageContext.from_defaults(persist_dir=str(tmp_path)).docstore
    assert read.docs.keys() == index.docstore.docs.keys()
    alone = SimpleDocumentStore.from_persist_path(str(tmp_path / "docstore.json"))
    for node_id, node in index.docstore.docs.items():
        assert alone.docs[node_id].hash == node.hash


def test_add_documents_stores_nodes(docstore: Any) -> None:
    docstore.add_documents([TextNode(text="Milk.", id_="milk")])
    assert docstore.get_node("milk").get_content() == "Milk."
