"""Documents that arrive in parts all stay, as in LangChain's own vector store."""

from __future__ import annotations

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
    """Return the chunks of one source document."""
    source = {"source": "tea.pdf"}
    return [
        Document(f"About {topic} tea.", metadata=source, id=f"{at}" if with_ids else None)
        for at, topic in enumerate(TOPICS)
    ]


def content(store: Any) -> list[tuple[str, dict[str, Any]]]:
    found = store.similarity_search("About tea.", k=20)
    return sorted((document.page_content, document.metadata) for document in found)


@pytest.mark.parametrize("size", [1, 2, -1])
@pytest.mark.parametrize("with_ids", [True, False])
def test_add_documents_in_batches_keeps_all(with_ids: bool, size: int, tmp_path: Path) -> None:
    theirs = InMemoryVectorStore(MODEL)
    ours = NodeGraphVectorStore.from_documents([], MODEL, store=tmp_path / "tea.nodekin")
    for at in range(0, 8, abs(size)):
        batch = parts(with_ids)[:: 1 if size > 0 else -1][at : at + abs(size)]
        theirs.add_documents(batch)
        ours.add_documents(batch)
    assert len(content(ours)) == 8
    assert content(ours) == content(theirs)
    ours.graph.close()
    reopened = NodeGraphVectorStore.from_documents([], MODEL, store=tmp_path / "tea.nodekin")
    assert content(reopened) == content(theirs)


@pytest.mark.parametrize("cleanup", [None, "incremental", "full", "scoped_full"])
def test_index_with_a_record_manager_keeps_all(cleanup: Any) -> None:
    """The last run lacks two chunks of the source and has another chunk."""
    later = [*parts()[:6], Document("About coffee.", metadata={"source": "tea.pdf"}, id="new")]
    options: dict[str, Any] = {"batch_size": 2, "source_id_key": "source", "key_encoder": "sha256"}
    outcomes = []
    for store in (InMemoryVectorStore(MODEL), NodeGraphVectorStore.from_documents([], MODEL)):
        records = InMemoryRecordManager(namespace="tea")
        records.create_schema()
        runs = [
            index(documents, records, store, cleanup=cleanup, **options)
            for documents in (parts(), parts(), later)
        ]
        outcomes.append((runs, content(store)))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[1][1]) == (9 if cleanup is None else 7)
