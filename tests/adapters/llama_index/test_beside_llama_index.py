"""Programs that have LlamaIndex's documents, nodes and components already, and get nodekin."""

import copy
import hashlib
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import SimpleDirectoryReader, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    TokenTextSplitter,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.retrievers import AutoMergingRetriever, BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import BaseNode, Document, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore

from nodekin.adapters.llama_index import (
    NodeGraphDocstore,
    NodeGraphRetriever,
    as_transform,
    export_nodes,
    import_nodes,
    to_node_with_score,
)
from nodekin.nodegraph import Embedder, NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever


class Hashed(BaseEmbedding):
    """A weak embedding: counts of pairs of letters, hashed to 64 numbers."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.001] * 64
        for at in range(len(text) - 1):
            vector[hashlib.md5(text[at : at + 2].encode()).digest()[0] % 64] += 1.0
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def splitter(size: int) -> SentenceSplitter:
    def sentences(text: str) -> list[str]:  # the default one may download
        return re.split(r"(?<=[.。])", text)

    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=sentences)


@pytest.fixture
def documents() -> list[Document]:
    """Return documents as ``SimpleDirectoryReader`` makes them: with metadata and random ids."""
    fields = ["file_name", "file_size"]
    return [
        Document(
            text=" ".join(f"{tea} tea number {at} is a drink of water." for at in range(30)),
            metadata={"file_path": f"/teas/{tea}.txt", "file_name": f"{tea}.txt", "file_size": 7},
            excluded_embed_metadata_keys=fields,
            excluded_llm_metadata_keys=fields,
        )
        for tea in ("Green", "Black")
    ]


@pytest.fixture
def hierarchy(documents: list[Document]) -> list[BaseNode]:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={"large": splitter(200), "small": splitter(40)},
    )
    return parser.get_nodes_from_documents(documents)


@pytest.fixture
def imported(documents: list[Document], hierarchy: list[BaseNode]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    import_nodes(graph, hierarchy, documents=documents, groups=["large", "small"])
    return graph


def ids_of(relationship: Any) -> list[str]:
    return [i.node_id for i in (relationship if isinstance(relationship, list) else [relationship])]


# Imported nodes are the old nodes


def test_imported_nodes_have_their_metadata_hash_and_relationships(
    imported: NodeGraph, hierarchy: list[BaseNode]
) -> None:
    old = {node.node_id: node for node in hierarchy}
    for group in ("large", "small"):
        results = NodeGraphRetriever(Retriever(imported, group, top_k=4)).retrieve("tea number 7")
        assert len(results) == 4
        for result in results:
            before = old[result.node_id]
            assert repr(result.metadata) == repr(before.metadata)
            assert result.node.hash == before.hash
            for kind, info in before.relationships.items():
                assert ids_of(result.node.relationships[kind]) == ids_of(info)
            excluded = result.node.excluded_embed_metadata_keys
            assert excluded == before.excluded_embed_metadata_keys


def test_metadata_in_another_order_than_the_documents_keeps_its_hash() -> None:
    document = Document(text="Tea is a drink.", metadata={"a": 1, "b": True}, id_="d")
    (node,) = splitter(40).get_nodes_from_documents([document])
    node.metadata = {"title": "Tea", "b": True, "tags": ["x"]}
    graph = NodeGraph()
    import_nodes(graph, [node], documents=[document], groups=["chunk"])
    (result,) = NodeGraphRetriever(Retriever(graph, "chunk")).retrieve("tea")
    assert result.node.hash == node.hash


def questions(data: Path) -> tuple[list[Document], list[tuple[str, str]]]:
    """Return paragraphs of CMRC 2018 as documents, and questions with the paragraph's id."""
    read = json.loads((data / "cmrc2018" / "dev.json").read_text("utf-8"))
    paragraphs = [p for article in read["data"] for p in article["paragraphs"]][:256]
    documents = [
        Document(text=p["context"], metadata={"file_path": f"/cmrc/{p['id']}"}, id_=p["id"])
        for p in paragraphs
    ]
    asked = [(qa["question"], p["id"]) for p in paragraphs for qa in p["qas"]]
    return documents, asked[:: max(1, len(asked) // 150)][:150]


def recall_and_mrr(retrieve: Any, asked: list[tuple[str, str]]) -> tuple[float, float]:
    ranks = []
    for question, gold in asked:
        found = [i.split("#")[0] for i in retrieve(question)][:5]
        ranks.append(found.index(gold) + 1 if gold in found else 0)
    at_one = sum(rank == 1 for rank in ranks) / len(ranks)
    return at_one, sum(1 / rank for rank in ranks if rank) / len(ranks)


@pytest.mark.slow
def test_fusion_beside_an_existing_index_sums_the_scores(data: Path) -> None:
    documents, asked = questions(data)
    nodes = [
        node
        for document in documents
        for node in SentenceSplitter(
            chunk_size=4096, chunk_overlap=0, chunking_tokenizer_fn=split_sentences
        ).get_nodes_from_documents([document])
    ]
    for node in nodes:
        node.id_ = f"{node.ref_doc_id}#0"
    assert len(nodes) == len(documents)
    graph = NodeGraph(embed=Hashed(), progress=False)
    (group,) = import_nodes(graph, nodes, documents=documents).groups
    words = Retriever(graph, group, "bm25", top_k=10)
    index = VectorStoreIndex(nodes, embed_model=Hashed())
    beside = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=10), NodeGraphRetriever(words)],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        num_queries=1,
        similarity_top_k=5,
        use_async=False,
    )
    vectors = Retriever(graph, group, "cosine", top_k=10)
    own = FusionRetriever([vectors, words], mode="rrf", rank_constant=59, top_k=5)
    alone = recall_and_mrr(lambda q: [r.node_id for r in beside._retrievers[0].retrieve(q)], asked)
    ours = recall_and_mrr(lambda q: [r.node.document_id for r in own(q)], asked)
    theirs = recall_and_mrr(lambda q: [r.node_id for r in beside.retrieve(q)], asked)
    assert theirs[0] > alone[0] + 0.1
    assert theirs == pytest.approx(ours, abs=0.02)


