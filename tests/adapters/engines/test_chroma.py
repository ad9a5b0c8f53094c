"""Chroma is asked for what the contract says, by its address, embedded and as a server."""

import gc
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine_checks import rows, same_as_memory
from recall_on_cmrc import check_recall

pytest.importorskip("chromadb", reason="no chromadb: pip install nodekin[chroma]")

from nodekin.adapters.engines.chroma import ChromaAddress, ChromaEngine
from nodekin.adapters.engines.index_engine import (
    EngineRow,
    EngineUnavailableError,
    MissingCollectionError,
    RowSelection,
)
from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import engine_index

PATIENCE = 300.0
"""Seconds after which something that should happen is taken to hang."""


@pytest.mark.slow
def test_conditions_mean_the_same_as_in_memory(tmp_path: Path) -> None:
    engine = ChromaEngine(f"chroma://{tmp_path}/vectors")
    same_as_memory(engine, "nodekin_a", 60)
    engine.close()


def test_collections_come_go_and_are_marked(tmp_path: Path) -> None:
    engine = ChromaEngine(f"chroma:{tmp_path}/vectors")
    other = pickle.loads(pickle.dumps(engine))
    engine.create("nodekin_a", 8, has_hnsw=True)
    assert engine.version_token("nodekin_a") is None
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.put("nodekin_a", rows(3))
    engine.set_version_token("nodekin_a", "one")
    assert other.version_token("nodekin_a") == "one"
    assert other.count("nodekin_a", None, 0) == 3
    engine.close()
    assert engine.version_token("nodekin_a") == "one"
    engine.drop("nodekin_a")
    engine.drop("nodekin_a")
    assert engine.version_token("nodekin_a") is None
    for use in (
        lambda: other.count("nodekin_a", None, 0),
        lambda: engine.put("nodekin_a", rows(1)),
        lambda: engine.nearest("nodekin_a", rows(1)[0].vector, 1, RowSelection(), False),
    ):
        with pytest.raises(MissingCollectionError, match="has lost a collection"):
            use()
    engine.create("nodekin_a", 8, has_hnsw=True)
    assert engine.count("nodekin_a", None, 0) == 0
    engine.put("nodekin_a", rows(1))
    with pytest.raises(StoreError, match=r"refuses what it was asked: .*dimension"):
        engine.put("nodekin_a", rows(1, dimension=3))
    engine.close()
    other.close()


def test_a_folder_that_is_deleted_under_open_graphs_is_filled_again(tmp_path: Path) -> None:
    engines = [ChromaEngine(f"chroma:{tmp_path}/vectors") for _ in range(3)]
    embed = Embedder(lambda texts: [[len(text), 1.0] for text in texts], "lengths")
    graphs = [NodeGraph(store=tmp_path / "graph", embed=embed, index=e) for e in engines]
    graphs[0].add([Document("tea", id="a"), Document("green tea", id="b")])
    search = [Retriever(graph, "ROOT", "cosine") for graph in graphs]
    assert [len(retriever("tea")) for retriever in search[:2]] == [2, 2]
    shutil.rmtree(tmp_path / "vectors")
    graphs[0].add(Document("black tea", id="c"))
    assert [len(retriever("tea")) for retriever in search] == [3, 3, 3]
    assert (tmp_path / "vectors").is_dir()
    for graph, engine in zip(graphs, engines, strict=True):
        graph.close()
        engine.close()


def test_addresses() -> None:
    server = ChromaAddress.parse("chroma://db?secure=true&token=hush&tenant=t&database=d")
    assert (server.host, server.port, server.secure) == ("db", 8000, True)
    assert [server.settings[name] for name in ("token", "tenant", "database")] == ["hush", "t", "d"]
    assert "hush" not in server.label + repr(ChromaEngine("chroma://db?token=hush"))
    assert ChromaAddress.parse("chroma:///a/b%20c").path == "/a/b c"
    assert ChromaAddress.parse("chroma:vectors").path == "vectors"
    for address, reason in (
        ("chroma://", "names a server"),
        ("chroma://db/folder", "three slashes for a folder"),
        ("chroma://db?hush=1", "has the parameter 'hush'; it takes"),
        ("chroma://me:hush@db", "Chroma has no users"),
        ("chroma://db:port", "is no number"),
        ("chroma://db?secure=yes", "neither true nor false"),
    ):
        with pytest.raises(ValueError, match=reason):
            NodeGraph(index=address)


