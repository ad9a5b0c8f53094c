"""``NodeGraphIndex``: search, models, storage, vector stores and engines."""

from __future__ import annotations

import json
import logging
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import (
    Document,
    MockEmbedding,
    Settings,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from support.llama_index_models import Words, closed_memories  # noqa: F401
from support.other_user import as_other_user, freeze, shared_folder
from support.other_words import ANSWERS, CHANCE, by_meaning

from nodekin.adapters.llama_index import NodeGraphIndex
from nodekin.nodegraph import EmbeddingError, split_sentences
from nodekin.retrievers import DefaultRetriever, as_retriever
from nodekin.retrievers.composite.document_retriever import DocumentRetriever

TEXTS = {
    "tea": "Green tea is steamed. Black tea is fermented. Tea keeps for a year.",
    "rivers": "The Nile is 6,650 km long. It runs to the Mediterranean sea.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}


class OwnStore(SimpleVectorStore):
    """A vector store that is not LlamaIndex's default one."""


LOG = "nodekin.adapters.llama_index.graph_index"


@pytest.fixture
def model() -> Words:
    return Words(texts=[])


@pytest.fixture
def documents() -> list[Document]:
    return [Document(text=text, id_=name, metadata={"topic": name}) for name, text in TEXTS.items()]


@pytest.fixture
def nodes() -> list[TextNode]:
    return [
        TextNode(
            text=text,
            id_=name,
            metadata={"topic": name},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{name}.md")},
        )
        for name, text in TEXTS.items()
    ]


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr(Settings, "_embed_model", None)
    splitter = SentenceSplitter(
        chunk_size=64, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
    )
    monkeypatch.setattr(Settings, "_node_parser", splitter)
    monkeypatch.setattr(Settings, "_transformations", None)


def found(index: Any, query: str, **options: Any) -> list[str]:
    return [r.metadata["topic"] for r in index.as_retriever(**options).retrieve(query)]


# Models


@pytest.mark.parametrize("setting", ["missing", "disabled"])
@pytest.mark.parametrize("options", [{}, {"embed_model": None}])
def test_index_without_model_searches_words_and_logs_once(
    setting: str,
    options: dict[str, Any],
    documents: list[Document],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if setting == "disabled":
        monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=1))
    with caplog.at_level(logging.INFO, LOG):
        index = NodeGraphIndex.from_documents(documents, **options)
        assert found(index, "Which tea is fermented?")[0] == "tea"
        assert found(NodeGraphIndex(documents, **options), "fermented") == ["tea"]
    lines = [record.message for record in caplog.records if record.name == LOG]
    assert lines == ["there is no embedding model, so the index searches by words"] * 2


# Groups and similarities


def test_cosine_compares_vectors_of_given_nodes(nodes: list[TextNode], model: Words) -> None:
    index = NodeGraphIndex(nodes, embed_model=model, similarity="cosine")
    theirs = VectorStoreIndex(nodes, embed_model=model)
    for query in ("black tea is fermented", "orange bridge"):
        expected = theirs.as_retriever(similarity_top_k=3).retrieve(query)
        results = index.as_retriever(similarity_top_k=3).retrieve(query)
        assert [(r.node_id, r.score) for r in results] == [
            (r.node_id, pytest.approx(r.score, abs=1e-5)) for r in expected
        ]


def test_group_of_sentences_is_compared_and_lifted(nodes: list[TextNode], model: Words) -> None:
    index = NodeGraphIndex(nodes, embed_model=model, similarity="cosine", group="sentence")
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("Black tea is fermented.")
    assert (result.node_id, result.evidence[0]["text"]) == ("tea", "Black tea is fermented.")


def test_default_search_fuses_words_and_vectors_of_nodes(
    nodes: list[TextNode], model: Words
) -> None:
    index = NodeGraphIndex(nodes, embed_model=model)
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("Which tea is fermented?")
    assert {match["similarity"] for match in result.evidence} >= {"bm25", "cosine"}
    vectors = [match for match in result.evidence if match["similarity"] == "cosine"]
    assert [match["id"] for match in vectors] == ["tea"]


@pytest.mark.parametrize(
    ("group", "vectors"), [(None, "passages"), ("sentence", "both"), ("node", "passages")]
)
def test_search_of_nodes_equals_default_retriever(
    nodes: list[TextNode], model: Words, group: str | None, vectors: Any
) -> None:
    index = NodeGraphIndex(nodes, embed_model=model, group=group)
    native = DefaultRetriever(index.graph, "ROOT", embed_keys=["default"], vectors=vectors)
    for query in ("Which tea is fermented?", "orange sea", "1937"):
        expected = native.retrieve(query, top_k=3)
        results = index.as_retriever(similarity_top_k=3).retrieve(query)
        assert [(r.node_id, r.score) for r in results] == [(r.node.id, r.score) for r in expected]


@pytest.mark.parametrize("similarity", [None, "cosine"])
@pytest.mark.parametrize("has_model", [False, True])
def test_given_nodes_with_equal_texts_are_returned(
    model: Words, has_model: bool, similarity: str | None
) -> None:
    nodes = [TextNode(text="Tea is green.", id_=name) for name in "ab"]
    if not has_model:
        similarity = None
    index = NodeGraphIndex(nodes, embed_model=model if has_model else None, similarity=similarity)
    results = index.as_retriever(similarity_top_k=3).retrieve("green tea")
    assert {result.node_id for result in results} == {"a", "b"}


@pytest.mark.parametrize("similarity", [None, "cosine"])
def test_vectors_of_nodes_with_equal_texts_are_stored(model: Words, similarity: str | None) -> None:
    texts = {"a": "Tea is green.", "b": "Tea is green.", "c": "The Nile is long."}
    nodes = [
        TextNode(text=text, id_=name, embedding=model.get_text_embedding(text))
        for name, text in texts.items()
    ]
    index = NodeGraphIndex(nodes, embed_model=model, similarity=similarity)
    results = index.as_retriever(similarity_top_k=2).retrieve("green tea")
    assert {result.node_id for result in results} == {"a", "b"}


def test_given_vectors_are_not_computed_again(nodes: list[TextNode], model: Words) -> None:
    for node in nodes:
        node.embedding = model.get_text_embedding(node.get_content(MetadataMode.EMBED))
    fresh = Words(texts=[])
    index = NodeGraphIndex(nodes, embed_model=fresh)
    assert index.as_retriever().retrieve("Which tea is fermented?")[0].node_id == "tea"
    assert fresh.texts == []


def test_index_of_nodes_equals_index_of_documents(documents: list[Document], model: Words) -> None:
    of_documents = NodeGraphIndex.from_documents(documents, embed_model=model)
    nodes = of_documents.vector_store.get_nodes()
    of_nodes = NodeGraphIndex(nodes, embed_model=model, group="sentence")
    for query in ("Which tea is fermented?", "orange sea", "1937"):
        expected = of_documents.as_retriever(similarity_top_k=3).retrieve(query)
        results = of_nodes.as_retriever(similarity_top_k=3).retrieve(query)
        assert [(r.text, r.score) for r in results] == [(r.text, r.score) for r in expected]


def test_search_of_own_group_compares_its_vectors(nodes: list[TextNode], model: Words) -> None:
    index = NodeGraphIndex(nodes, embed_model=model)
    index.graph.create_node_group("clause", split_sentences)
    (result,) = index.as_retriever(group="clause", similarity_top_k=1).retrieve("the sea")
    assert result.node_id == "rivers"
    assert {match["similarity"] for match in result.evidence} == {"cosine"}


def test_index_of_documents_uses_default_retriever(documents: list[Document]) -> None:
    index = NodeGraphIndex.from_documents(documents)
    search = as_retriever(index)
    assert isinstance(search, DocumentRetriever)
    assert isinstance(search.inner, DefaultRetriever)
    assert len(index.as_retriever().retrieve("tea bridge Nile")) == 2


@pytest.mark.parametrize(
    ("similarity", "groups"), [(None, {"ROOT", "ROOT sentence"}), ("cosine", {"ROOT"})]
)
def test_index_of_documents_compares_vectors_of_sentences(
    documents: list[Document], model: Words, similarity: str | None, groups: set[str]
) -> None:
    index = NodeGraphIndex.from_documents(documents, embed_model=model, similarity=similarity)
    evidence = index.native_retriever.retrieve("Black tea is fermented.")[0].evidence
    assert {match.group for match in evidence if match.similarity == "cosine"} == groups


def test_vectors_of_given_nodes_are_not_computed_again(nodes: list[TextNode], model: Words) -> None:
    for node in nodes:
        node.embedding = model.get_query_embedding(TEXTS[node.node_id])
    index = NodeGraphIndex(nodes, embed_model=model, similarity="cosine")
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("Nile")
    assert (result.node_id, result.node.embedding) == ("rivers", None)
    assert model.texts == []


def test_filters_ids_and_documents_restrict_the_search(nodes: list[TextNode]) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    assert found(index, "tea Nile bridge", filters={"topic": "rivers"}) == ["rivers"]
    assert found(index, "tea Nile bridge", node_ids=["bridges"]) == ["bridges"]
    assert found(index, "tea Nile bridge", doc_ids=["tea.md", "none"]) == ["tea"]
    assert found(index, "tea Nile bridge", doc_ids=["tea.md"], node_ids=["bridges"]) == []


# Storage


def test_moved_node_survives_deletion_of_old_source(nodes: list[TextNode]) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    moved = nodes[0].model_copy(deep=True)
    moved.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="new.md")
    index.insert_nodes([moved])
    index.delete_ref_doc("tea.md", delete_from_docstore=True)
    assert found(index, "tea") == ["tea"]


