"""Sequences of index operations, run with ``VectorStoreIndex`` and with ``NodeGraphIndex``."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from tempfile import TemporaryDirectory
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


def removed(index: Any, *node_ids: str) -> None:
    index.delete_nodes([*node_ids], delete_from_docstore=True)


def deleted(index: Any, document_id: str) -> None:
    index.delete_ref_doc(document_id, delete_from_docstore=True)


LONE = [TextNode(text=TEXTS[at], id_=f"lone{at}") for at in range(2)]
WHITE = document("d0", "white tea is dried")
TWICE = [node(0, "a first text"), node(0), node(1)]
REFERENCES = [IndexNode(text=TEXTS[at], id_=f"ref{at}", index_id="x") for at in range(4)]

NODES, UPDATED = nodes(), [WHITE, *DOCUMENTS[1:]]

Step = Callable[[Any], Any]

SEQUENCES: dict[str, tuple[list[Any], list[Step]]] = {
    "insert in batches": (
        nodes(0, 1),
        [lambda i, at=at: i.insert_nodes(nodes(at, at + 1)) for at in (2, 4, 6)],
    ),
    "insert parts of a document": (
        [node(0, source="doc")],
        [
            *(lambda i, at=at: i.insert_nodes([node(at, source="doc")]) for at in range(1, 8)),
            lambda i: i.ref_doc_info["doc"].node_ids,
        ],
    ),
    "insert again": (NODES, [lambda i: i.insert_nodes(nodes())]),
    "insert changed node": (NODES, [lambda i: i.insert_nodes([node(0, "white tea is dried")])]),
    "insert twice in one list": (TWICE, []),
    "insert node without source": (LONE[:1], [lambda i: i.insert_nodes(LONE[1:])]),
    "insert nothing": ([], [lambda i: i.insert_nodes([]), lambda i: i.insert_nodes(nodes(3))]),
    "insert references": ([*REFERENCES, *nodes(4, 5)], []),
    "insert to index of documents": (DOCUMENTS[:3], [lambda i: i.insert_nodes(nodes(4, 5))]),
    "insert asynchronously": (
        nodes(0, 1),
        [lambda i: asyncio.run(i.ainsert_nodes(nodes(2, 3)))],
    ),
    "delete one": (NODES, [lambda i: removed(i, "node1")]),
    "delete all of a document": (NODES, [lambda i: removed(i, "node0", "node1")]),
    "delete and insert": (
        NODES,
        [lambda i: removed(i, "node0"), lambda i: i.insert_nodes(nodes(0))],
    ),
    "delete asynchronously": (
        NODES,
        [lambda i: asyncio.run(i.adelete_nodes(["node3"], delete_from_docstore=True))],
    ),
    "delete source": (NODES, [lambda i: deleted(i, "doc1")]),
    "delete unknown source": (NODES, [lambda i: deleted(i, "none")]),
    "delete source and refresh": (
        DOCUMENTS,
        [lambda i: deleted(i, "d3"), lambda i: i.refresh_ref_docs(DOCUMENTS)],
    ),
    "delete source without docstore and refresh": (
        DOCUMENTS,
        [lambda i: i.delete_ref_doc("d3"), lambda i: i.refresh_ref_docs(DOCUMENTS)],
    ),
    "delete source asynchronously": (
        DOCUMENTS,
        [lambda i: asyncio.run(i.adelete_ref_doc("d3", delete_from_docstore=True))],
    ),
    "add document asynchronously": (
        DOCUMENTS[:4],
        [lambda i: asyncio.run(i.ainsert(DOCUMENTS[4]))],
    ),
    "update document": (DOCUMENTS, [lambda i: i.update_ref_doc(WHITE)]),
    "update document asynchronously": (
        DOCUMENTS,
        [lambda i: asyncio.run(i.aupdate_ref_doc(WHITE))],
    ),
    "refresh documents": (DOCUMENTS[:6], [lambda i: i.refresh_ref_docs(UPDATED)] * 2),
    "refresh asynchronously": (
        DOCUMENTS[:6],
        [lambda i: asyncio.run(i.arefresh_ref_docs(DOCUMENTS))],
    ),
    "refresh inserted document": (
        DOCUMENTS[2:3],
        [lambda i: i.insert(DOCUMENTS[0]), lambda i: i.refresh_ref_docs(DOCUMENTS[:2])],
    ),
    "persist and load documents": (
        DOCUMENTS,
        [
            lambda i: loaded(i),
            lambda i: i.refresh_ref_docs([*DOCUMENTS[:7], document("d7", "pandas sleep")]),
        ],
    ),
    "change after loading": (
        nodes(0, 1, 2, 3),
        [
            lambda i: loaded(i),
            lambda i: i.insert_nodes(nodes(4, 5)),
            lambda i: deleted(i, "doc0"),
            lambda i: loaded(i),
        ],
    ),
    "insert to first index after loading": (
        nodes(0, 1),
        [
            lambda i: load_index_from_storage(i.storage_context) and None,
            lambda i: i.insert_nodes(nodes(2, 3)),
            lambda i: loaded(i),
        ],
    ),
}
"""The first nodes or documents of an index, and operations on the index."""


def loaded(index: Any) -> Any:
    """Return a persisted copy."""
    with TemporaryDirectory() as folder:
        index.storage_context.persist(folder)
        return load_index_from_storage(StorageContext.from_defaults(persist_dir=folder))


def results(index: Any) -> list[Any]:
    """Return the results of all queries, best first, and the source documents."""
    retriever = index.as_retriever(similarity_top_k=9)
    found = [
        sorted((-round(r.score, 2), r.node_id, r.text) for r in retriever.retrieve(query))
        for query in QUERIES
    ]
    return [*found, sorted(index.ref_doc_info)]


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence_in_both_indexes_has_equal_results(name: str) -> None:
    given, steps = SEQUENCES[name]
    outcomes = []
    for kind, options in ((VectorStoreIndex, {}), (NodeGraphIndex, {"similarity": "cosine"})):
        make: Any = kind.from_documents if given and isinstance(given[0], Document) else kind
        index, seen = make(copy.deepcopy(given), **options), []
        for step in steps:
            made = step(index)
            if isinstance(made, kind):
                index = made
            seen.append(results(index) if made is index else made)
        outcomes.append([*seen, results(index)])
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("kind", [VectorStoreIndex, NodeGraphIndex])
def test_node_deleted_from_index_is_not_loaded(kind: Any) -> None:
    index = kind(nodes())
    index.delete_nodes(["node0"])
    found = loaded(index).as_retriever(similarity_top_k=9).retrieve("green tea")
    assert "node0" not in {result.node_id for result in found}


def test_both_indexes_use_docstore_with_all_nodes() -> None:
    outcomes = []
    for kind, options in ((VectorStoreIndex, {}), (NodeGraphIndex, {"similarity": "cosine"})):
        docstore = SimpleDocumentStore()
        docstore.add_documents(nodes())
        context = StorageContext.from_defaults(docstore=docstore)
        index: Any = kind(nodes(0, 1, 2), storage_context=context, **options)  # type: ignore[operator]
        index.insert_nodes([node(3), TextNode(text="white tea", id_="white")])
        outcomes.append([sorted(docstore.docs), results(loaded(index))])
    assert outcomes[0] == outcomes[1]
