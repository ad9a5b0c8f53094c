"""A document that arrives in parts keeps the parts that are already there, as in LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.schema import BaseNode, Document, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_models import Words

from nodekin.adapters.llama_index import NodeGraphIndex, export_nodes, import_nodes
from nodekin.nodegraph import NodeGraph

TOPICS = ("green", "black", "white", "yellow", "oolong", "herbal", "iced", "jasmine")
SENTENCES = [f"This sentence is about {topic} tea." for topic in TOPICS]


def document(**metadata: Any) -> Document:
    return Document(text=" ".join(SENTENCES), id_="tea", metadata=metadata)


def parsed() -> list[BaseNode]:
    nodes = SentenceSplitter(chunk_size=10, chunk_overlap=0).get_nodes_from_documents([document()])
    assert [node.get_content() for node in nodes] == SENTENCES
    return nodes


def without_positions() -> list[BaseNode]:
    nodes = parsed()
    for node in nodes:
        node.start_char_idx = node.end_char_idx = None  # type: ignore[attr-defined]
        node.relationships = {NodeRelationship.SOURCE: node.relationships[NodeRelationship.SOURCE]}
    return nodes


def with_pages() -> list[BaseNode]:
    nodes = parsed()
    for at, node in enumerate(nodes):
        node.metadata = {"page": at // 2, "file": "tea.pdf", "part": "a" if at < 4 else "b"}
    return nodes


def embedded() -> list[BaseNode]:
    return [*Words()(with_pages())]


def pairs(nodes: Sequence[BaseNode]) -> list[Sequence[BaseNode]]:
    return [nodes[at : at + 2] for at in range(0, len(nodes), 2)]


def one_by_one(nodes: Sequence[BaseNode]) -> list[Sequence[BaseNode]]:
    return [[node] for node in nodes]


def reverse(nodes: Sequence[BaseNode]) -> list[Sequence[BaseNode]]:
    return one_by_one(nodes[::-1])


BATCHES = [pairs, one_by_one, reverse]
KINDS = [parsed, without_positions, with_pages, embedded]


def in_batches(cls: Any, batches: Sequence[Sequence[BaseNode]], **options: Any) -> Any:
    index = cls(batches[0], embed_model=Words(), **options)
    for batch in batches[1:]:
        index.insert_nodes(batch)
    return index


def found(index: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the first result for each sentence, and all nodes for a word that all have."""
    one, all_nodes = index.as_retriever(similarity_top_k=1), index.as_retriever(similarity_top_k=20)
    results = [result for sentence in SENTENCES for result in one.retrieve(sentence)]
    results += sorted(all_nodes.retrieve("tea"), key=lambda result: str(result.node_id))
    return [(r.node_id, r.text, r.node.metadata) for r in results]


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("similarity", ["cosine", None])
def test_insert_nodes_in_batches_keeps_all_nodes(
    similarity: str | None, made: Callable[[], list[BaseNode]], batches: Any, tmp_path: Path
) -> None:
    nodes = made()
    theirs = in_batches(VectorStoreIndex, batches(nodes))
    file = tmp_path / "tea.nodekin"
    ours = in_batches(NodeGraphIndex, batches(nodes), similarity=similarity, store=file)
    expected = found(theirs)
    assert len(expected) == 16
    assert found(ours) == expected
    assert ours.docstore.docs.keys() == theirs.docstore.docs.keys()
    assert sorted(ours.ref_doc_info["tea"].node_ids) == sorted(theirs.ref_doc_info["tea"].node_ids)
    ours.graph.close()
    reopened = NodeGraphIndex([], embed_model=Words(), similarity=similarity, store=file)
    assert found(reopened) == expected


@pytest.mark.parametrize("batches", BATCHES)
def test_insert_nodes_in_batches_equals_one_insert(batches: Any) -> None:
    nodes = with_pages()
    whole = NodeGraphIndex(nodes, similarity="bm25")
    parts = in_batches(NodeGraphIndex, batches(nodes), similarity="bm25")
    assert parts.docstore.docs == whole.docstore.docs
    assert [node.text for node in parts.graph.nodes("ROOT")] == [
        node.text for node in whole.graph.nodes("ROOT")
    ]
    assert [node.metadata for node in parts.graph.nodes("ROOT")] == [{"file": "tea.pdf"}]