def test_unknown_source_is_a_warning(
    nodes: list[TextNode], caplog: pytest.LogCaptureFixture
) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    index.delete_ref_doc("none")
    assert "there is no document 'none', nothing was deleted" in caplog.text
    index.docstore.delete_ref_doc("none", raise_error=False)
    with pytest.raises(ValueError, match="unknown document 'none'"):
        index.docstore.delete_ref_doc("none")


def test_file_of_the_graph_keeps_the_index(documents: list[Document], tmp_path: Path) -> None:
    def opened(given: list[Document], model: Words) -> NodeGraphIndex:
        store = tmp_path / "tea.nodekin"
        return NodeGraphIndex.from_documents(given, embed_model=model, store=store)

    first = opened(documents, Words(texts=[]))
    before = first.as_retriever().retrieve("Nile")
    first.graph.close()
    model = Words(texts=[])
    changed = [*documents[:2], Document(text="A bridge of wood.", id_="bridges")]
    again = opened(changed, model)
    after = again.as_retriever().retrieve("Nile")
    assert after[0].node == before[0].node
    assert len(again.ref_doc_info) == 3
    assert "A bridge of wood." in {node.get_content() for node in again.docstore.docs.values()}
    assert model.texts == ["A bridge of wood."]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
def test_equal_nodes_open_read_only_file(nodes: list[TextNode], model: Words) -> None:
    with shared_folder() as folder:

        def search() -> list[str]:
            index = NodeGraphIndex(nodes, embed_model=model, store=str(folder / "drinks.db"))
            ids = found(index, "steamed tea")
            index.graph.close()
            return ids

        right = search()
        freeze(folder)
        assert as_other_user(search) == right


