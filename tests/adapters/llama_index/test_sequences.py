"""Sequences of index operations, run with ``VectorStoreIndex`` and with ``NodeGraphIndex``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    Settings,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from support.llama_index_models import Words

from nodekin.adapters.llama_index import NodeGraphIndex

TEXTS = (
    "green tea is steamed",
    "black tea is fermented",
    "oolong tea is half fermented",
    "the river nile is long",
    "the amazon river carries water",
    "a bridge of orange steel",
    "stone bridges by the romans",
    "pandas eat bamboo all day",
)
QUERIES = ("which tea is fermented", "a long river with water", "orange bridge", "bamboo")


def node(at: int, text: str | None = None, source: str | None = None) -> TextNode:
    """Return a node. Two nodes each have one source document."""
    info = RelatedNodeInfo(node_id=f"doc{at // 2}" if source is None else source)
    relationships = {NodeRelationship.SOURCE: info}
    return TextNode(text=text or TEXTS[at], id_=f"node{at}", relationships=relationships)


def nodes(*positions: int) -> list[TextNode]:
    return [node(at) for at in positions or range(len(TEXTS))]


def document(name: str, text: str) -> Document:
    return Document(text=text, id_=name, metadata={"topic": name})


DOCUMENTS = [document(f"d{at}", text) for at, text in enumerate(TEXTS)]


def number_nodes(at: int, source: Any) -> str:
    return f"{source.node_id}-{at}"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    splitter = SentenceSplitter(chunk_size=64, chunk_overlap=0, id_func=number_nodes)
    monkeypatch.setattr(Settings, "_embed_model", Words(texts=[]))
    monkeypatch.setattr(Settings, "_node_parser", splitter)
    monkeypatch.setattr(Settings, "_transformations", None)


class Program:
    """An index under test and its recorded results."""

    def __init__(self, kind: Callable[..., Any], folder: Path, **options: Any) -> None:
        self.kind, self.folder, self.options = kind, folder, options
        self.seen: list[Any] = []

    def index(self, given: list[Any], **options: Any) -> Any:
        return self.kind(given, **self.options, **options)

    def of_documents(self, given: list[Document]) -> Any:
        return self.kind.from_documents(given, **self.options)

    def look(self, index: Any) -> None:
        """Record the results of all queries, best first, and the source documents."""
        for query in QUERIES:
            results = index.as_retriever(similarity_top_k=9).retrieve(query)
            self.seen.append(sorted((-round(r.score, 2), r.node_id, r.text) for r in results))
        self.seen.append(sorted(index.ref_doc_info))

    def persisted(self, index: Any) -> Any:
        index.storage_context.persist(str(self.folder))
        context = StorageContext.from_defaults(persist_dir=str(self.folder))
        return load_index_from_storage(context)


def insert_in_batches(p: Program) -> None:
    index = p.index(nodes(0, 1))
    for at in range(2, 8, 2):
        index.insert_nodes(nodes(at, at + 1))
    p.look(index)


def insert_parts_of_a_document(p: Program) -> None:
    index = p.index([node(0, source="doc")])
    for at in range(1, 8):
        index.insert_nodes([node(at, source="doc")])
    p.look(index)
    p.seen.append(index.ref_doc_info["doc"].node_ids)


def insert_again(p: Program) -> None:
    index = p.index(nodes())
    index.insert_nodes(nodes())
    p.look(index)


def insert_changed_node(p: Program) -> None:
    index = p.index(nodes())
    index.insert_nodes([node(0, "white tea is dried")])
    p.look(index)


def insert_twice_in_one_list(p: Program) -> None:
    p.look(p.index([node(0, "a first text"), node(0), node(1)]))


def insert_node_without_source(p: Program) -> None:
    index = p.index([TextNode(text=TEXTS[0], id_="lone")])
    index.insert_nodes([TextNode(text=TEXTS[1], id_="other")])
    p.look(index)


def insert_nothing(p: Program) -> None:
    index = p.index([])
    index.insert_nodes([])
    index.insert_nodes(nodes(3))
    p.look(index)


def insert_references(p: Program) -> None:
    references = [IndexNode(text=TEXTS[at], id_=f"ref{at}", index_id="x") for at in range(4)]
    p.look(p.index([*references, *nodes(4, 5)]))


def insert_to_index_of_documents(p: Program) -> None:
    index = p.of_documents(DOCUMENTS[:3])
    index.insert_nodes(nodes(4, 5))
    p.look(index)


def insert_asynchronously(p: Program) -> None:
    index = p.index(nodes(0, 1))
    asyncio.run(index.ainsert_nodes(nodes(2, 3)))
    p.look(index)


def delete_one(p: Program) -> None:
    index = p.index(nodes())
    index.delete_nodes(["node1"], delete_from_docstore=True)
    p.look(index)


def delete_all_of_a_document(p: Program) -> None:
    index = p.index(nodes())
    index.delete_nodes(["node0", "node1"], delete_from_docstore=True)
    p.look(index)


def delete_and_insert(p: Program) -> None:
    index = p.index(nodes())
    index.delete_nodes(["node0"], delete_from_docstore=True)
    index.insert_nodes(nodes(0))
    p.look(index)


def delete_asynchronously(p: Program) -> None:
    index = p.index(nodes())
    asyncio.run(index.adelete_nodes(["node3"], delete_from_docstore=True))
    p.look(index)


def delete_source(p: Program) -> None:
    index = p.index(nodes())
    index.delete_ref_doc("doc1", delete_from_docstore=True)
    p.look(index)


def delete_unknown_source(p: Program) -> None:
    index = p.index(nodes())
    index.delete_ref_doc("none", delete_from_docstore=True)
    p.look(index)


def delete_source_and_refresh(p: Program) -> None:
    index = p.of_documents(DOCUMENTS)
    index.delete_ref_doc("d3", delete_from_docstore=True)
    p.seen.append(index.refresh_ref_docs(DOCUMENTS))
    p.look(index)


def delete_source_without_docstore_and_refresh(p: Program) -> None:
    index = p.of_documents(DOCUMENTS)
    index.delete_ref_doc("d3")
    p.seen.append(index.refresh_ref_docs(DOCUMENTS))
    p.look(index)


def delete_source_asynchronously(p: Program) -> None:
    index = p.of_documents(DOCUMENTS)
    asyncio.run(index.adelete_ref_doc("d3", delete_from_docstore=True))
    p.look(index)


def add_document_asynchronously(p: Program) -> None:
    index = p.of_documents(DOCUMENTS[:4])
    asyncio.run(index.ainsert(DOCUMENTS[4]))
    p.look(index)


def update_document(p: Program) -> None:
    index = p.of_documents(DOCUMENTS)
    index.update_ref_doc(document("d0", "white tea is dried"))
    p.look(index)


def update_document_asynchronously(p: Program) -> None:
    index = p.of_documents(DOCUMENTS)
    asyncio.run(index.aupdate_ref_doc(document("d0", "white tea is dried")))
    p.look(index)


def refresh_documents(p: Program) -> None:
    index = p.of_documents(DOCUMENTS[:6])
    changed = [document("d0", "white tea is dried"), *DOCUMENTS[1:]]
    p.seen += [index.refresh_ref_docs(changed), index.refresh_ref_docs(changed)]
    p.look(index)


def refresh_asynchronously(p: Program) -> None:
    index = p.of_documents(DOCUMENTS[:6])
    p.seen.append(asyncio.run(index.arefresh_ref_docs(DOCUMENTS)))
    p.look(index)


def refresh_inserted_document(p: Program) -> None:
    index = p.of_documents([])
    index.insert(DOCUMENTS[0])
    p.seen.append(index.refresh_ref_docs(DOCUMENTS[:2]))
    p.look(index)


def persist_and_load_documents(p: Program) -> None:
    index = p.persisted(p.of_documents(DOCUMENTS))
    p.seen.append(index.refresh_ref_docs([*DOCUMENTS[:7], document("d7", "pandas sleep")]))
    p.look(index)


def change_after_loading(p: Program) -> None:
    index = p.persisted(p.index(nodes(0, 1, 2, 3)))
    index.insert_nodes(nodes(4, 5))
    index.delete_ref_doc("doc0", delete_from_docstore=True)
    p.look(p.persisted(index))


def delete_without_docstore_and_load(p: Program) -> None:
    index = p.index(nodes())
    index.delete_nodes(["node0"])
    results = p.persisted(index).as_retriever(similarity_top_k=9).retrieve("green tea")
    p.seen.append(sorted(result.node_id for result in results))


def insert_to_first_index_after_loading(p: Program) -> None:
    context = StorageContext.from_defaults()
    first = p.index(nodes(0, 1), storage_context=context)
    load_index_from_storage(context)
    first.insert_nodes(nodes(2, 3))
    p.look(first)
    p.look(p.persisted(first))


def use_docstore_of_all_nodes(p: Program) -> None:
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes())
    context = StorageContext.from_defaults(docstore=docstore)
    index = p.index(nodes(0, 1, 2), storage_context=context)
    index.insert_nodes([node(3), TextNode(text="white tea", id_="white")])
    p.seen.append(sorted(docstore.docs))
    p.look(p.persisted(index))


SEQUENCES = [
    *(insert_in_batches, insert_parts_of_a_document, insert_again, insert_changed_node),
    *(insert_twice_in_one_list, insert_node_without_source, insert_nothing, insert_references),
    *(insert_to_index_of_documents, insert_asynchronously, delete_one, delete_all_of_a_document),
    *(delete_and_insert, delete_asynchronously, delete_source),
    *(delete_unknown_source, delete_source_and_refresh, delete_source_without_docstore_and_refresh),
    *(delete_source_asynchronously, add_document_asynchronously, update_document),
    *(update_document_asynchronously, refresh_documents, refresh_asynchronously),
    *(refresh_inserted_document, persist_and_load_documents),
    *(change_after_loading, delete_without_docstore_and_load),
    *(insert_to_first_index_after_loading, use_docstore_of_all_nodes),
]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.__name__)
def test_sequence_in_both_indexes_has_equal_results(
    sequence: Callable[[Program], None], tmp_path: Path
) -> None:
    theirs = Program(VectorStoreIndex, tmp_path / "theirs")
    ours = Program(NodeGraphIndex, tmp_path / "ours", similarity="cosine")
    sequence(theirs)
    sequence(ours)
    assert theirs.seen
    assert ours.seen == theirs.seen