def test_metadata_of_results_is_the_users(documents: list[Document]) -> None:
    graph = NodeGraph()
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    for group in ("ROOT", "sentence"):
        (result,) = NodeGraphRetriever(Retriever(graph, group, top_k=1)).retrieve("Green tea")
        assert result.metadata == documents[0].metadata
    exported = {node.node_id: node.hash for node in export_nodes(graph, "sentence")}
    results = NodeGraphRetriever(Retriever(graph, "sentence")).retrieve("Green tea")
    assert all(exported[result.node_id] == result.node.hash for result in results)


def test_an_import_survives_a_restart_without_the_old_nodes(
    documents: list[Document], hierarchy: list[BaseNode], tmp_path: Path
) -> None:
    with NodeGraph(store=tmp_path / "graph.nodekin", progress=False) as graph:
        import_nodes(graph, hierarchy, documents=documents, groups=["large", "small"])
    by_id = {node.node_id: node for node in hierarchy}
    with NodeGraph(store=tmp_path / "graph.nodekin", progress=False) as graph:
        search = Retriever(graph, "small", target="large", top_k=2)
        results = NodeGraphRetriever(search).retrieve("Black tea number 7")
        assert [result.node.hash for result in results] == [
            by_id[result.node_id].hash for result in results
        ]
        assert len(results) == 2
        assert {n.node_id for n in export_nodes(graph, "small")} == set(by_id)


def test_a_folder_that_simple_directory_reader_reads_twice_is_there_once(tmp_path: Path) -> None:
    for name in ("green", "black"):
        (tmp_path / f"{name}.txt").write_text(f"{name} tea", "utf-8")
    graph = NodeGraph()
    ids = [graph.add(SimpleDirectoryReader(str(tmp_path)).load_data()) for _ in range(2)]
    assert ids[0] == ids[1]
    assert sorted(node.text for node in graph.nodes("ROOT")) == ["black tea", "green tea"]