@pytest.mark.parametrize("similarity", [None, "cosine"])
def test_persisted_index_keeps_vectors_and_settings(
    nodes: list[TextNode], model: Words, tmp_path: Path, similarity: str | None
) -> None:
    index = NodeGraphIndex(nodes, embed_model=model, similarity=similarity)
    index.set_index_id("drinks")
    index.storage_context.persist(str(tmp_path))
    saved = json.loads((tmp_path / "docstore.json").read_text())["docstore/data"]
    assert saved["tea"]["__data__"]["embedding"] is not None
    fresh = Words(texts=[])
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, index_id="drinks", embed_model=fresh)
    assert isinstance(loaded, NodeGraphIndex)
    query = "black tea is fermented"
    expected = [(r.node, r.score) for r in index.as_retriever().retrieve(query)]
    assert fresh.texts == []
    assert [(r.node, r.score) for r in loaded.as_retriever().retrieve(query)] == expected
    assert not {*fresh.texts} & {node.get_content(MetadataMode.EMBED) for node in nodes}


@pytest.mark.parametrize("documents", ["docs", ["Green tea."]])
def test_from_documents_of_texts_raises(documents: Any) -> None:
    with pytest.raises(TypeError, match=r"must be LlamaIndex documents, got '.*; for a text, use"):
        NodeGraphIndex.from_documents(documents)


