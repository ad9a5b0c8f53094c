"""Documents and nodes that come and go: pipelines, and the methods of an index."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.extractors import BaseExtractor
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from support.llama_index_models import Words


def topics(index: Any, question: str) -> list[str]:
    return [r.metadata["topic"] for r in index.as_retriever(similarity_top_k=1).retrieve(question)]


def milk(text: str = "Yoghurt is sour milk.") -> Document:
    return Document(text=text, id_="milk", metadata={"topic": "milk"})


# As a transformation of a pipeline


async def test_a_splitter_of_a_pipeline(kind: Any, documents: list[Document]) -> None:
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


def test_metadata_and_templates_go_to_the_nodes(kind: Any) -> None:
    document = milk()
    document.excluded_llm_metadata_keys = ["topic"]
    document.text_template = "{content} / {metadata_str}"
    (node,) = IngestionPipeline(transformations=[kind.splitter]).run(documents=[document])
    assert node.metadata == {"topic": "milk"}
    assert node.get_content("llm") == "Yoghurt is sour milk."
    assert node.get_content("embed") == "Yoghurt is sour milk. / topic: milk"


def test_a_pipeline_caches_and_is_persisted(
    kind: Any, documents: list[Document], tmp_path: Path
) -> None:
    pipeline = IngestionPipeline(transformations=[kind.splitter])
    nodes = pipeline.run(documents=documents)
    pipeline.persist(str(tmp_path))
    again = IngestionPipeline(transformations=[kind.splitter])
    again.load(str(tmp_path))
    assert [n.node_id for n in again.run(documents=documents)] == [n.node_id for n in nodes]


def test_pipeline_with_docstore_skips_existing_nodes(kind: Any, documents: list[Document]) -> None:
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


def test_transformations_of_an_index(kind: Any, documents: list[Document]) -> None:
    steps = [SentenceSplitter(chunk_size=32, chunk_overlap=0), Topic()]
    index = kind.index.from_documents(documents, transformations=steps)
    (result, *_) = index.as_retriever().retrieve("Black tea is fermented.")
    assert result.metadata["length"] == len(result.text)


def test_documents_are_inserted_and_deleted(index: Any) -> None:
    index.insert(milk())
    assert topics(index, "sour milk") == ["milk"]
    assert index.ref_doc_info.keys() == {"tea", "rivers", "bridges", "milk"}
    index.delete_ref_doc("milk", delete_from_docstore=True)
    assert topics(index, "sour milk") != ["milk"]
    assert index.ref_doc_info.keys() == {"tea", "rivers", "bridges"}


def test_documents_are_updated(index: Any) -> None:
    index.insert(milk())
    index.update_ref_doc(milk("Butter is churned cream."))
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("Butter is churned cream")
    assert result.text == "Butter is churned cream."
    assert len(index.ref_doc_info["milk"].node_ids) == 1


def test_refresh_replaces_changed_documents_only(index: Any, documents: list[Document]) -> None:
    changed = Document(text="The Amazon is 6,400 km long.", id_="rivers", metadata={})
    assert index.refresh_ref_docs([documents[0], changed, milk()]) == [False, True, True]
    assert index.refresh_ref_docs([documents[0], changed, milk()]) == [False] * 3


async def test_async_insert_and_delete(index: Any) -> None:
    await index.ainsert(milk())
    assert topics(index, "sour milk") == ["milk"]
    await index.adelete_ref_doc("milk", delete_from_docstore=True)
    assert "milk" not in index.ref_doc_info


def test_nodes_are_inserted(kind: Any) -> None:
    index = kind.index([TextNode(text="Tea is green.", id_="tea", metadata={"topic": "tea"})])
    index.insert_nodes([TextNode(text="Sour milk.", id_="milk", metadata={"topic": "milk"})])
    assert topics(index, "sour milk") == ["milk"]


def test_nodes_are_removed(kind: Any) -> None:
    nodes = [TextNode(text=f"Tea {at}.", id_=f"{at}") for at in range(3)]
    index = kind.index(nodes)
    index.delete_nodes(["1"], delete_from_docstore=True)
    results = index.as_retriever(similarity_top_k=3).retrieve("tea")
    assert {result.node_id for result in results} == {"0", "2"}


def test_vectors_that_a_pipeline_made_are_used(kind: Any, documents: list[Document]) -> None:
    nodes = IngestionPipeline(transformations=[kind.splitter, Words()]).run(documents=documents)
    model = Words(texts=[])
    index = kind.index([*nodes], embed_model=model)
    assert topics(index, "Black tea is fermented.") == ["tea"]
    assert model.texts == []


def test_an_index_has_an_id(index: Any) -> None:
    index.set_index_id("drinks")
    assert index.index_id == "drinks"
