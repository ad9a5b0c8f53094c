"""Documents and nodes that come and go: pipelines, and the methods of an index."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.extractors import BaseExtractor
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
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


def test_a_pipeline_with_a_docstore_passes_over_what_is_there(
    kind: Any, documents: list[Document]
) -> None:
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