def test_second_index_in_a_storage_context_raises(nodes: list[TextNode]) -> None:
    context = StorageContext.from_defaults()
    NodeGraphIndex(nodes, similarity="bm25", storage_context=context)
    with pytest.raises(ValueError, match="belongs to another index; create a StorageContext"):
        NodeGraphIndex(nodes, similarity="bm25", storage_context=context)


def test_storage_context_is_shared_with_vector_store_index(
    nodes: list[TextNode], model: Words
) -> None:
    context = StorageContext.from_defaults()
    ours = NodeGraphIndex(nodes[:1], embed_model=model, storage_context=context)
    theirs = VectorStoreIndex(nodes[1:], embed_model=model, storage_context=context)
    assert {*context.docstore.docs} == {*TEXTS}
    assert found(ours, "tea Nile") == ["tea"]
    assert "tea" not in found(theirs, "tea Nile", similarity_top_k=9)


def test_vector_store_of_the_context_keeps_the_vectors(nodes: list[TextNode], model: Words) -> None:
    store = OwnStore()
    context = StorageContext.from_defaults(vector_store=store)
    index = NodeGraphIndex(nodes, embed_model=model, similarity="cosine", storage_context=context)
    assert found(index, "orange bridge", similarity_top_k=1) == ["bridges"]
    assert {*store.data.embedding_dict} == {*TEXTS}
    index.delete_nodes(["bridges"])
    assert "bridges" not in found(index, "orange bridge")


def test_concurrent_inserts_of_one_document_are_all_kept() -> None:
    index = NodeGraphIndex([], similarity="bm25")
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")}

    def insert(part: int) -> None:
        index.insert_nodes([TextNode(text="tea", id_=str(part), relationships={**source})])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(20)))
    assert len(index.ref_doc_info["doc"].node_ids) == len(index.graph.nodes("ROOT")) == 20


def test_failed_transformation_changes_nothing(documents: list[Document]) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")

    def broken(nodes: Any, **options: Any) -> Any:
        raise ConnectionError("no model")

    index._transformations = [broken]
    with pytest.raises(ConnectionError):
        index.refresh_ref_docs([Document(text="New.", id_="tea")])
    assert found(index, "fermented") == ["tea"]


