"""What LlamaIndex users begin with: documents, nodes, docstores, storage contexts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Settings, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from nodekin.adapters.llama_index import (
    NodeGraphDocstore,
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphRetriever,
    from_text_node,
)
from nodekin.nodegraph import split_sentences
from nodekin.retrievers import DefaultRetriever, Retriever, as_retriever

TEXTS = {
    "tea": "Green tea is steamed. Its leaves stay green. Black tea is fermented.",
    "rivers": "The Nile is 6,650 km long. It runs north.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}


class Letters(BaseEmbedding):
    """Count letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return [0.1 + query.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


@pytest.fixture
def documents() -> list[Document]:
    return [Document(text=text, id_=name, metadata={"of": name}) for name, text in TEXTS.items()]


@pytest.fixture(autouse=True)
def no_embed_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set a model that fails: what is searched by words reads none."""
    before = Settings._embed_model
    Settings._embed_model = None

    def missing(name: str) -> None:
        raise ImportError("`llama-index-embeddings-openai` package not found")

    monkeypatch.setattr("llama_index.core.settings.resolve_embed_model", missing)
    yield
    Settings._embed_model = before


def texts(results: Any) -> list[str]:
    return [result.text for result in results]


def test_every_first_line_of_llama_index_has_its_own_here() -> None:
    ours = {
        VectorStoreIndex: NodeGraphIndex,
        BaseRetriever: NodeGraphRetriever,
    }
    first = ("from_documents", "as_retriever", "as_query_engine", "as_chat_engine", "insert")
    more = ("insert_nodes", "refresh_ref_docs", "delete_ref_doc", "ref_doc_info", "docstore")
    for name in (*first, *more, "storage_context"):
        assert hasattr(VectorStoreIndex, name), name
        assert hasattr(ours[VectorStoreIndex], name), name
    for name in ("from_documents", "from_defaults"):  # BM25Retriever has the second
        assert callable(getattr(NodeGraphRetriever, name))
    for name in ("from_args", "from_defaults"):  # RetrieverQueryEngine, SubQuestionQueryEngine
        assert callable(getattr(NodeGraphQueryEngine, name))


def test_the_default_is_that_of_every_graph(documents: list[Document]) -> None:
    index = NodeGraphIndex.from_documents(documents, embed_model=Letters())
    search = as_retriever(index)
    assert isinstance(search, DefaultRetriever)
    assert [name for name, _ in search.inner_retrievers] == ["sentences", "words", "default"]
    of_words = as_retriever(NodeGraphIndex.from_documents(documents, similarity="bm25"))
    assert isinstance(of_words, DefaultRetriever)
    assert [name for name, _ in of_words.inner_retrievers] == ["sentences", "words"]
    of_vectors = as_retriever(
        NodeGraphIndex.from_documents(documents, similarity="cosine", embed_model=Letters())
    )
    assert isinstance(of_vectors, Retriever)
    assert of_vectors.similarity.name == "cosine"


def test_a_retriever_of_documents_in_one_line(documents: list[Document]) -> None:
    retriever = NodeGraphRetriever.from_documents(
        documents, similarity="bm25", similarity_top_k=1, filters={"of": {"ne": "tea"}}
    )
    (result,) = retriever.retrieve("Is the orange bridge green?")
    assert result.node.metadata["of"] == "bridges"
    fused = QueryFusionRetriever([retriever], num_queries=1, use_async=False, llm=MockLLM())
    assert texts(fused.retrieve("orange")) == [TEXTS["bridges"]]


def test_from_defaults_takes_nodes_an_index_or_a_docstore(documents: list[Document]) -> None:
    nodes = SentenceSplitter(
        chunk_size=24, chunk_overlap=0, paragraph_separator="\n", chunking_tokenizer_fn=str.split
    ).get_nodes_from_documents(documents)
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    index = VectorStoreIndex(nodes, embed_model=Letters())
    sources: list[dict[str, Any]] = [{"nodes": nodes}, {"docstore": store}, {"index": index}]
    for source in sources:
        retriever = NodeGraphRetriever.from_defaults(
            **source, similarity="bm25", similarity_top_k=1
        )
        (result,) = retriever.retrieve("Who is painted in orange?")
        assert result.node.node_id in {node.node_id for node in nodes}
        assert "orange" in result.text
    for wrong in ({}, {"nodes": nodes, "docstore": store}):
        with pytest.raises(ValueError, match="one of index, nodes and docstore"):
            NodeGraphRetriever.from_defaults(**wrong, similarity="bm25")
    with pytest.raises(ValueError, match=r"no nodes.*NodeGraphRetriever\(index\)"):
        NodeGraphRetriever.from_defaults(docstore=SimpleDocumentStore(), similarity="bm25")
    with pytest.raises(ImportError, match="similarity='bm25'"):
        NodeGraphRetriever.from_defaults(nodes=nodes)


def test_a_storage_context_is_used_as_in_llama_index(
    documents: list[Document], tmp_path: Path
) -> None:
    for kind in (VectorStoreIndex, NodeGraphIndex):
        vectors = SimpleVectorStore()
        context = StorageContext.from_defaults(vector_store=vectors)
        index = kind.from_documents(
            documents, storage_context=context, embed_model=Letters(), similarity="cosine"
        )
        assert texts(index.as_retriever(similarity_top_k=1).retrieve("painted in orange")) == [
            TEXTS["bridges"]
        ]
        assert vectors.data.embedding_dict  # the store has the vectors
        assert len(context.docstore.docs) == 3  # the docstore has the nodes
        assert index.storage_context is context
        folder = tmp_path / kind.__name__
        context.persist(str(folder))
        kept = StorageContext.from_defaults(persist_dir=str(folder))
        assert sorted(texts(kept.docstore.docs.values())) == sorted(TEXTS.values())
    again = NodeGraphIndex.from_nodes([*kept.docstore.docs.values()], similarity="bm25")
    assert texts(again.as_retriever(similarity_top_k=1).retrieve("Nile")) == [TEXTS["rivers"]]


def test_an_index_without_a_storage_context_has_one(
    documents: list[Document], tmp_path: Path
) -> None:
    index = NodeGraphIndex.from_documents(documents, similarity="bm25")
    assert isinstance(index.storage_context.docstore, NodeGraphDocstore)
    index.storage_context.persist(str(tmp_path))
    assert index.storage_context is index.storage_context
    kept = StorageContext.from_defaults(persist_dir=str(tmp_path))
    assert len(kept.docstore.docs) == 3


def test_auto_merging_reads_the_graph_in_the_storage_context() -> None:
    sizes = (64, 16)
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={
            name: SentenceSplitter(
                chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
            )
            for name, size in zip(("large", "small"), sizes, strict=True)
        },
    )
    nodes = parser.get_nodes_from_documents([Document(text=TEXTS["tea"] * 2)])
    context = StorageContext.from_defaults()
    index = NodeGraphIndex.from_nodes(nodes, storage_context=context, similarity="bm25")
    merging = AutoMergingRetriever(index.as_retriever(similarity_top_k=9), context)
    merged = merging.retrieve("green tea steamed leaves black fermented")
    assert {node.node_id for node in merged} < {node.node_id for node in nodes}
    assert len(merged) < len(get_leaf_nodes(nodes))


def test_what_a_storage_context_has_and_would_not_be_used_is_an_error(
    documents: list[Document],
) -> None:
    filled = SimpleDocumentStore()
    filled.add_documents([TextNode(text="Tea.")])
    with pytest.raises(ValueError, match=r"stores documents and nodes itself.*from_nodes"):
        NodeGraphIndex.from_documents(
            documents,
            storage_context=StorageContext.from_defaults(docstore=filled),
            similarity="bm25",
        )
    graph = NodeGraphIndex.from_documents(documents, similarity="bm25").graph
    with pytest.raises(ValueError, match="would not use the NodeGraphDocstore"):
        NodeGraphIndex.from_documents(
            documents,
            storage_context=StorageContext.from_defaults(docstore=NodeGraphDocstore(graph)),
            similarity="bm25",
        )
    with pytest.raises(ValueError, match="compares words, and no vector store is used"):
        NodeGraphIndex.from_documents(
            documents, vector_store=SimpleVectorStore(), similarity="bm25"
        )
    one, other = (
        VectorStoreIndex([TextNode(text="Tea.")], embed_model=Letters()).vector_store,
        SimpleVectorStore(),
    )
    with pytest.raises(ValueError, match="different stores"):
        NodeGraphIndex.from_documents(
            documents,
            vector_store=other,
            storage_context=StorageContext.from_defaults(vector_store=one),
            embed_model=Letters(),
        )


def test_unknown_options_are_told_what_there_is(documents: list[Document]) -> None:
    with pytest.raises(TypeError, match="no argument 'service_context'; there is embed_model"):
        NodeGraphIndex.from_documents(documents, service_context=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="transformations are for documents"):
        NodeGraphIndex.from_nodes(
            [TextNode(text="Tea.")], transformations=[SentenceSplitter()], similarity="bm25"
        )


def test_nodes_are_inserted_into_an_index_of_nodes(documents: list[Document]) -> None:
    index = NodeGraphIndex.from_nodes([TextNode(text="Tea is green.")], similarity="bm25")
    index.insert_nodes([TextNode(text="Milk is white.", id_="milk")])
    (result,) = index.as_retriever(similarity_top_k=1).retrieve("milk")
    assert (result.node.node_id, from_text_node(result.node).group) == ("milk", "node")
    of_documents = NodeGraphIndex.from_documents(documents, similarity="bm25")
    with pytest.raises(TypeError, match=r"made of documents.*insert"):
        of_documents.insert_nodes([TextNode(text="Milk is white.")])
