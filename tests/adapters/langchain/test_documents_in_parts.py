"""Documents that arrive in parts all stay, as in LangChain's own vector store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphVectorStore

MODEL = DeterministicFakeEmbedding(size=16)
TOPICS = ("green", "black", "white", "yellow", "oolong", "herbal", "iced", "jasmine")


def parts(with_ids: bool = True) -> list[Document]:
    """Return the chunks of one source document, as a text splitter makes them."""
    return [
        Document(
            f"About {topic} tea.", metadata={"source": "tea.pdf"}, id=f"{at}" if with_ids else None
        )
        for at, topic in enumerate(TOPICS)
    ]


def pairs(documents: Sequence[Document]) -> list[Sequence[Document]]:
    return [documents[at : at + 2] for at in range(0, len(documents), 2)]


def one_by_one(documents: Sequence[Document]) -> list[Sequence[Document]]:
    return [[document] for document in documents]


def reverse(documents: Sequence[Document]) -> list[Sequence[Document]]:
    return one_by_one(documents[::-1])


@pytest.fixture(params=[pairs, one_by_one, reverse])
def batches(request: pytest.FixtureRequest) -> Any:
    return request.param


def stores(file: Path) -> tuple[InMemoryVectorStore, NodeGraphVectorStore]:
    return InMemoryVectorStore(MODEL), NodeGraphVectorStore.from_documents([], MODEL, store=file)


def content(store: Any) -> list[tuple[str, dict[str, Any]]]:
    found = store.similarity_search("About tea.", k=20)
    return sorted((document.page_content, document.metadata) for document in found)


def first_results(store: Any) -> list[str]:
    return [store.similarity_search(part.page_content, k=1)[0].page_content for part in parts()]


@pytest.mark.parametrize("with_ids", [True, False])
def test_add_documents_in_batches_keeps_all(with_ids: bool, batches: Any, tmp_path: Path) -> None:
    theirs, ours = stores(tmp_path / "tea.nodekin")
    for batch in batches(parts(with_ids)):
        for store in (theirs, ours):
            store.add_documents(list(batch))
    assert len(content(ours)) == 8
    assert content(ours) == content(theirs)
    assert first_results(ours) == first_results(theirs)
    if with_ids:
        ids = [document.id for document in parts()]
        assert ours.get_by_ids(ids) == theirs.get_by_ids(ids)  # type: ignore[arg-type]
    ours.graph.close()
    reopened = NodeGraphVectorStore.from_documents([], MODEL, store=tmp_path / "tea.nodekin")
    assert content(reopened) == content(theirs)


@pytest.mark.parametrize("cleanup", [None, "incremental", "full", "scoped_full"])
def test_index_with_a_record_manager_keeps_all(cleanup: Any, tmp_path: Path) -> None:
    """Batches of two chunks of one source; then a run without two chunks and with another."""
    later = [*parts()[:6], Document("About coffee.", metadata={"source": "tea.pdf"}, id="new")]
    results = []
    theirs, ours = stores(tmp_path / "tea.nodekin")
    for store in (theirs, ours):
        records = InMemoryRecordManager(namespace="tea")
        records.create_schema()
        runs = [
            index(
                documents,
                records,
                store,
                batch_size=2,
                cleanup=cleanup,
                source_id_key="source",
                key_encoder="sha256",
            )
            for documents in (parts(), parts(), later)
        ]
        results.append(runs)
    assert results[0] == results[1]
    assert len(content(ours)) == (9 if cleanup is None else 7)
    assert content(ours) == content(theirs)
