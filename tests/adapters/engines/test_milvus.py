"""Milvus: its addresses, its errors, and what its graph of vectors finds."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from milvus_server import RunningMilvus
from recall_on_cmrc import check_recall
from stress import amount
from word_engine_checks import same_words_as_memory

from nodekin.adapters.engines import milvus
from nodekin.adapters.engines.index_engine import EngineRow, EngineUnavailableError, RowSelection
from nodekin.adapters.engines.milvus import MilvusAddress, MilvusEngine
from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.nodegraph.graph_reader import StoreEngine
from nodekin.nodegraph.search_tables import ValueMatch
from nodekin.retrievers import Retriever, RetrieverSettings
from nodekin.retrievers.indexes import engine_index


@pytest.fixture
def file(tmp_path: Path) -> str:
    for name in ("pymilvus", "milvus_lite"):
        pytest.importorskip(name, reason=f"no {name}: pip install nodekin[milvus] milvus-lite")
    return f"milvus://{tmp_path}/vectors.db"


@pytest.fixture(params=["file", "server"])
def address(request: pytest.FixtureRequest) -> str:
    if request.param == "file":
        return str(request.getfixturevalue("file"))
    server: RunningMilvus = request.getfixturevalue("milvus_server")
    return server.address


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(letter) + 0.1 for letter in "aeiou"] for text in texts]


def opened(index: str, store: Any = None) -> NodeGraph:
    graph = NodeGraph(store=store, index=index, embed=letters, progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


@pytest.mark.parametrize(
    ("address", "uri", "label"),
    [
        ("milvus://db", "http://db:19530", "Milvus at milvus://db:19530"),
        ("milvus://db:7?secure=true", "https://db:7", "Milvus at milvus://db:7"),
        ("milvus://me:p%2Fw@db", "http://db:19530", "Milvus at milvus://db:19530"),
        ("milvus://[::1]:7", "http://[::1]:7", "Milvus at milvus://[::1]:7"),
        ("milvus://db?database=a", "http://db:19530", "Milvus at milvus://db:19530?database=a"),
        ("milvus:///tmp/my%20v.db", "/tmp/my v.db", "Milvus in /tmp/my v.db"),
        ("milvus:v.db", "v.db", "Milvus in v.db"),
    ],
)
def test_addresses_are_read(address: str, uri: str, label: str) -> None:
    parsed = MilvusAddress.parse(address)
    assert (parsed.uri, parsed.label) == (uri, label)
    assert parsed.is_file == uri.endswith(".db")


def test_a_user_or_a_token_is_passed_on() -> None:
    assert MilvusAddress.parse("milvus://me:p%2Fw@db").token == "me:p/w"
    assert MilvusAddress.parse("milvus://db?token=x%20y&timeout=3").token == "x y"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("milvus://", "names a server, 'milvus://host:19530', or a file"),
        ("milvus:", "names a server"),
        ("milvus://db/name", r"write parameters as \?name=value, or three slashes for a file"),
        ("milvus://db?databse=x", "the parameter 'databse'; it takes 'database'"),
        ("milvus://db?secure=yes", "neither true nor false"),
        ("milvus://db?words=no", "neither auto nor milvus nor memory"),
        ("milvus://db?timeout=0", "no number of seconds above 0"),
        ("milvus://db?timeout=soon", "is no number of seconds"),
        ("milvus://db:port", "is no number"),
        ("milvus:///tmp/vectors", "whose name ends in .db"),
    ],
)
def test_other_addresses_are_refused(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NodeGraph(index=address)


@pytest.mark.slow
def test_a_server_that_is_away_is_named_and_words_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    graph = opened("milvus://me:secret@127.0.0.1:9?timeout=0.5&words=memory")
    graph.add("a text")
    with pytest.raises(EngineUnavailableError, match=r"127\.0\.0\.1:9 can't be reached") as raised:
        Retriever(graph, "line", "cosine")("text")
    assert "so do searches by words where the address has words=memory" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert Retriever(graph, "line", "bm25")("text")
    graph.close()
    graph = opened("milvus://127.0.0.1:9?timeout=0.5")
    graph.add("a text")
    with pytest.raises(EngineUnavailableError, match=r"127\.0\.0\.1:9 can't be reached"):
        Retriever(graph, "line", "bm25")("text")
    graph.close()


def test_without_its_client_the_error_names_the_extra(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = opened(file)
    graph.add("a text")
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(ImportError, match=r"pip install \"nodekin\[milvus\]\""):
        Retriever(graph, "line", "cosine")("text")


@pytest.mark.slow
def test_a_file_of_another_process_is_an_error_that_says_so(file: str) -> None:
    graph = opened(file)
    graph.add("a text")
    path = MilvusAddress.parse(file).uri
    hold = (
        f"from pymilvus import MilvusClient; client = MilvusClient({path!r}); "
        "client.list_collections(); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(EngineUnavailableError, match="no other process uses the file"):
            Retriever(graph, "line", "cosine")("text")
        other.communicate("\n")
    assert Retriever(graph, "line", "cosine")("text")
    graph.close()


def test_an_old_server_is_refused(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pymilvus

    class Old:
        def __init__(self, *args: Any, **settings: Any) -> None: ...

        def get_server_version(self, **settings: Any) -> str:
            return "v2.2.16"

        def close(self) -> None: ...

    monkeypatch.setattr(pymilvus, "MilvusClient", Old)
    graph = opened("milvus://db")
    graph.add("a text")
    with pytest.raises(StoreError, match=r"has the version v2\.2\.16; an index needs 2\.3\.2"):
        Retriever(graph, "line", "cosine")("text")


def test_what_milvus_cannot_store_is_an_error(file: str) -> None:
    engine = MilvusEngine(file)
    with pytest.raises(StoreError, match=r"up to 32,768 numbers, and .* makes 40,000"):
        engine.create("a", 40_000, has_hnsw=False)
    for row in (
        EngineRow("0" * 32, "x" * 70_000, 0, [1], np.zeros(2)),
        EngineRow("0" * 32, "x", 0, range(5_000), np.zeros(2)),
    ):
        with pytest.raises(StoreError, match=r"up to 65,535 bytes|stores 4,096 metadata fields"):
            engine.put("a", [row])


def test_an_engine_can_be_pickled(address: str) -> None:
    graph = opened(address)
    graph.add("a text")
    assert Retriever(graph, "line", "cosine")("text")
    copy: NodeGraph = pickle.loads(pickle.dumps(graph))
    assert [r.node.text for r in Retriever(copy, "line", "cosine")("text")] == ["a text"]
    copy.close()
    graph.close()


def test_all_rows_are_read_however_many(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milvus, "_BATCH_SIZE", 40)
    monkeypatch.setattr(milvus, "_MAX_RESULTS", 25)  # of which some batches have more
    graph, expected = opened(address), opened("milvus://unused")
    expected.reader._engine = StoreEngine()
    for each in (graph, expected):
        each.add([Document("\n".join(f"line {d} {n}" for n in range(10))) for d in range(30)])
    for settings in (
        {"top_k": 1_000},
        {"target": "ROOT", "settings": RetrieverSettings(lift="sum"), "top_k": 50},
    ):
        results = [
            [(r.node.text, r.score) for r in Retriever(g, "line", "cosine", **settings)("line")]
            for g in (graph, expected)
        ]
        assert results[0] == results[1]
    graph.close()


@pytest.fixture
def linked_soon(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Let a thousand rows be many; return what tells whether a graph of vectors was searched."""
    monkeypatch.setattr(MilvusEngine, "hnsw_from", 1_000)
    created: list[bool] = []
    create = MilvusEngine.create

    def noting(self: MilvusEngine, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        created.append(has_hnsw)
        create(self, collection, dimension, has_hnsw=has_hnsw)

    monkeypatch.setattr(MilvusEngine, "create", noting)
    monkeypatch.setattr(engine_index, "_FEW", 300)
    return lambda: True in created


@pytest.mark.slow
@pytest.mark.data
def test_questions_on_cmrc_have_the_results_of_comparing_all(
    data: Path, address: str, tmp_path: Path, linked_soon: Callable[[], bool]
) -> None:
    """Also with a filter that leaves many, and with one that leaves few."""
    is_file = MilvusAddress.parse(address).is_file  # which takes a third of a second for a filter
    options = {"store": tmp_path / "graph.db", "index": address}
    filters = (None, {"part": {"lt": 20}}, {"part": 3})
    name = "milvus-lite" if is_file else "Milvus"
    check_recall(name, options, data, filters, filtered=10 if is_file else 1)
    assert linked_soon()


@pytest.mark.slow
@pytest.mark.parametrize("condition", [None, ValueMatch("values", value_ids=(1,))])
def test_too_few_that_a_graph_leads_to_are_made_up_for(
    address: str, condition: ValueMatch | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = MilvusEngine._search
    lengths: list[int] = []

    def lost(self: MilvusEngine, *arguments: Any) -> Any:
        hits = search(self, *arguments)
        lengths.append(len(hits))
        return hits[:3] if len(lengths) == 1 else hits

    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(300, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    engine, name = MilvusEngine(address), f"nodekin_{os.urandom(4).hex()}"
    engine.create(name, 8, has_hnsw=True)
    keys = [os.urandom(16).hex() for _ in vectors]
    rows = zip(keys, map(str, range(300)), range(300), [[0], [1]] * 150, vectors, strict=True)
    engine.put(name, [EngineRow(*row) for row in rows])
    position = engine.set_version_token(name, "a mark")
    monkeypatch.setattr(MilvusEngine, "_search", lost)
    without = keys[10:14]
    left = [n for n in range(300) if n not in range(10, 14) and (condition is None or n % 2)]
    best = sorted(left, key=lambda n: -float(vectors[n] @ vectors[0]))
    for limit in (20, 400):
        lengths.clear()
        nearest = engine.nearest(
            name, vectors[0], limit, RowSelection(condition, without, position), True
        )
        assert nearest.orders.tolist() == best[:limit]
        assert nearest.ids == [*map(str, best[:limit])]
        assert len(lengths) == 33
    lengths[:] = [0]  # so that none is lost
    nearest = engine.nearest(
        name, vectors[0], 400, RowSelection(condition, without, position), True
    )
    assert nearest.orders.tolist() == best
    assert len(lengths) == 2
    engine.drop(name)
    engine.close()


def test_small_updates_are_indexed_together(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever process made them."""
    monkeypatch.setattr(milvus, "_UNFLUSHED", 10)
    monkeypatch.setattr(milvus, "_UNFLUSHED_LITE", 10)
    flushed: list[int] = []
    pymilvus = pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    flush = pymilvus.MilvusClient.flush

    def noting(self: Any, collection: str, **settings: Any) -> None:
        flush(self, collection, **settings)
        flushed.append(number)

    monkeypatch.setattr(pymilvus.MilvusClient, "flush", noting)
    name = f"nodekin_{os.urandom(4).hex()}"
    for number in range(8):
        engine = MilvusEngine(address)
        engine.create(name, 2, has_hnsw=True)
        keys = [f"{number * 4 + n:032x}" for n in range(4)]
        engine.put(name, [EngineRow(key, key, 1, [1], np.array([0.6, 0.8])) for key in keys])
        position = engine.set_version_token(name, str(number))
        assert engine.count(name, None, position) == 4 * (number + 1)
        assert engine.version_token(name) == str(number)
        engine.close()
    assert flushed == [2, 5]
    engine.drop(name)
    engine.close()


class Indexing:
    """A client of a server that indexes what was flushed while somebody waits for it."""

    def __init__(self, kind: str = "HNSW") -> None:
        self.kind = kind
        self.searched, self.pending = "what stands in for an index", 0
        self.rows: dict[str, dict[str, Any]] = {}

    def get_server_version(self, timeout: float) -> str:
        return "v2.3.5-lite"  # what the server says that pip installs

    def describe_collection(self, collection: str, timeout: float) -> dict[str, Any]:
        return {"fields": [{"name": "vector", "params": {"dim": 2}}]}

    def query(self, collection: str, **settings: Any) -> list[Any]:
        return [self.rows["mark"]] if "mark" in self.rows else []

    def flush(self, collection: str, timeout: float) -> None:
        self.pending = 3

    def describe_index(self, collection: str, name: str, timeout: float) -> dict[str, Any]:
        self.pending = max(0, self.pending - 1)
        return {"pending_index_rows": self.pending, "index_type": self.kind}

    def refresh_load(self, collection: str, timeout: float) -> None:
        if not self.pending:
            self.searched = "the index"

    def _get_connection(self) -> Any:
        return self

    def upsert_rows(self, collection: str, rows: Any, timeout: float) -> Any:
        self.rows |= {row["key"]: row for row in rows}
        return SimpleNamespace(timestamp=7)


def test_an_update_of_many_waits_until_their_index_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pymilvus = pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    client = Indexing()
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda *args, **settings: client)
    monkeypatch.setattr(milvus, "_PAUSE", 0)
    engine = MilvusEngine("milvus://db")
    for count, searched in ((3_999, "what stands in for an index"), (1, "the index")):
        engine.put("nodekin_a", [EngineRow("0" * 32, "a", 0, [], np.zeros(2))] * count)
        engine.set_version_token("nodekin_a", "mark")
        assert client.searched == searched


def test_a_server_that_does_not_index_is_named_and_waited_for_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pymilvus = pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    client = Indexing()
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda *args, **settings: client)
    monkeypatch.setattr(milvus, "_PAUSE", 0)
    monkeypatch.setattr(milvus, "_FLUSHING", -1)
    engine = MilvusEngine("milvus://db")
    engine.put("nodekin_a", [EngineRow("0" * 32, "a", 0, [], np.zeros(2))] * 4_000)
    engine.set_version_token("nodekin_a", "mark")
    assert client.searched == "what stands in for an index"
    assert "milvus://db:19530 has not indexed" in caplog.text
    monkeypatch.setattr(milvus, "_FLUSHING", 600)
    engine.set_version_token("nodekin_a", "mark")
    assert client.searched == "the index"


def test_who_compares_all_waits_for_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    pymilvus = pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")
    client = Indexing("FLAT")
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda *args, **settings: client)
    engine = MilvusEngine("milvus://db")
    engine.put("nodekin_a", [EngineRow("0" * 32, "a", 0, [], np.zeros(2))] * 4_000)
    engine.set_version_token("nodekin_a", "mark")
    assert client.searched == "what stands in for an index"
    assert client.pending  # it was flushed


@pytest.mark.slow
def test_words_are_found_as_by_adding_up_all(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MilvusEngine(file)
    same_words_as_memory(engine, "nodekin_a", amount(15, 40))
    monkeypatch.setattr(milvus, "_MAX_RESULTS", 50)  # more are read by the beginnings of their keys
    monkeypatch.setattr(milvus, "_UNFLUSHED_LITE", 10)
    same_words_as_memory(engine, "nodekin_b", 10)
    engine.close()


@pytest.mark.parametrize(
    ("version", "words", "there"),
    [
        ("v2.3.5", "auto", False),
        ("v2.4.0", "auto", True),
        ("2.6.1-dev", "milvus", True),
        ("2.6.1", "memory", False),
    ],
)
def test_words_are_searched_where_a_server_can(
    version: str,
    words: str,
    there: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    serve(version, monkeypatch)
    engine = MilvusEngine(f"milvus://db?words={words}")
    assert [engine.searches_words for _ in range(2)] == [there, there]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (version == "v2.3.5")
    assert all("2.3.5: each process searches words itself" in message for message in said)


def test_a_server_that_is_too_old_for_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    serve("v2.3.5", monkeypatch)
    with pytest.raises(StoreError, match=r"version 2.3.5; words need 2.4.0 or later.*words=memory"):
        _ = MilvusEngine("milvus://db?words=milvus").searches_words


def serve(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients be of a server of a version."""
    pymilvus = pytest.importorskip("pymilvus", reason="no pymilvus: pip install nodekin[milvus]")

    class Client:
        def __init__(self, *args: object, **settings: object) -> None:
            pass

        def get_server_version(self, timeout: float) -> str:
            return version

    monkeypatch.setattr(pymilvus, "MilvusClient", Client)