@pytest.mark.parametrize("batches", BATCHES)
def test_insert_nodes_keeps_vectors_of_stored_nodes(batches: Any) -> None:
    model = Words(texts=[])
    nodes = embedded()
    index = NodeGraphIndex(batches(nodes)[0], embed_model=model, similarity="cosine")
    for batch in batches(nodes)[1:]:
        index.insert_nodes(batch)
    assert found(index) == found(VectorStoreIndex(nodes, embed_model=Words()))
    assert model.texts == []


def test_insert_nodes_in_threads_keeps_all_nodes() -> None:
    nodes = parsed()
    index = NodeGraphIndex(nodes[:1], similarity="bm25")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(index.insert_nodes, one_by_one(nodes[1:])))
    assert index.docstore.docs.keys() == {node.node_id for node in nodes}


@pytest.mark.parametrize("batches", BATCHES)
def test_storage_context_keeps_nodes_of_all_batches(batches: Any, tmp_path: Path) -> None:
    kept: dict[Any, Any] = {}
    for cls in (VectorStoreIndex, NodeGraphIndex):
        context = StorageContext.from_defaults(docstore=SimpleDocumentStore())
        index = in_batches(cls, batches(parsed()), storage_context=context)
        index.storage_context.persist(tmp_path / cls.__name__)
        context = StorageContext.from_defaults(persist_dir=str(tmp_path / cls.__name__))
        loaded = load_index_from_storage(context, embed_model=Words())
        kept[cls] = [text for _, text, _ in found(loaded)]
    assert kept[NodeGraphIndex][:8] == kept[VectorStoreIndex][:8] == SENTENCES
    assert len(kept[NodeGraphIndex]) == 16


def test_inserted_node_replaces_the_node_with_its_id() -> None:
    changed = TextNode(
        text="Coffee is roasted.", id_="changed", relationships=parsed()[0].relationships
    )
    kept: dict[Any, Any] = {}
    for cls in (VectorStoreIndex, NodeGraphIndex):
        nodes = without_positions()
        nodes[3].node_id = "changed"
        index = in_batches(cls, pairs(nodes))
        index.insert_nodes([changed])
        results = index.as_retriever(similarity_top_k=20).retrieve("tea coffee")
        kept[cls] = {result.text for result in results}
    assert "Coffee is roasted." in kept[NodeGraphIndex]
    assert kept[NodeGraphIndex] == kept[VectorStoreIndex]


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("similarity", ["cosine", None])
def test_delete_nodes_deletes_the_given_nodes(
    similarity: str | None, made: Callable[[], list[BaseNode]], tmp_path: Path
) -> None:
    nodes, file = made(), tmp_path / "tea.nodekin"
    other = TextNode(text="Rivers and tea.", id_="rivers")
    theirs = VectorStoreIndex([*nodes, other], embed_model=Words())
    ours = NodeGraphIndex([*nodes, other], embed_model=Words(), similarity=similarity, store=file)
    for gone in ([nodes[0].node_id, nodes[5].node_id], ["rivers"]):
        for index in (theirs, ours):
            index.delete_nodes(gone, delete_from_docstore=True)
        expected = {entry[0] for entry in found(theirs)}
        assert {entry[0] for entry in found(ours)} == expected
        assert ours.docstore.docs.keys() == expected
        assert ours.ref_doc_info.keys() == theirs.ref_doc_info.keys() | ours.ref_doc_info.keys()
    ours.delete_nodes(["unknown"])
    assert {entry[0] for entry in found(ours)} == expected
    assert SENTENCES[0] not in ours.graph.node("tea").text
    ours.graph.close()
    reopened = NodeGraphIndex([], embed_model=Words(), similarity=similarity, store=file)
    assert {entry[0] for entry in found(reopened)} == expected
    reopened.delete_nodes([node.node_id for node in nodes])
    assert reopened.docstore.docs == {}
    assert reopened.ref_doc_info == {}
    reopened.insert_nodes(nodes[:2])
    assert len(reopened.docstore.docs) == 2


async def test_delete_nodes_works_in_async_code() -> None:
    nodes = parsed()
    index = NodeGraphIndex(nodes[:4], similarity="bm25")
    await index.ainsert_nodes(nodes[4:])
    await index.adelete_nodes([nodes[0].node_id])
    assert len(index.docstore.docs) == 7


