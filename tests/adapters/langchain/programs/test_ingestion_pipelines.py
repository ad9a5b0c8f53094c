"""Ingestion: splitters before a store, and retrievers that keep parents in a docstore."""

import pytest
from langchain_classic.retrievers import MultiVectorRetriever, ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter, MarkdownHeaderTextSplitter
from support.langchain_programs import DOCUMENTS, QUESTIONS, TEXTS, check
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore

SPLITTER = CharacterTextSplitter(separator=" ", chunk_size=20, chunk_overlap=0)


def split_and_store(cls, config):
    markdown = "\n".join(f"# Part {n}\n{text}" for n, text in enumerate(TEXTS))
    parts = MarkdownHeaderTextSplitter([("#", "part")]).split_text(markdown)
    chunks = SPLITTER.split_documents(parts)
    store = cls.from_documents(chunks, Letters(), ids=[f"c{n}" for n in range(len(chunks))])
    return [store.as_retriever().invoke(question, config) for question in QUESTIONS]


def parents(cls, config):
    retriever = ParentDocumentRetriever(
        vectorstore=cls(embedding=Letters()),
        docstore=InMemoryStore(),
        child_splitter=SPLITTER,
        search_kwargs={"k": 5},
    )
    retriever.add_documents(DOCUMENTS, ids=[document.id for document in DOCUMENTS])
    return [retriever.invoke(question, config) for question in QUESTIONS]


def summaries(cls, config):
    retriever = MultiVectorRetriever(
        vectorstore=cls(embedding=Letters()), docstore=InMemoryStore(), id_key="of"
    )
    retriever.vectorstore.add_documents(
        [Document(d.page_content[:12], id=f"s{d.id}", metadata={"of": d.id}) for d in DOCUMENTS]
    )
    retriever.docstore.mset([(document.id, document) for document in DOCUMENTS])
    return [retriever.invoke(question, config) for question in QUESTIONS]


@pytest.mark.parametrize("program", [split_and_store, parents, summaries])
def test_pipeline_runs_as_with_langchains_store(program):
    check(program, InMemoryVectorStore, NodeGraphVectorStore)