# Chroma leaves a connection open where its client can't be made.
unclosed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def server(tmp_path: Path, socket_enabled: None) -> Iterator["Server"]:
    running = Server(tmp_path / "served")
    running.start()
    yield running
    running.kill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what Chroma left open does not fail a later test


class Server:
    """A server of Chroma, on this machine alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"chroma://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = Path(sys.executable).with_name("chroma")
        place = ["--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [program, "run", *place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            engine = ChromaEngine(self.address)
            try:
                engine.version_token("nodekin_none")
                return
            except EngineUnavailableError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            finally:
                engine.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


@unclosed
@pytest.mark.slow
def test_a_server_finds_what_memory_finds(server: Server) -> None:
    engine = ChromaEngine(server.address)
    same_as_memory(engine, "nodekin_a", 20)
    engine.close()


@unclosed
@pytest.mark.slow
def test_a_server_that_was_killed_or_lost_is_caught_up_with(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodekin.nodegraph.locking.time.sleep", lambda seconds: None)
    embed = Embedder(lambda texts: [[1.0, len(t), t.count("a")] for t in texts], "lengths")
    with NodeGraph(store=tmp_path / "g.db", embed=embed, index=server.address) as graph:
        graph.add([Document(f"{'a' * n} tea", id=str(n)) for n in range(20)])
        search = Retriever(graph, "ROOT", "cosine", top_k=3)
        before = [result.node.id for result in search("aaa tea")]
        server.kill()
        with pytest.raises(EngineUnavailableError, match=r"Chroma at chroma://127\.0\.0\.1"):
            search("aaa tea")
        assert Retriever(graph, "ROOT", "bm25")("tea")
        graph.remove(before[0])
        server.start()
        assert [result.node.id for result in search("aaa tea")][:2] == before[1:]
        server.kill()
        for file in sorted(server.folder.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        server.start()
        assert [result.node.id for result in search("aaa tea")][:2] == before[1:]


@unclosed
@pytest.mark.slow
def test_the_graph_of_vectors_hardly_misses_one(tmp_path: Path) -> None:
    """Clustered as embeddings are: 0.99 of the best ten, the first one always."""
    chance = np.random.default_rng(3)
    centres = chance.normal(size=(100, 64))
    vectors = (centres.repeat(60, axis=0) + 0.5 * chance.normal(size=(6_000, 64))).astype("f4")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    engine = ChromaEngine(f"chroma://{tmp_path}/vectors")
    engine.create("nodekin_a", 64, has_hnsw=True)
    made = [EngineRow(f"{i:032x}", str(i), i, [1], vector) for i, vector in enumerate(vectors)]
    for begin in range(0, len(made), 1_000):
        engine.put("nodekin_a", made[begin : begin + 1_000])
    hits = firsts = 0
    queries = vectors[::60] + 0.1 * chance.normal(size=(100, 64)).astype("f4")
    for query in queries:
        best = np.argsort(-(vectors @ query))[:10]
        found = engine.nearest("nodekin_a", query, 10, RowSelection(), False).ids
        hits += len({*map(str, best)} & {*found})
        firsts += found[0] == str(best[0])
    engine.close()
    assert hits / 1_000 >= 0.99
    assert firsts >= 99


@pytest.mark.slow
@pytest.mark.data
def test_questions_on_cmrc_have_the_results_of_comparing_all(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a filter that leaves many, and with one that leaves few."""
    monkeypatch.setattr(engine_index, "_FEW", 300)
    options = {"store": tmp_path / "graph.db", "index": f"chroma://{tmp_path}/vectors"}
    filters = (None, {"part": {"lt": 20}}, {"part": 3})
    check_recall("Chroma", options, data, filters, filtered=4)