def test_delete_nodes_of_documents_or_graphs_raises() -> None:
    of_documents = NodeGraphIndex.from_documents([document()], similarity="bm25")
    graph = NodeGraph()
    graph.add("Tea.")
    for index in (of_documents, NodeGraphIndex(graph)):
        with pytest.raises(TypeError, match="delete_ref_doc"):
            index.delete_nodes(["tea"])


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("made", [parsed, without_positions, with_pages])
def test_import_nodes_in_batches_keeps_all_nodes(
    made: Callable[[], list[BaseNode]], batches: Any, tmp_path: Path
) -> None:
    nodes = made()
    docstore = SimpleDocumentStore()
    with NodeGraph(store=tmp_path / "graph.nodekin") as graph:
        for batch in batches(nodes):
            docstore.add_documents(batch)
            import_nodes(graph, batch, groups=["chunk"])
        exported = {node.node_id: node.text for node in export_nodes(graph, "chunk")}
        assert exported == {i: node.get_content() for i, node in docstore.docs.items()}
    with NodeGraph(store=tmp_path / "graph.nodekin") as graph:
        assert {node.node_id for node in export_nodes(graph, "chunk")} == docstore.docs.keys()
        assert all(sentence in graph.node("tea").text for sentence in SENTENCES)


@pytest.mark.parametrize("batches", BATCHES)
def test_import_nodes_keeps_the_given_document(batches: Any) -> None:
    graph, given = NodeGraph(), document(source="book")
    nodes = SentenceSplitter(chunk_size=10, chunk_overlap=0).get_nodes_from_documents([given])
    for batch in batches(nodes):
        import_nodes(graph, batch, documents=[given], groups=["chunk"])
    (root,) = graph.nodes("ROOT")
    assert (root.text, root.metadata) == (given.text, given.metadata)
    assert [node.start for node in graph.nodes("chunk")] == [n.start_char_idx for n in nodes]
    import_nodes(graph, [nodes[0]], groups=["chunk"])
    assert graph.nodes("ROOT")[0].text == given.text
    assert len(graph.nodes("chunk")) == len(nodes)


def test_import_nodes_takes_levels_one_after_the_other() -> None:
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[40, 10], chunk_overlap=0)
    nodes = parser.get_nodes_from_documents([document()])
    leaves = get_leaf_nodes(nodes)
    upper = [node for node in nodes if node not in leaves]
    docstore, graph = SimpleDocumentStore(), NodeGraph()
    for batch in (upper, *one_by_one(leaves)):
        docstore.add_documents(batch)
        import_nodes(graph, batch)
    exported = {node.node_id: node for node in export_nodes(graph, "level 1", "level 2")}
    assert exported.keys() == docstore.docs.keys()
    for leaf in leaves:
        assert exported[leaf.node_id].parent_node.node_id == leaf.parent_node.node_id  # type: ignore[union-attr]


def test_pipeline_with_a_docstore_keeps_all_parts() -> None:
    """Pages of a file, each run in its own batch, as a loader yields them."""
    pages = [
        Document(text=text, id_=f"page-{at}", metadata={"file": "tea.pdf", "page": at})
        for at, text in enumerate(SENTENCES)
    ]
    kept: dict[Any, Any] = {}
    for cls in (VectorStoreIndex, NodeGraphIndex):
        docstore = SimpleDocumentStore()
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0)],
            docstore=docstore,
            docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
        )
        index = in_batches(cls, [pipeline.run(documents=batch) for batch in pairs(pages)])
        assert pipeline.run(documents=pages) == []
        changed = Document(text="Coffee is roasted.", id_="page-2")
        (node,) = pipeline.run(documents=[changed])
        index.insert_nodes([node])
        results = index.as_retriever(similarity_top_k=20).retrieve("tea coffee")
        kept[cls] = sorted(result.text for result in results)
    assert len(kept[NodeGraphIndex]) == 9
    assert kept[NodeGraphIndex] == kept[VectorStoreIndex]


def test_pipeline_splits_one_document_in_two_runs() -> None:
    """Each run sees one half of the document, under the same id."""
    kept: dict[Any, Any] = {}
    for cls in (VectorStoreIndex, NodeGraphIndex):
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(chunk_size=10, chunk_overlap=0)],
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
        )
        halves = [
            Document(text=" ".join(half), id_="tea") for half in (SENTENCES[:4], SENTENCES[4:])
        ]
        index = in_batches(cls, [pipeline.run(documents=[half]) for half in halves])
        results = index.as_retriever(similarity_top_k=20).retrieve("tea")
        kept[cls] = sorted(result.text for result in results)
    assert kept[NodeGraphIndex] == kept[VectorStoreIndex] == sorted(SENTENCES)
