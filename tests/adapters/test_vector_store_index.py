"""Any vector store as an index, without a framework: a backend of five methods is enough."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langchain_core.documents import Document
from support.index_checks import check_index
from support.letters import Letters
from support.stress import amount
from support.vector_stores import QUERIES, TEXTS, CountingStore, library, rows

from nodekin.adapters.langchain import as_index
from nodekin.adapters.langchain.vector_store_backend import GraphEmbeddings
from nodekin.adapters.vector_store_index import (
    EmbeddedNode,
    StoreIndex,
    StoreIndexes,
    VectorBackend,
)
from nodekin.nodegraph import Embedder, NodeGraph, split_sentences
from nodekin.nodegraph.concurrency import is_reading_graph
from nodekin.retrievers import RecursiveRetriever, Retriever
from nodekin.retrievers.indexes.nearest_vectors import unit


class ListBackend(VectorBackend):
    """Vectors in a dictionary; finds at most ``most`` of them."""

    name = "list"
    identity = None

    def __init__(self, most: int = 1000) -> None:
        self.vectors: dict[str, np.ndarray] = {}
        self.fingerprints: dict[str, str] = {}
        self.most = most

    def nearest_ids(self, vector: np.ndarray, count: int) -> list[str]:
        ranking = sorted(self.vectors, key=lambda i: -float(self.vectors[i] @ vector))
        return ["foreign", *ranking][: min(count, self.most)]

    def stored(self, ids: Sequence[str]) -> dict[str, str]:
        return {i: self.fingerprints[i] for i in ids if i in self.fingerprints}

    def count(self) -> int | None:
        return len(self.vectors)

    def delete(self, ids: Sequence[str]) -> None:
        for i in ids:
            del self.vectors[i], self.fingerprints[i]

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        assert not {row.node.id for row in nodes} & set(self.vectors)
        self.vectors.update((row.node.id, unit(row.vector[np.newaxis])[0]) for row in nodes)
        self.fingerprints.update((row.node.id, row.fingerprint) for row in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1000, 2])
def test_store_index_meets_the_index_contract(most: int) -> None:
    check_index(
        "cosine",
        index=StoreIndexes("store", lambda graph, group, key: ListBackend(most), is_shared=False),
    )


def test_store_is_searched_without_the_graph_lock() -> None:
    removed: list[str] = []

    class Changing(ListBackend):
        def nearest_ids(self, vector: np.ndarray, count: int) -> list[str]:
            if not removed:
                assert not is_reading_graph()
                removed.append("9")
                graph.remove("9")
            return super().nearest_ids(vector, count)

    backend = Changing()
    index = StoreIndexes(backend, lambda graph, group, key: backend, is_shared=True)
    graph = NodeGraph(embed=lambda texts: [[int(text), 1] for text in texts], progress=False)
    graph.add([Document(str(number), id=str(number)) for number in range(10)])
    results = Retriever(graph, "ROOT", "cosine", index=index, top_k=3)("9")
    assert removed
    assert [result.node.id for result in results] == ["8", "7", "6"]


def test_store_indexes_of_equal_stores_are_equal() -> None:
    store = object()
    first, second, other = (
        StoreIndexes(s, lambda *_: ListBackend(), is_shared=True) for s in (store, store, object())
    )
    assert first == second != other
    assert hash(first) == hash(second)
    graph = NodeGraph(embed=lambda texts: [[1, 1] for _ in texts], progress=False)
    assert first.cosine.open(graph, "ROOT", "default") is second.cosine.open(
        graph, "ROOT", "default"
    )


class Few(Letters):
    """Another model, with shorter vectors."""

    ALPHABET = "ts"


@pytest.fixture
def stores():
    return {}


@pytest.fixture
def index(stores):
    def make(embeddings, group):
        stores[group] = CountingStore(embeddings)
        return stores[group]

    return as_index(make, name="letters")


def test_ties_are_in_document_order(index, stores):
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add([Document("tea", metadata={"n": n}, id=str(n)) for n in range(40)])
    retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=3)
    for first in (0, 30):
        found = retriever.retrieve("tea", filters={"n": {"gte": first}})
        assert [each.node.id for each in found] == [str(first + n) for n in range(3)]
    assert stores["ROOT"].asked[:2] == [7, 28]  # a larger request, since all scores tie


def test_changed_metadata_writes_nothing(index, stores):
    graph = library()
    retriever = Retriever(graph, "sentence", "cosine", index=index)
    retriever.retrieve("tea")
    written = list(stores["sentence"].added)
    graph.add(Document(TEXTS[0], metadata={"n": 100}, id="d0"))
    found = retriever.retrieve("tea", filters={"n": 100})
    assert {each.node.document_id for each in found} == {"d0"}
    assert stores["sentence"].added == written
    assert stores["sentence"].deleted == []


def test_recursive_retrieval_equals_built_in_index(index, stores):
    graph = library(3)
    graph.create_node_group("half", lambda text: [text[:9], text[9:]])
    groups = ["sentence", "half", "ROOT"]
    ours = RecursiveRetriever(graph, groups, "ROOT", "cosine", top_k=3)
    theirs = RecursiveRetriever(graph, groups, "ROOT", index.cosine, top_k=3)
    for query in QUERIES:
        for filters in (None, {"even": True}):
            found = theirs.retrieve(query, filters=filters)
            assert rows(found) == rows(ours.retrieve(query, filters=filters))
    assert set(stores) == set(groups)


def test_graphs_and_embeddings_have_separate_stores():
    """Each graph has a separate store, since model and group do not identify the graph."""
    made = []

    def make(embeddings, group):
        made.append((embeddings.graph, embeddings.key, group))
        return CountingStore(embeddings)

    graphs = [NodeGraph(embed={"a": Letters(), "b": Few()}, progress=False) for _ in range(2)]
    for number, graph in enumerate(graphs):
        graph.add([f"{text} {number}" for text in TEXTS])
    index = as_index(make)
    ours = Retriever(graphs, "ROOT", "cosine", top_k=3)
    theirs = Retriever(graphs, "ROOT", "cosine", index=index, top_k=3)
    for query in QUERIES:
        assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    assert len(made) == len(set(made)) == 4


def test_store_is_shared_by_several_groups():
    graph = library(3)
    store = CountingStore(GraphEmbeddings(graph))
    store.store["foreign"] = {
        "id": "foreign",
        "vector": Letters().vector("tea"),
        "text": "tea",
        "metadata": {},
    }
    index = as_index(store)
    for group in ("sentence", "ROOT"):
        ours = Retriever(graph, group, "cosine", top_k=3)
        theirs = Retriever(graph, group, "cosine", index=index, top_k=3)
        for query in ("tea", "河"):
            assert rows(theirs.retrieve(query)) == rows(ours.retrieve(query))
    graph.remove(["d0", "d1"])
    Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea")
    assert "foreign" in store.store


def test_store_with_two_embeddings_raises():
    graph = NodeGraph(embed={"a": Letters(), "b": Few()}, progress=False)
    graph.add(TEXTS)
    index = as_index(CountingStore(GraphEmbeddings(graph, "a")))
    assert Retriever(graph, "ROOT", "cosine", index=index, embed_keys=["a"]).retrieve("tea")
    with pytest.raises(ValueError, match=r"embedding 'a' and can't also hold those of 'b'"):
        Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea")


def test_changed_model_rewrites_the_store(tmp_path):
    """The store still has vectors of the previous model."""

    file, store = tmp_path / "g.nodekin", None
    for model in (Letters(), Few()):
        with NodeGraph(embed=model, store=file, progress=False) as graph:
            ids = graph.add(TEXTS)
            if store is None:
                store = CountingStore(GraphEmbeddings(graph))
            store.embedding = GraphEmbeddings(graph)
            store.added.clear()
            retriever = Retriever(
                graph, "ROOT", "cosine", index=as_index(store, name="letters"), top_k=2
            )
            assert rows(retriever.retrieve("tea")) == rows(
                Retriever(graph, "ROOT", "cosine", top_k=2).retrieve("tea")
            )
            assert sorted(store.added) == sorted(ids)


def test_unnamed_store_of_graph_in_file_requires_name(tmp_path):
    with NodeGraph(embed=Letters(), store=tmp_path / "g.nodekin", progress=False) as graph:
        graph.add(TEXTS)
        store = CountingStore(GraphEmbeddings(graph))
        with pytest.raises(ValueError, match=r'; write as_index\(store, name="vectors"\)$'):
            Retriever(graph, "ROOT", "cosine", index=as_index(store)).retrieve("tea")
        found = Retriever(graph, "ROOT", "cosine", index=as_index(store, name="x")).retrieve("tea")
        assert rows(found) == rows(Retriever(graph, "ROOT", "cosine").retrieve("tea"))


def test_lost_store_with_known_name_is_filled_again(tmp_path):
    for _ in range(2):  # a store in memory is empty in the second process
        with NodeGraph(embed=Letters(), store=tmp_path / "g.nodekin", progress=False) as graph:
            ids = graph.add(TEXTS)
            store = CountingStore(GraphEmbeddings(graph))
            index = as_index(store, name="vectors")
            Retriever(graph, "ROOT", "cosine", index=index).retrieve("tea")
            assert sorted(store.added) == sorted(ids)


@pytest.mark.parametrize("name", ["", " ", 3])
def test_name_of_index_must_be_a_text(name):
    with pytest.raises(TypeError, match="name must be a text, got"):
        as_index(CountingStore(Letters()), name=name)


def test_similarity_without_vectors_raises(index):
    with pytest.raises(TypeError, match="got 'bm25'"):
        Retriever(library(), "sentence", "bm25", index=index).retrieve("tea")


class InStep(RuleBasedStateMachine):
    """Random changes of the graph, after which store and built-in index return equal results."""

    @initialize()
    def begin(self):
        self.graph = NodeGraph(embed=Letters(), progress=False)
        self.graph.create_node_group("sentence", split_sentences)
        self.made = []

        def make(embeddings, group):
            self.made.append(CountingStore(embeddings))
            return self.made[-1]

        index = as_index(make)
        self.pairs = [
            (
                Retriever(self.graph, "sentence", "cosine", index=index, top_k=k),
                Retriever(self.graph, "sentence", "cosine", top_k=k),
            )
            for k in (1, 3)
        ]

    @rule(
        number=st.integers(0, 4),
        texts=st.lists(
            st.sampled_from(["Tea. ", "红茶。", "River runs. ", "河。", "Tea. "]), min_size=1
        ),
        field=st.booleans(),
    )
    def add(self, number, texts, field):
        self.graph.add(Document("".join(texts), metadata={"f": field}, id=str(number)))

    @rule(number=st.integers(0, 4))
    def remove(self, number):
        there = {node.id for node in self.graph.nodes("ROOT")}
        self.graph.remove({str(number)} & there)

    @rule(after=st.integers(0, 3))
    def fail(self, after):
        for store in self.made:
            store.fail_after = after

    @rule(query=st.sampled_from(["tea", "河", "red river"]), f=st.sampled_from([None, True, False]))
    def search(self, query, f):
        filters = None if f is None else {"f": f}
        for theirs, ours in self.pairs:
            try:
                found = theirs.retrieve(query, filters=filters)
            except ConnectionError:
                found = theirs.retrieve(query, filters=filters)
            assert rows(found) == rows(ours.retrieve(query, filters=filters))
            (store,) = self.made
            assert set(store.store) == {node.id for node in self.graph.nodes("sentence")}

    @invariant()
    def one_store(self):
        assert len(getattr(self, "made", [])) <= 1


TestInStep = InStep.TestCase


TestInStep.settings = settings(max_examples=amount(10, 30), stateful_step_count=15)


def test_nodes_above_batch_limit_are_written_in_parts(capsys):
    """Chroma rejects more than 5,461 nodes per call."""

    class Limited(ListBackend):
        def add(self, nodes):
            assert len(nodes) <= 5_461
            super().add(nodes)

    backend = Limited(most=10_000)
    index = StoreIndexes(backend, lambda *_: backend, is_shared=True)
    graph = NodeGraph(embed=lambda texts: [[float(text), 1] for text in texts], progress=True)
    graph.add([Document(str(number), id=str(number)) for number in range(7_000)])
    retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=1)
    assert [result.node.id for result in retriever("0")] == ["0"]
    assert len(backend.vectors) == 7_000
    assert "vectors of ROOT" in capsys.readouterr().err
    graph.add("7000")
    retriever("0")
    assert len(backend.vectors) == 7_001
    assert "vectors of ROOT" not in capsys.readouterr().err  # few vectors need no progress bar


class NamedBackend(ListBackend):
    """A named store, whose contents the graph records. Counts calls."""

    identity = "named"

    def __init__(self, *, has_lookup: bool = True, has_count: bool = True) -> None:
        super().__init__()
        self.has_lookup = has_lookup
        self.has_count = has_count
        self.looked_up: list[str] = []
        self.added: list[str] = []
        self.deleted: list[str] = []

    def nearest_ids(self, vector: np.ndarray, count: int) -> list[str]:
        return super().nearest_ids(vector, count + 1)[1:]

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        self.looked_up += ids
        return super().stored(ids) if self.has_lookup else None

    def count(self) -> int | None:
        return super().count() if self.has_count else None

    def delete(self, ids: Sequence[str]) -> None:
        self.deleted += ids
        super().delete([i for i in ids if i in self.vectors])

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        self.added += [row.node.id for row in nodes]
        super().add(nodes)

    def lose(self, ids: Sequence[str]) -> None:
        """Delete rows as another program does."""
        super().delete(ids)

    def forget_calls(self) -> None:
        self.looked_up, self.added, self.deleted = [], [], []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "graph.db"


def distinct() -> Embedder:
    """Return a model with a random vector for each text."""

    def embed(texts: list[str]) -> list[Any]:
        return [np.random.default_rng(list(text.encode())).normal(size=8) for text in texts]

    return Embedder(embed, "distinct")


@contextmanager
def opened(
    file: Path, backend: NamedBackend, count: int = 0, model: Any = None, **settings: Any
) -> Iterator[Any]:
    """Yield the graph in the file, and its retrievers: in the store, and built in."""
    index = StoreIndexes(object(), lambda *_: backend, is_shared=False)
    with NodeGraph(embed=model or Letters(), store=file, progress=False) as graph:
        if count:
            graph.add([Document(f"tea {n} 河" * (n % 9 + 1), id=f"d{n}") for n in range(count)])
        yield (
            graph,
            Retriever(graph, "ROOT", "cosine", index=index, top_k=3, **settings),
            Retriever(graph, "ROOT", "cosine", top_k=3, **settings),
        )


def test_new_process_checks_sample_without_loading_vectors(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    backend = NamedBackend()
    with opened(file, backend, 1_000, distinct()) as (_, theirs, _):
        theirs("tea")
    assert not caplog.records  # the list of nodes was saved
    backend.forget_calls()
    with opened(file, backend, model=distinct()) as (graph, theirs, ours):
        read: list[int] = []
        vectors = graph.embeddings.vectors

        def counting(texts: Sequence[str], *args: Any, **options: Any) -> Any:
            read.append(len(texts))
            return vectors(texts, *args, **options)

        monkeypatch.setattr(graph.embeddings, "vectors", counting)
        assert len(theirs("tea 7")) == 3
        assert len(backend.looked_up) <= 16
        assert not backend.added
        assert sum(read) < 50
        assert rows(theirs("河")) == rows(ours("河"))


@pytest.mark.parametrize("has_lookup", [True, False])
def test_next_process_writes_only_changes(file: Path, has_lookup: bool) -> None:
    backend = NamedBackend(has_lookup=has_lookup)
    with opened(file, backend, 100) as (_, theirs, _):
        theirs("tea")
    backend.forget_calls()
    with NodeGraph(embed=Letters(), store=file, progress=False) as graph:  # without the store
        graph.add([Document("red tea", id="d1"), Document("new", id="new")])
        graph.remove("d2")
    with opened(file, backend) as (_, theirs, ours):
        assert rows(theirs("red tea")) == rows(ours("red tea"))
    assert sorted(backend.added) == ["d1", "new"]
    assert {"d1", "d2"} <= set(backend.deleted)
    assert set(backend.vectors) == {"new", *(f"d{n}" for n in range(100) if n != 2)}


@pytest.mark.parametrize("has_count", [True, False])
def test_next_process_rewrites_lost_rows(file: Path, has_count: bool) -> None:
    """A count finds a single lost row; a sample finds many."""
    backend = NamedBackend(has_count=has_count)
    with opened(file, backend, 100) as (_, theirs, _):
        theirs("tea")
    backend.lose(["d50"] if has_count else [f"d{n}" for n in range(100)])
    with opened(file, backend) as (_, theirs, ours):
        assert rows(theirs("tea")) == rows(ours("tea"))
    assert len(backend.vectors) == 100


@pytest.mark.parametrize("has_lookup", [True, False])
def test_search_after_short_results_fills_the_store(file: Path, has_lookup: bool) -> None:
    backend = NamedBackend(has_lookup=has_lookup)
    with opened(file, backend, 100) as (_, theirs, ours):
        theirs("tea")
        for _ in range(2):
            backend.lose([f"d{n}" for n in range(1, 100)])
            for _ in range(2):
                assert rows(theirs("河")) == rows(ours("河"))
            assert len(backend.vectors) == 100


def test_outdated_rows_are_replaced_by_a_refill(file: Path) -> None:
    backend = NamedBackend()
    with opened(file, backend, 100) as (_, theirs, _):
        theirs("tea")
    backend.fingerprints = dict.fromkeys(backend.fingerprints, "of another model")
    with opened(file, backend) as (_, theirs, ours):
        assert rows(theirs("tea")) == rows(ours("tea"))
    assert "of another model" not in backend.fingerprints.values()


def test_short_results_are_logged_and_compared_singly(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = NamedBackend()
    with opened(file, backend, 100) as (_, theirs, ours):
        theirs("tea")
        backend.forget_calls()
        backend.most = 2
        for query in ("tea", "河"):
            assert rows(theirs(query)) == rows(ours(query))
        assert len(backend.looked_up) == 100
    assert [r.getMessage() for r in caplog.records] == [
        "the vector store list returned too few of 100 nodes of the group 'ROOT'; all are "
        "compared one by one instead"
    ] * 2


def test_nodes_that_the_store_lacks_are_compared(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = NamedBackend()
    with opened(file, backend, 100) as (graph, theirs, ours):
        theirs("tea")
        monkeypatch.setattr(StoreIndex, "ready", lambda self: None)  # added after it
        graph.add([Document("red 河", id="new"), Document("河河河 红", id="d3")])
        graph.remove("d4")
        for query in ("red 河", "河河河 红", "tea 4"):
            assert rows(theirs(query)) == rows(ours(query))
        assert "new" not in backend.vectors


def test_store_identity_is_its_class_name_and_place() -> None:
    def identity(**attributes: str) -> str | None:
        return VectorBackend(type("Store", (), attributes)()).identity

    first = identity(collection_name="a", uri="milvus.db")
    assert first == identity(collection_name="a", uri="milvus.db")
    assert first not in (identity(collection_name="b", uri="milvus.db"), identity(uri="x.db"))
    assert identity() is None


def test_count_is_the_number_of_rows_of_a_chroma_collection() -> None:
    store = SimpleNamespace(_collection=SimpleNamespace(count=lambda: 3))
    assert (VectorBackend(store).count(), VectorBackend(object()).count()) == (3, None)


def test_node_is_written_again_after_a_failed_change(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(nodes: Sequence[EmbeddedNode]) -> None:
        raise ConnectionError("no store")

    backend = NamedBackend()
    with opened(file, backend, 9) as (graph, theirs, _):
        theirs("tea")
        before = graph.node("d1").text
        monkeypatch.setattr(backend, "add", fail)
        graph.add(Document("red tea", id="d1"))
        with pytest.raises(ConnectionError):
            theirs("tea")
        assert "d1" not in backend.vectors
        monkeypatch.undo()
        graph.add(Document(before, id="d1"))
        theirs("tea")
        assert "d1" in backend.vectors


@pytest.mark.parametrize("has_lookup", [True, False])
def test_nodes_without_a_usable_vector_are_not_written(file: Path, has_lookup: bool) -> None:
    backend = NamedBackend(has_lookup=has_lookup)
    model = Embedder(lambda texts: [[text.count("t"), text.count("a")] for text in texts], "ta")
    for _ in range(2):
        with opened(file, backend, model=model) as (graph, theirs, ours):
            graph.add([Document(text, id=text) for text in ("tea", "0", "at a", "sea", "tt")])
            assert rows(theirs("tea")) == rows(ours("tea"))
    assert "0" not in backend.vectors
    assert len(backend.added) == len(set(backend.added))
