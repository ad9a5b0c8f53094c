"""Vector stores: searches, changes, and ``index`` with a record manager."""

from datetime import datetime, timedelta

import pytest
from langchain_classic.retrievers import TimeWeightedVectorStoreRetriever
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.utils import mock_now
from langchain_core.vectorstores import InMemoryVectorStore
from support.langchain_programs import DOCUMENTS, QUESTIONS, check
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore


def searches(cls, config):
    store = cls.from_documents(DOCUMENTS, Letters())
    vector = Letters().embed_query(QUESTIONS[0])
    return [
        store.similarity_search(QUESTIONS[0], k=3),
        store.similarity_search_with_score(QUESTIONS[1], k=7),
        store.similarity_search_by_vector(vector, k=2),
        store.max_marginal_relevance_search(QUESTIONS[0], k=4, fetch_k=7),
        store.search(QUESTIONS[2], search_type="mmr", k=2),
        store.get_by_ids(["d3", "none", "d0"]),
    ]


def changes(cls, config):
    store = cls(embedding=Letters())
    ids = store.add_texts(["Tea.", "Coffee."], metadatas=[{"n": 1}, {"n": 2}], ids=["a", "b"])
    again = store.add_documents([Document("Green tea.", metadata={"n": 3})], ids=["a"])
    store.delete(["b", "none"])
    return ids, again, store.similarity_search("tea", k=5), store.get_by_ids(["a", "b"])


def search_types(cls, config):
    store = cls.from_texts(["Tea is hot.", "Coffee is hot."], Letters(), ids=["a", "b"])
    found = []
    for search_type, options in (
        ("similarity", {"k": 1}),
        ("mmr", {"k": 2, "fetch_k": 2, "lambda_mult": 0.2}),
        ("similarity", {"k": 3}),
    ):
        retriever = store.as_retriever(search_type=search_type, search_kwargs=options)
        found.append(retriever.invoke("Is tea hot?", config))
    return found


def record_manager(cls, config):
    store = cls(embedding=Letters())
    manager = InMemoryRecordManager(namespace="tea")
    manager.create_schema()
    changed = [*DOCUMENTS[1:], Document("Tea is a drink.", metadata={"source": "0.md"})]
    results = []
    for documents, cleanup in (
        (DOCUMENTS, "incremental"),
        (DOCUMENTS, "incremental"),
        (changed, "full"),
        ([], "full"),
    ):
        results.append(
            index(
                [Document(d.page_content, metadata=dict(d.metadata)) for d in documents],
                manager,
                store,
                cleanup=cleanup,
                source_id_key="source",
                key_encoder="sha256",
            )
        )
        results.append(store.similarity_search("tea", k=9))
    return results


@pytest.mark.parametrize("program", [searches, changes, search_types, record_manager])
def test_store_works_as_langchains_store(program):
    check(program, InMemoryVectorStore, NodeGraphVectorStore)


def test_time_weighted_retriever_prefers_recent_documents():
    store = NodeGraphVectorStore(Letters())
    retriever = TimeWeightedVectorStoreRetriever(vectorstore=store, decay_rate=0.9, k=1)
    now = datetime(2026, 3, 1)
    for text, age in (("Tea is hot.", 400), ("Tea is warm.", 0)):
        document = Document(text, metadata={"last_accessed_at": now - timedelta(days=age)})
        retriever.add_documents([document])
    with mock_now(now):
        found = retriever.invoke("tea")
    assert [document.page_content for document in found] == ["Tea is warm."]