def test_document_is_looked_up_without_reading_others(
    nodes: list[TextNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    read: list[str] = []
    original = index.graph.reader.values

    def values(kind: str, keys: Any = None) -> Any:
        read.extend(["all"] if keys is None else keys)
        return original(kind, keys)

    monkeypatch.setattr(index.graph.reader, "values", values)
    index.delete_ref_doc("tea.md", delete_from_docstore=True)
    assert {*read} <= {"tea.md", "tea"}


# Engines


def test_unknown_arguments_raise(nodes: list[TextNode]) -> None:
    with pytest.raises(TypeError, match=r"NodeGraphIndex\(\) got .* 'path' is called 'store' here"):
        NodeGraphIndex(nodes, similarity="bm25", path="index.db")
    with pytest.raises(TypeError, match="'top_k' is called 'similarity_top_k' here"):
        NodeGraphIndex(nodes, similarity="bm25").as_retriever(top_k=3)
    with pytest.raises(ValueError, match=r"similarity='cosine' requires an embedding model: pass"):
        NodeGraphIndex(nodes, similarity="cosine")
    with pytest.raises(ValueError, match="unknown similarity 'bm52'"):
        NodeGraphIndex(nodes, similarity="bm52")


def test_unknown_chat_mode_names_the_modes(nodes: list[TextNode]) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    with pytest.raises(ValueError, match=r"chat_mode must be one of best, .*, got 'react'"):
        index.as_chat_engine("react", MockLLM())


@pytest.mark.usefixtures("closed_memories")
@pytest.mark.parametrize(
    "mode", ["best", "condense_plus_context", "context", "condense_question", "simple"]
)
def test_chat_engine_searches_except_in_simple_mode(nodes: list[TextNode], mode: str) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    answer = index.as_chat_engine(mode, MockLLM(), similarity_top_k=1).chat("tea")
    expected = [] if mode == "simple" else ["tea"]
    assert [source.node_id for source in answer.source_nodes] == expected


def test_engine_of_an_index_takes_arguments_of_both(nodes: list[TextNode]) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    engine = index.as_query_engine(
        MockLLM(), similarity_top_k=1, node_ids=["tea", "rivers"], response_mode="compact"
    )
    sources = engine.query("tea Nile bridge").source_nodes
    assert [source.node_id for source in sources] in (["tea"], ["rivers"])
    engine = type(engine).from_args(index.as_retriever(similarity_top_k=1), MockLLM())
    assert [source.node_id for source in engine.query("tea").source_nodes] == ["tea"]


def test_missing_model_names_the_remedy(nodes: list[TextNode]) -> None:
    index = NodeGraphIndex(nodes, similarity="bm25")
    call: Callable[[], Any]
    for call in (index.as_query_engine, index.as_chat_engine):
        with pytest.raises(ImportError, match=r"pass llm=\.\.\. or set Settings\.llm"):
            call()


# Embeddings


def test_index_of_many_documents_searches_vectors() -> None:
    model = Words(texts=[])
    documents = [Document(text=f"Tea {n} is green. Rivers {n} run.") for n in range(300)]
    index = NodeGraphIndex.from_documents(documents, embed_model=model)
    assert len(model.texts) == 300  # the nodes
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("tea 7")
    assert "cosine" in {match["similarity"] for match in result.evidence}
    assert len(model.texts) == 900  # and their sentences


@pytest.mark.parametrize("group", ["node", "sentence"])
def test_windows_of_many_nodes_are_searched_by_vectors(
    group: str, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [TextNode(text=f"Tea {n} is green. Rivers {n} run.") for n in range(300)]
    index = NodeGraphIndex(nodes, embed_model=Words(texts=[]), group=group)
    results = index.as_retriever(max_tokens=20).retrieve("tea 7")
    similarities = {match["similarity"] for result in results for match in result.evidence}
    assert "cosine" in similarities
    assert caplog.messages == []


def test_failing_model_adds_no_nodes() -> None:
    index = NodeGraphIndex([], embed_model=lambda texts: [[1.0]][:0])
    with pytest.raises(EmbeddingError):
        index.insert_nodes([TextNode(text="Tea.")])
    assert index.graph.nodes("ROOT") == []
    assert index.docstore.docs == {}


def test_index_comes_back_from_pickle(tmp_path: Path) -> None:
    nodes = [TextNode(text="Green tea."), TextNode(text="Black tea.")]
    for store in (None, tmp_path / "tea.nodekin"):
        index = NodeGraphIndex(nodes, embed_model=Words(texts=[]), store=store)
        again: NodeGraphIndex = pickle.loads(pickle.dumps(index))
        again.insert_nodes([TextNode(text="Mate tea.", id_="mate")])
        (result,) = again.as_retriever(similarity_top_k=1).retrieve("mate")
        assert result.node_id == "mate"
        assert len(again.vector_store.get_nodes()) == 3


@pytest.mark.parametrize("group", ["node", "sentence"])
def test_index_finds_answers_in_other_words(group: str) -> None:
    answers = [TextNode(text=text, id_=meaning) for meaning, text, _ in ANSWERS]
    others = [*CHANCE, *(f"Section {n} of the wing is grey {n}." for n in range(100))]
    nodes = [*answers, *(TextNode(text=text) for text in others)]
    index = NodeGraphIndex(nodes, embed_model=by_meaning, group=group)
    retriever = index.as_retriever(similarity_top_k=1)
    found = [retriever.retrieve(question)[0].node.node_id for _, _, question in ANSWERS]
    assert found == [meaning for meaning, _, _ in ANSWERS]