def test_vectors_that_nodes_have_are_taken_over_when_the_model_is_named(
    documents: list[Document], hierarchy: list[BaseNode]
) -> None:
    model = Hashed()
    for node in hierarchy:
        node.embedding = model.get_text_embedding(node.get_content("embed"))
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [model.get_text_embedding(text) for text in texts]

    found = []
    for key in ("default", None):
        graph = NodeGraph(embed=Embedder(embed, embed_queries=embed), progress=False)
        result = import_nodes(graph, hierarchy, documents=documents, embed_key=key)
        assert result.vectors == (len(hierarchy) if key else 0)
        embedded.clear()
        hits = Retriever(graph, result.groups[-1], "cosine", top_k=5)("Black tea number 7")
        found.append([(hit.node.metadata["llama_index_id"], hit.score) for hit in hits])
        assert (len(embedded) < 5) == (key == "default")
    assert found[0] == found[1]
    with pytest.raises(LookupError, match="'e5'"):
        import_nodes(graph, hierarchy, documents=documents, embed_key="e5")


# Results have relatives


@pytest.mark.parametrize("mode", ["both", "next", "previous"])
def test_prev_next_postprocessor_works_from_hits(documents: list[Document], mode: Any) -> None:
    graph = NodeGraph()
    graph.add(documents)
    graph.create_node_group("sentence", split_sentences)
    hits = NodeGraphRetriever(Retriever(graph, "sentence", top_k=1)).retrieve("Green number 7")
    widen = PrevNextNodePostprocessor(
        docstore=NodeGraphDocstore(graph, ["sentence"]), mode=mode, num_nodes=1
    )
    numbers = [re.findall(r"\d+", r.text)[0] for r in widen.postprocess_nodes(hits)]
    assert numbers == {"both": ["6", "7", "8"], "next": ["7", "8"], "previous": ["6", "7"]}[mode]


class Fixed(BaseRetriever):
    """Return the hits that it was given."""

    def __init__(self, hits: list[Any]) -> None:
        super().__init__()
        self.hits = hits

    def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
        return self.hits


def hits_in_order(graph: NodeGraph, *places: int) -> list[Any]:
    """Return results for the small nodes of these places, in their order."""
    wanted = [graph.nodes("small")[place].id for place in places]
    everything = Retriever(graph, "small", top_k=99).retrieve("tea number drink water Green Black")
    by_id = {result.node.id: result for result in everything}
    return [to_node_with_score(by_id[i]) for i in wanted]


def test_auto_merging_fills_the_gap_between_hits(
    imported: NodeGraph, hierarchy: list[BaseNode]
) -> None:
    old = SimpleDocumentStore()
    old.add_documents(hierarchy)
    leaves = get_leaf_nodes(hierarchy)
    filled = []
    for docstore in (old, NodeGraphDocstore(imported, ["small"])):
        hits = hits_in_order(imported, 0, 2)
        storage = StorageContext.from_defaults(docstore=docstore)
        merging = AutoMergingRetriever(Fixed(hits), storage, simple_ratio_thresh=0.9)
        filled.append([r.node_id for r in merging.retrieve("tea")])
    assert filled[0] == filled[1]
    assert set(filled[1]) == {leaf.node_id for leaf in leaves[:3]}


@pytest.mark.parametrize("made", ["imported", "derived"])
def test_auto_merging_stops_at_the_largest_chunk(
    documents: list[Document], imported: NodeGraph, made: str
) -> None:
    graph = imported
    if made == "derived":
        graph = NodeGraph()
        graph.add(documents)
        graph.create_node_group("large", splitter(200))
        graph.create_node_group("small", splitter(40), parent="large")
    hits = NodeGraphRetriever(Retriever(graph, "small", top_k=99)).retrieve("tea drink water")
    assert len(hits) == len(graph.nodes("small"))
    large = {to_id(node) for node in graph.nodes("large")}
    for docstore in (NodeGraphDocstore(graph), exported_docstore(graph)):
        storage = StorageContext.from_defaults(docstore=docstore)
        merged = AutoMergingRetriever(Fixed(list(hits)), storage).retrieve("tea")
        assert {result.node_id for result in merged} == large


