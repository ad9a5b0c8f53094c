"""Vectors in pgvector tables: exact and HNSW results, updates by many processes."""

import threading
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
import psycopg
import pytest
from support.postgres_server import RunningServer

from nodekin.adapters import vector_store_index
from nodekin.adapters.engines.postgres import pgvector_backend
from nodekin.adapters.engines.postgres.pgvector_backend import PgvectorBackend
from nodekin.adapters.vector_store_index import StoreIndex
from nodekin.nodegraph import Document, Embedder, EmbeddingError, NodeGraph, StoreError
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes.vector_index import VectorIndex

FILTERS: list[dict[str, Any] | None] = [None, {"part": 3}, {"part": {"lt": 6}}, {"part": {"ne": 1}}]


@pytest.fixture
def address(postgres_server: RunningServer) -> str:
    return f"{postgres_server.address()}&vectors=pgvector"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the limits for large tables to a few hundred nodes."""
    monkeypatch.setattr(pgvector_backend, "HNSW_FROM", 51)
    monkeypatch.setattr(PgvectorBackend, "max_selected", 60)
    monkeypatch.setattr(vector_store_index, "_BATCH", 64)


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the kinds of searches: by HNSW, of all rows, of selected rows."""
    kinds: set[str] = set()
    ranked = PgvectorBackend._ranked

    def noting(self: PgvectorBackend, *args: Any) -> Any:
        operand, selected = args[0], args[4:] != () and args[4] is not None
        kinds.add("selected" if selected else "all" if operand == "vector" else "hnsw")
        return ranked(self, *args)

    monkeypatch.setattr(PgvectorBackend, "_ranked", noting)
    return kinds


def with_hnsw(address: str) -> str:
    """Return an address whose searches use HNSW for few rows, too."""
    return f"{address}&options=-c%20enable_seqscan%3Doff%20-c%20enable_bitmapscan%3Doff"


def random_vectors(dimension: int) -> Embedder:
    def embed(texts: list[str]) -> Any:
        """Return one vector per text; equal texts have equal vectors."""
        return np.array(
            [
                np.random.default_rng(crc32(text.encode())).standard_normal(dimension)
                for text in texts
            ]
        )

    return Embedder(embed, f"random {dimension}")