def to_id(node: Any) -> str:
    return str(node.own_metadata.get("llama_index_id", node.id))


def exported_docstore(graph: NodeGraph) -> SimpleDocumentStore:
    docstore = SimpleDocumentStore()
    docstore.add_documents(export_nodes(graph, "small"))
    return docstore


def test_a_persisted_storage_context_keeps_the_docstore(
    imported: NodeGraph, hierarchy: list[BaseNode], tmp_path: Path
) -> None:
    docstore = NodeGraphDocstore(imported, ["small"])
    StorageContext.from_defaults(docstore=docstore).persist(str(tmp_path))
    loaded = StorageContext.from_defaults(persist_dir=str(tmp_path)).docstore
    assert set(loaded.docs) == {node.node_id for node in hierarchy}
    hits = NodeGraphRetriever(Retriever(imported, "small", top_k=99)).retrieve("tea drink water")
    for store in (docstore, loaded):
        storage = StorageContext.from_defaults(docstore=store)
        merged = AutoMergingRetriever(Fixed(list(hits)), storage).retrieve("tea")
        assert {r.node_id for r in merged} == {n.node_id for n in get_root_nodes(hierarchy)}
    assert loaded.docs == docstore.docs


def test_an_index_or_pipeline_over_the_docstore_says_what_to_do(imported: NodeGraph) -> None:
    docstore = NodeGraphDocstore(imported, ["small"])
    with pytest.raises(NotImplementedError, match="SimpleDocumentStore of export_nodes"):
        IngestionPipeline(
            transformations=[splitter(40)],
            docstore=docstore,
            docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
        ).run(documents=[Document(text="New.")])
    # An index with a vector store that has no texts writes them to its docstore.
    with pytest.raises(NotImplementedError, match=r"graph\.add\(documents\)"):
        VectorStoreIndex(
            export_nodes(imported, "small"),
            storage_context=StorageContext.from_defaults(docstore=docstore),
            embed_model=Hashed(),
        )


def test_whole_documents_are_not_among_the_docstores_nodes(
    imported: NodeGraph, documents: list[Document]
) -> None:
    docstore = NodeGraphDocstore(imported)
    assert not {d.node_id for d in documents} & set(docstore.docs)
    assert docstore.get_document(documents[0].node_id).text == documents[0].text
    assert len(NodeGraphDocstore(imported, ["ROOT"]).docs) == len(documents)


def test_roots_and_leaves_of_exported_nodes_are_those_of_the_parser(
    imported: NodeGraph, hierarchy: list[BaseNode]
) -> None:
    exported = export_nodes(imported, "small")
    for choose in (get_root_nodes, get_leaf_nodes):
        assert [n.node_id for n in choose(exported)] == [n.node_id for n in choose(hierarchy)]
    assert {n.node_id for n in exported} == {n.node_id for n in hierarchy}


# Graphs with LlamaIndex's splitters


SPLITTERS: dict[str, Callable[[], Any]] = {
    "sentences": lambda: splitter(40),
    "tokens": lambda: TokenTextSplitter(chunk_size=40, chunk_overlap=0),
    "metadata-aware": lambda: as_transform(splitter(60)),
    "windows": lambda: as_transform(
        SentenceWindowNodeParser.from_defaults(sentence_splitter=split_sentences)
    ),
    "Markdown": lambda: as_transform(MarkdownNodeParser()),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_a_graph_with_a_splitter_of_llama_index_is_copied_and_pickled(
    documents: list[Document], name: str
) -> None:
    graph = NodeGraph()
    graph.add(documents)
    graph.create_node_group("chunk", SPLITTERS[name]())
    retriever = NodeGraphRetriever(Retriever(graph, "chunk", top_k=2))
    wanted = [r.node_id for r in retriever.retrieve("Green tea")]
    for way in (copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))):
        other, again = way((graph, retriever))
        assert [r.node_id for r in again.retrieve("Green tea")] == wanted
        other.add("New tea.")
        assert "New tea." in [r.text for r in again.retrieve("New tea.")]
    assert "New tea." not in [r.text for r in retriever.retrieve("New tea.")]