def opened(store: str | None, dimension: int = 8) -> NodeGraph:
    graph = NodeGraph(store=store, embed=random_vectors(dimension), progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


def documents(count: int, lines: int = 10) -> list[Document]:
    return [
        Document("\n".join(f"line {d} {n}" for n in range(lines)), {"part": d % 12}, id=str(d))
        for d in range(count)
    ]


def rows(results: list[Any]) -> list[tuple[str, float]]:
    return [(result.node.id, result.score) for result in results]


def tables(server: RunningServer, graph: NodeGraph) -> dict[str, int]:
    """Return the number of rows of the tables of a graph, by name."""
    schema = graph._store.database.address.schema  # type: ignore[attr-defined]
    with psycopg.connect(server.uri) as db:
        names = db.execute(f"SELECT name FROM {schema}.vector_tables ORDER BY name").fetchall()
        counts = [
            db.execute(f"SELECT count(*) FROM {schema}.{name}").fetchall() for (name,) in names
        ]
    return {name: rows[0][0] for (name,), rows in zip(names, counts, strict=True)}


def recall(graph: NodeGraph, expected: NodeGraph, queries: list[str], filters: Any) -> float:
    """Return the recall of the ten best nodes. Tied nodes count as found."""
    right = total = 0
    for query in queries:
        best = rows(Retriever(expected, "line", "cosine", top_k=10, filters=filters)(query))
        got = rows(Retriever(graph, "line", "cosine", top_k=10, filters=filters)(query))
        assert len(got) == len(best)
        total += len(best)
        right += sum(score >= best[-1][1] for _, score in got)
        scores = dict(got)
        assert all(scores[i] == score for i, score in best if i in scores)
    return right / total if total else 1.0


def test_hnsw_finds_the_exact_results(address: str, small: None, kinds: set[str]) -> None:
    graph, expected = opened(with_hnsw(address)), opened(None)
    queries = [f"query {number}" for number in range(20)]
    for each in (graph, expected):
        each.add(documents(60))
    graph.build("line", embed=True)
    for third in range(2):
        for filters in FILTERS:
            assert recall(graph, expected, queries, filters) >= 0.99
        assert {"hnsw", "selected"} <= kinds
        for each in (graph, expected):  # rows are removed from, and added to, the HNSW graph
            each.remove([str(number) for number in range(third, 60, 3)])
            each.add([Document(f"new line {n}", {"part": 1}, id=f"new {n}") for n in range(40)])
    graph.close()


def test_search_names_the_build_of_hnsw(
    address: str,
    small: None,
    postgres_server: RunningServer,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def has_hnsw(graph: NodeGraph) -> bool:
        schema = graph._store.database.address.schema  # type: ignore[attr-defined]
        query = "SELECT 1 FROM pg_indexes WHERE schemaname = %s AND indexname LIKE %s"
        with psycopg.connect(postgres_server.uri) as db:
            return db.execute(query, [schema, "%hnsw"]).fetchall() != []

    with opened(address) as graph:
        graph.add(documents(10))
        retriever = Retriever(graph, "line", "cosine")
        for number in range(2):
            retriever(f"line 1 {number}")
        (said,) = [record.getMessage() for record in caplog.records]
        assert "searches compare all vectors of 'line'; graph.build('line', embed=True)" in said
        assert not has_hnsw(graph)
        graph.progress = True
        graph.build("line", embed=True)
        assert has_hnsw(graph)
        assert "linking vectors of line" in capsys.readouterr().err
    caplog.clear()
    with opened(address) as graph:
        Retriever(graph, "line", "cosine")("line 1 1")
    assert caplog.records == []


def test_hnsw_of_a_stopped_process_is_replaced(
    address: str, small: None, postgres_server: RunningServer
) -> None:
    def is_valid() -> list[Any]:
        with psycopg.connect(postgres_server.uri) as db:
            query = "SELECT indisvalid FROM pg_index WHERE indexrelid = %s::regclass"
            return db.execute(query, [index]).fetchall()

    with opened(address) as graph:
        graph.add(documents(10))
        graph.build("line", embed=True)
        schema = graph._store.database.address.schema  # type: ignore[attr-defined]
        ((table, _),) = tables(postgres_server, graph).items()
        index = f"{schema}.{table}_hnsw"
    assert is_valid() == [(True,)]
    with psycopg.connect(postgres_server.uri) as db:
        db.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [index]
        )
    assert is_valid() == [(False,)]
    with opened(address) as graph:
        graph.build("line", embed=True)
    assert is_valid() == [(True,)]


def test_filters_that_hnsw_cannot_meet_read_no_vectors(
    address: str, small: None, kinds: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def embed(texts: list[str]) -> Any:
        return np.array([[1.0, int(text.split()[1]) / 1_000] for text in texts])

    model = Embedder(embed, "numbers of lines")
    with NodeGraph(store=with_hnsw(address), embed=model, progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(documents(100))
        graph.build("line", embed=True)
        retriever = Retriever(graph, "line", "cosine", top_k=3, filters={"part": {"ne": 0}})
        assert [r.node.document_id for r in retriever("line 0")] == ["1"] * 3
        far = Retriever(graph, "line", "cosine", top_k=3, filters={"part": {"gt": 5}})
        monkeypatch.setattr(graph.embeddings, "vectors", None)
        assert [r.node.document_id for r in far("line 0")] == ["6"] * 3
    assert kinds >= {"hnsw"}


def test_hnsw_with_too_little_memory_warns(
    address: str, small: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pgvector_backend, "_BUILD_MEMORY", 1_000)
    graph = opened(f"{address}&options=-c%20maintenance_work_mem%3D1MB")
    graph.add(documents(50))
    graph.build("line", embed=True)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "the graph of 500 vectors needs 1216 kB of memory, and 1024 kB are allowed" in said
    assert "raise the server's maintenance_work_mem" in said
    graph.close()


def test_ties_and_many_hits_come_in_document_order(
    address: str, small: None, kinds: set[str]
) -> None:
    graph, expected = opened(with_hnsw(address)), opened(None)
    for each in (graph, expected):
        each.add([Document("the same line\n" * 9 + f"another {n}", id=str(n)) for n in range(30)])
    graph.build("line", embed=True)
    for top_k in (1, 7, 250, 2_000):
        for query in ("the same line", "else"):
            retrievers = [Retriever(g, "line", "cosine", top_k=top_k) for g in (graph, expected)]
            got, best = (rows(retriever(query)) for retriever in retrievers)
            assert got == best
    assert {"hnsw", "all"} <= kinds
    graph.close()


def test_processes_share_a_table(address: str, postgres_server: RunningServer) -> None:
    first, second = opened(address), opened(address)
    first.add(documents(3))
    retrievers = [Retriever(graph, "line", "cosine") for graph in (first, second)]
    best = rows(retrievers[0]("line 1 1"))
    assert rows(retrievers[1]("line 1 1")) == best
    second.add(Document("line 1 1", id="copy"))
    assert [r.node.document_id for r in retrievers[0]("line 1 1")][:2] == ["1", "copy"]
    assert [*tables(postgres_server, first).values()] == [31]
    assert not any(isinstance(index, VectorIndex) for index in second.reader._shared.values())
    for graph in (first, second):
        graph.close()


def test_missing_rows_are_compared_in_the_process(address: str, small: None) -> None:
    graph, expected, other = opened(address), opened(None), opened(address)
    for each in (graph, expected):
        each.add(documents(20))
    retrievers = [Retriever(g, "line", "cosine", top_k=8) for g in (graph, expected)]
    assert rows(retrievers[0]("x")) == rows(retrievers[1]("x"))
    Retriever(other, "line", "cosine")("x")
    (index,) = (i for i in other.reader._shared.values() if isinstance(i, StoreIndex))
    with index._backend.updating(wait=True) as free:  # another process updates it
        assert free
        for each in (graph, expected):
            each.remove("3")
            each.add([Document("line 0 0\nline 5 5", {"part": 3}, id="0"), *documents(22)[20:]])
        for query in ("x", "line 0 0", "line 21 3"):
            for filters in FILTERS:
                got, best = (rows(r.retrieve(query, filters=filters)) for r in retrievers)
                assert got == best
    assert rows(retrievers[0]("x")) == rows(retrievers[1]("x"))
    for each in (graph, other):
        each.close()


def test_an_interrupted_update_is_finished(
    address: str, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, expected = opened(address), opened(None)
    for each in (graph, expected):
        each.add(documents(30))
    add, calls = PgvectorBackend.add, iter(range(100))

    def failing(self: PgvectorBackend, *args: Any) -> None:
        add(self, *args)
        if next(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PgvectorBackend, "add", failing)
        with pytest.raises(KeyboardInterrupt):
            Retriever(graph, "line", "cosine")("x")
    for each in (graph, expected):
        each.remove("1")
    retrievers = [Retriever(g, "line", "cosine") for g in (opened(address), expected)]
    assert rows(retrievers[0]("x")) == rows(retrievers[1]("x"))
    graph.close()


def test_concurrent_graphs_write_each_node_once(
    address: str, small: None, postgres_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, written = PgvectorBackend.add, list[int]()

    def counting(self: PgvectorBackend, nodes: Any) -> None:
        written.append(len(nodes))
        add(self, nodes)

    monkeypatch.setattr(PgvectorBackend, "add", counting)
    graphs = [opened(address) for _ in range(3)]
    graphs[0].add(documents(30))
    graphs[0].build("line", embed=True)
    found: list[list[tuple[str, float]]] = []
    threads = [
        threading.Thread(target=lambda g=g: found.append(rows(Retriever(g, "line", "cosine")("x"))))
        for g in graphs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] == found[1] == found[2] != []
    assert sum(written) == 300
    assert [*tables(postgres_server, graphs[0]).values()] == [300]
    for graph in graphs:
        graph.close()


@pytest.mark.parametrize("dimension", [2_001, 4_001])
def test_long_vectors_are_searched(
    address: str, small: None, kinds: set[str], dimension: int
) -> None:
    graph, expected = opened(with_hnsw(address), dimension), opened(None, dimension)
    for each in (graph, expected):
        each.add(documents(8))
    graph.build("line", embed=True)
    assert recall(graph, expected, ["a", "b", "c"], None) >= 0.99
    assert kinds == ({"hnsw"} if dimension <= 4_000 else {"all"})
    graph.close()


def test_too_long_vectors_raise(address: str) -> None:
    graph = opened(address, 16_001)
    graph.add("text")
    with pytest.raises(StoreError, match=r"up to 16,000 numbers.*vectors=memory"):
        Retriever(graph, "line", "cosine")("x")
    graph.close()


def test_a_query_of_another_dimension_raises(address: str) -> None:
    graph = opened(address)
    graph.add("text")
    retriever = Retriever(graph, "line", "cosine")
    retriever("x")
    with pytest.raises(EmbeddingError, match="3 numbers, and those of group 'line' have 8"):
        retriever.search_vector("x", [1.0, 2.0, 3.0])
    graph.close()


def test_graphs_of_other_dimensions_share_connections(postgres_server: RunningServer) -> None:
    graphs = []
    for dimension in (8, 12):  # the tables have the same name
        embed = Embedder(random_vectors(dimension).embed, "model")
        graph = NodeGraph(store=postgres_server.address(), embed=embed, progress=False)
        graph.add([Document(f"text {n}", {"n": n}, id=str(n)) for n in range(20)])
        graphs.append(graph)
    for number in range(8):  # often enough for prepared statements
        for graph in graphs:
            retriever = Retriever(graph, "ROOT", "cosine", top_k=1, filters={"n": {"gte": number}})
            assert [r.node.id for r in retriever("text 9")] == ["9"]
    for graph in graphs:
        graph.close()


def test_compact_clears_outdated_tables(address: str, postgres_server: RunningServer) -> None:
    for dimension in (8, 12):
        with opened(address, dimension) as graph:
            graph.add(documents(dimension))
            Retriever(graph, "line", "cosine")("x")
    graph.compact()
    assert len(tables(postgres_server, graph)) == 2  # another process may use the older one
    schema = graph._store.database.address.schema  # type: ignore[attr-defined]
    with psycopg.connect(postgres_server.uri) as db:
        db.execute(f"UPDATE {schema}.vector_tables SET seen = now() - interval '2 days'")
    graph.compact()
    # The table that is up to date remains, however long ago it was written.
    assert sorted(tables(postgres_server, graph).values()) == [0, 120]
    assert len(Retriever(opened(address, 8), "line", "cosine", top_k=200)("x")) == 120


def test_vectors_parameter_selects_the_index(postgres_server: RunningServer) -> None:
    kinds = {}
    for vectors in ("", "&vectors=auto", "&vectors=memory", "&vectors=pgvector"):
        with opened(f"{postgres_server.address()}{vectors}") as graph:
            graph.add("text")
            retriever = Retriever(graph, "line", "cosine")
            assert len(retriever("x")) == 1
            (kinds[vectors],) = map(type, graph.reader._shared.values())
    assert [*kinds.values()] == [StoreIndex, StoreIndex, VectorIndex, StoreIndex]


@pytest.fixture
def without_pgvector(postgres_server: RunningServer) -> Iterator[str]:
    """Yield the address of a database without pgvector, whose user may not install it."""
    with psycopg.connect(postgres_server.uri, autocommit=True) as db:
        db.execute("CREATE ROLE plain LOGIN")
        db.execute("CREATE DATABASE plain OWNER plain")
        uri = postgres_server.uri.replace("postgres:@/postgres?", "plain@/plain?")
        yield uri
        db.execute("DROP DATABASE plain WITH (FORCE)")
        db.execute("DROP ROLE plain")


def test_without_pgvector_vectors_are_in_memory(without_pgvector: str) -> None:
    with opened(without_pgvector) as graph:
        graph.add("text")
        assert len(Retriever(graph, "line", "cosine")("x")) == 1
        assert [type(index) for index in graph.reader._shared.values()] == [VectorIndex]
    graph = opened(f"{without_pgvector}&vectors=pgvector")
    with pytest.raises(StoreError, match=r"plain@.* has no pgvector.*CREATE EXTENSION vector"):
        Retriever(graph, "line", "cosine")("x")
    graph.close()


def test_texts_without_usable_vectors_are_left_out(address: str) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[0.0, 0.0] if "bad" in text else [1.0, float(len(text))] for text in texts]

    def found() -> set[str]:
        with NodeGraph(store=address, embed=Embedder(embed, "flawed"), progress=False) as graph:
            results = Retriever(graph, "ROOT", "cosine", top_k=9).retrieve("tea")
            return {result.node.text for result in results}

    with NodeGraph(store=address, embed=Embedder(embed, "flawed"), progress=False) as graph:
        graph.add([Document("tea", id="a"), Document("bad", id="b"), Document("rice", id="c")])
        assert found() == {"tea", "rice"}
        graph.add([Document("now bad", id="a"), Document("good", id="b")])
        assert found() == {"good", "rice"}


def test_answer_of_server_does_not_block_other_searches(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest, found = PgvectorBackend.nearest, []

    def slow(self: PgvectorBackend, *args: Any) -> Any:
        thread = threading.Thread(target=lambda: found.append(words("line")), daemon=True)
        thread.start()
        thread.join(60)
        return nearest(self, *args)

    with opened(address) as graph:
        graph.add(documents(3))
        vectors, words = Retriever(graph, "line", "cosine"), Retriever(graph, "line", "bm25")
        expected, of_words = vectors("line 1 1"), words("line")
        monkeypatch.setattr(PgvectorBackend, "nearest", slow)
        assert vectors("line 1 1") == expected
    assert found == [of_words]


def test_search_finds_concurrent_changes_of_other_process(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest, changes = PgvectorBackend.nearest, []

    def changed(self: PgvectorBackend, *args: Any) -> Any:
        while changes:
            changes.pop()()
        return nearest(self, *args)

    def change() -> None:
        with opened(address) as other:
            other.add(Document("line 1 1", {"part": 1}, id="new"))
            other.remove("1")
            Retriever(other, "line", "cosine")("line 1 1")

    monkeypatch.setattr(PgvectorBackend, "nearest", changed)
    with opened(address) as graph:
        graph.add(documents(3))
        retriever = Retriever(graph, "line", "cosine", top_k=2)
        assert [r.node.document_id for r in retriever("line 1 1")][:1] == ["1"]
        changes.append(change)
        results = retriever("line 1 1")
        assert len(results) == 2
        assert "1" not in [r.node.document_id for r in results]
        assert [r.node.document_id for r in retriever("line 1 1")][:1] == ["new"]
