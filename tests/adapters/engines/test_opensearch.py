"""OpenSearch is asked for what the contract says, as its documentation wants to be asked.

No real server is to be had here: a double answers (``tests/support/opensearch_double.py``), and
osmem-server, which speaks the protocol but has no k-NN, where it is installed.
"""

import itertools
import json
import pickle
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_checks import random_match, rows, same_as_memory
from memory_engine import MemoryEngine
from opensearch_double import Fault, OpenSearchDouble, Refusal
from recall_on_cmrc import check_recall
from scripted_server import ChatServer, serving
from stress import LONG
from word_engine_checks import same_words_as_memory

from nodekin.adapters.engines import opensearch
from nodekin.adapters.engines.index_engine import (
    EngineRow,
    EngineUnavailableError,
    MissingCollectionError,
    RowSelection,
    WordRow,
)
from nodekin.adapters.engines.opensearch import OpenSearchAddress, OpenSearchEngine
from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.nodegraph.search_tables import ValueMatch
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import engine_index

lengths = Embedder(lambda texts: [[1.0, len(t), t.count("a")] for t in texts], "lengths")


@pytest.fixture
def engine(opensearch_double: OpenSearchDouble) -> Iterator[OpenSearchEngine]:
    engine = OpenSearchEngine(opensearch_double.address)
    yield engine
    engine.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was waited, which takes no time here."""
    waits: list[float] = []
    monkeypatch.setattr(opensearch.time, "sleep", waits.append)
    return waits


def opened(index: str, store: Any = None) -> NodeGraph:
    return NodeGraph(store=store, index=index, embed=lengths, progress=False)


# What is found


@pytest.mark.parametrize("has_hnsw", [False, True])
def test_conditions_mean_the_same_as_in_memory(engine: OpenSearchEngine, has_hnsw: bool) -> None:
    same_as_memory(engine, "nodekin_a", 60, has_hnsw=has_hnsw)


def test_up_to_ten_thousand_rows_all_are_compared(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble
) -> None:
    assert engine.hnsw_from == 10_001
    left = ValueMatch("values", (), (1, 2))
    for has_hnsw, exact, match, limit, expected in (
        (False, False, None, 3, "script_score"),
        (True, True, left, 3, "script_score"),
        (True, True, left, 2_000, 10_000),
        (True, True, None, 3, 10_000),
        (True, False, left, 3, 3),
    ):
        engine.create(name := f"nodekin_{has_hnsw:d}", 8, has_hnsw=has_hnsw)
        engine.put(name, rows(20))
        position = engine.set_version_token(name, "m")
        found = engine.nearest(
            name, rows(1)[0].vector, limit, RowSelection(match, [], position), exact
        )
        assert found.ids[0] == "n0"
        _, body = [request for request in opensearch_double.requests if request[0] == "search"][-1]
        ((kind, query),) = body["query"].items()
        assert (kind if kind == "script_score" else query["vector"]["k"]) == expected


def test_collections_come_go_and_are_marked(engine: OpenSearchEngine) -> None:
    other = pickle.loads(pickle.dumps(engine))
    engine.create("nodekin_a", 8, has_hnsw=True)
    assert engine.version_token("nodekin_a") is None
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.put("nodekin_a", rows(3))
    first = engine.set_version_token("nodekin_a", "one")
    assert other.version_token("nodekin_a") == "one"
    assert other.count("nodekin_a", None, first) == 3
    assert engine.set_version_token("nodekin_a", "two") > first > 0
    engine.close()
    assert engine.version_token("nodekin_a") == "two"
    engine.drop("nodekin_a")
    engine.drop("nodekin_a")
    assert engine.version_token("nodekin_a") is None
    for use in (
        lambda: other.count("nodekin_a", None, first),
        lambda: engine.put("nodekin_a", rows(1)),
        lambda: engine.delete("nodekin_a", ["0" * 32]),
        lambda: engine.set_version_token("nodekin_a", "three"),
        lambda: engine.nearest(
            "nodekin_a", rows(1)[0].vector, 1, RowSelection(position=first), False
        ),
        lambda: [*engine.rows("nodekin_a", None, 0)],
    ):
        with pytest.raises(MissingCollectionError, match="has lost a collection"):
            use()
    engine.create("nodekin_a", 8, has_hnsw=True)
    assert engine.count("nodekin_a", None, 0) == 0
    other.close()


def test_a_search_sees_what_was_written_before_its_position(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=False)
    engine.put("nodekin_a", rows(3))
    position = engine.set_version_token("nodekin_a", "one")
    engine.put("nodekin_a", rows(9))
    opensearch_double.requests.clear()
    assert engine.count("nodekin_a", None, position) == 3
    assert [kind for kind, _ in opensearch_double.requests] == ["count"]  # at no further cost
    assert engine.count("nodekin_a", None, 0) == 9


def test_vectors_come_back_bit_by_bit(engine: OpenSearchEngine) -> None:
    vectors = np.array([[1, 0], [0, 0], [1e-38, 1 / 3], [-0.1, 0.7]], np.float32)
    engine.create("nodekin_a", 2, has_hnsw=True)
    put = [EngineRow(f"{n:032x}", f"é{n}".encode().hex(), n, [], v) for n, v in enumerate(vectors)]
    engine.put("nodekin_a", put)
    found = engine.nearest("nodekin_a", np.array([1, 0], "f4"), 4, RowSelection(), False)
    order = found.orders.tolist()
    assert sorted(order) == [0, 1, 2, 3]
    assert found.vectors.tobytes() == vectors[order].tobytes()


@pytest.mark.slow
def test_more_rows_than_a_result_window_are_read(engine: OpenSearchEngine) -> None:
    vector = np.array([0.6, 0.8], np.float32)
    engine.create("nodekin_a", 2, has_hnsw=False)
    for begin in range(0, 11_000, 1_000):
        numbers = range(begin, begin + 1_000)
        engine.put(
            "nodekin_a", [EngineRow(f"{n:032x}", str(n), n, [n % 2], vector) for n in numbers]
        )
    odd = ValueMatch("values", (), (1,))
    for match, count in ((None, 11_000), (odd, 5_500)):
        found = [int(row.id) for part in engine.rows("nodekin_a", match, 0) for row in part]
        assert found == [n for n in range(11_000) if match is None or n % 2]
        assert len(found) == engine.count("nodekin_a", match, 0) == count


def test_conditions_may_have_more_values_than_a_list_of_the_server(
    engine: OpenSearchEngine,
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.put("nodekin_a", rows(50))
    many = ValueMatch("values", (), (*range(200, 150_000), 105))
    none = ValueMatch("values")
    query = rows(1)[0].vector
    for exact in (False, True):
        assert engine.nearest("nodekin_a", query, 9, RowSelection(many), exact).ids == ["n5"]
        assert engine.nearest("nodekin_a", query, 9, RowSelection(none), exact).ids == []
        gone = [*(f"{n:032x}" for n in range(1, 70_000))]
        assert engine.nearest("nodekin_a", query, 9, RowSelection(None, gone), exact).ids == ["n0"]
    assert engine.count("nodekin_a", ValueMatch("not", (many,)), 0) == 49


def test_words_are_found_as_by_adding_up_all(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    same_words_as_memory(engine, "nodekin_a", 40)
    monkeypatch.setattr(opensearch, "_BATCH_SIZE", 7)
    monkeypatch.setattr(opensearch, "_MAX_TERMS", 2)
    same_words_as_memory(engine, "nodekin_b", 10)


def test_queries_may_have_more_terms_than_a_query_of_the_server(engine: OpenSearchEngine) -> None:
    engine.create_words("nodekin_a")
    terms, ones = np.arange(1, 3_000), np.ones(2_999)
    long = WordRow("0" * 32, [1], terms, ones)
    short = WordRow("1" * 32, [2], terms[-1:], ones[:1])
    engine.put_words("nodekin_a", [long, short])
    query = dict.fromkeys(terms.tolist(), 0.5)
    for limit in (None, 9):
        found = engine.search_words("nodekin_a", query, limit, RowSelection())
        assert found == ([long.key, short.key], [1499.5, 0.5])
    assert engine.search_words("nodekin_a", query, 1, RowSelection()).keys == [long.key]


def test_impacts_are_stored_within_the_slack(engine: OpenSearchEngine) -> None:
    chance = np.random.default_rng(1)
    impacts = np.sort(chance.uniform(0.001, 2.5, 500))
    engine.create_words("nodekin_a")
    one = np.array([7], np.int64)
    engine.put_words(
        "nodekin_a",
        [WordRow(f"{n:032x}", [1], one, impacts[n : n + 1]) for n in range(500)],
    )
    found = engine.search_words("nodekin_a", {7: 3.0}, None, RowSelection())
    scores = np.array(sorted(found.scores))
    assert (scores <= 3 * impacts * (1 + 1e-6)).all()
    assert (3 * impacts <= scores * engine.word_slack * (1 + 1e-6)).all()
    assert (3 * impacts / scores).max() > 1.003


@pytest.mark.slow
@pytest.mark.data
def test_questions_on_cmrc_have_the_results_of_memory_by_words(
    data: Path, opensearch_double: OpenSearchDouble, tmp_path: Path
) -> None:
    folder = data / "cmrc2018"
    if not (folder / "kb").is_dir():
        pytest.skip(f"no CMRC 2018 in {data}")
    files = sorted((folder / "kb").glob("*.txt"))[:: 1 if LONG else 4]
    texts = [file.read_text("utf-8") for file in files]
    lines = (folder / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines][::24]
    graphs = [opened(opensearch_double.address, tmp_path / "graph.db"), NodeGraph(progress=False)]
    for graph in graphs:
        graph.create_node_group("clause", lambda text: re.split("[，。\n]", text))
        graph.add([Document(text, {"part": n % 4}, id=str(n)) for n, text in enumerate(texts)])
    for filters in (None, {"part": {"lt": 2}}, {"part": 3}):
        found, expected = (
            [
                [(result.node.id, result.score) for result in results]
                for results in Retriever(
                    graph, "clause", "bm25_chinese", top_k=10, filters=filters
                ).batch(questions)
            ]
            for graph in graphs
        )
        assert found == expected
        assert sum(map(len, found)) > 9 * len(questions)
    graphs[0].close()


# Addresses and connections


def test_addresses_are_read() -> None:
    address = OpenSearchAddress.parse(
        "opensearch://me:p%2Fw@b,[::1]:7,a:9201?prefix=team_&secure=true&ca=/x.pem&timeout=3"
    )
    assert address.hosts == [("::1", 7), ("a", 9201), ("b", 9200)]
    assert address.words
    assert not OpenSearchAddress.parse("opensearch://a?words=memory").words
    assert (address.user, address.password, address.prefix) == ("me", "p/w", "team_")
    assert (address.secure, address.settings["ca"], address.verify) == (True, "/x.pem", True)
    assert address.timeout == 3
    assert address.label == "OpenSearch at opensearch://[::1]:7,a:9201,b:9200?prefix=team_"
    assert "hush" not in repr(OpenSearchEngine("opensearch://me:hush@db"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("opensearch://", "names a server, 'opensearch://host:9200'"),
        ("opensearch://a,:9200", "names a server"),
        ("opensearch://me:hush@db/name", "has a path, '/name'"),
        ("opensearch://me:hu/sh@db", "characters / . # of a password as %2F"),
        ("opensearch://db?prefx=x", "the parameter 'prefx'; it takes 'prefix'"),
        ("opensearch://db?secure=yes", "neither true nor false"),
        ("opensearch://db?secure=true&verify=no", "neither true nor false"),
        ("opensearch://db?words=here", "neither opensearch nor memory"),
        ("opensearch://db?verify=false", "write secure=true, too"),
        ("opensearch://db?prefix=Team", "write small letters"),
        ("opensearch://db?timeout=0", "no number of seconds above 0"),
        ("opensearch://db?timeout=soon", "no number of seconds above 0"),
        ("opensearch://db:port", "is no number"),
    ],
)
def test_other_addresses_are_refused(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        NodeGraph(index=address)
    assert "hush" not in str(raised.value)


def test_names_of_indexes_begin_as_the_address_says(opensearch_double: OpenSearchDouble) -> None:
    engine = OpenSearchEngine(f"{opensearch_double.address}?prefix=team_")
    same_as_memory(engine, "nodekin_a", 3)
    engine.close()
    assert [*opensearch_double.indexes] == ["team_nodekin_a_rows"]


def test_another_node_answers_where_one_is_down(opensearch_double: OpenSearchDouble) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = free.getsockname()[1]
    engine = OpenSearchEngine(f"opensearch://127.0.0.1:{down},127.0.0.1:{opensearch_double.port}")
    same_as_memory(engine, "nodekin_a", 3)
    engine.close()


def test_a_user_is_passed_on_and_a_wrong_one_is_an_error(
    opensearch_double: OpenSearchDouble,
) -> None:
    opensearch_double.user = "me", "hush:é茶"
    node = opensearch_double.address.removeprefix("opensearch://")
    engine = OpenSearchEngine(f"opensearch://me:hush%3A%C3%A9%E8%8C%B6@{node}")
    same_as_memory(engine, "nodekin_a", 3)
    engine.close()
    for user in ("", "me:other@"):
        other = OpenSearchEngine(f"opensearch://{user}{node}")
        with pytest.raises(StoreError, match=r"refuses the user or password \(401") as raised:
            other.version_token("nodekin_a")
        assert "other" not in str(raised.value)
        other.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return the file of a certificate that nobody knows, with its key."""
    path = tmp_path / "own.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", tmp_path / "ca.pem"]
    try:
        subprocess.run([*command.split(), *names], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no certificate without openssl: {error}")
    path.write_text(path.read_text() + (tmp_path / "ca.pem").read_text())
    return path


def test_certificates_are_checked(
    opensearch_double: OpenSearchDouble, certificate: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    opensearch_double.secure(context)
    address = f"{opensearch_double.address}?secure=true"
    unknown = OpenSearchEngine(address)
    with pytest.raises(StoreError, match=r"can't be trusted: .*certificate.*&ca=/path/to"):
        unknown.version_token("nodekin_a")
    unknown.close()
    assert not caplog.records
    for more in (f"&ca={certificate.with_name('ca.pem')}", "&verify=false"):
        engine = OpenSearchEngine(address + more)
        same_as_memory(engine, f"nodekin_{len(more)}", 2)
        engine.close()
    assert "are not checked: verify=false" in caplog.text


def test_an_unsecured_address_of_a_secured_server_is_told(
    opensearch_double: OpenSearchDouble, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    opensearch_double.secure(context)
    engine = OpenSearchEngine(opensearch_double.address)
    with pytest.raises(EngineUnavailableError, match="whether it wants secure=true"):
        engine.version_token("nodekin_a")
    engine.close()


def test_without_its_client_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = opened("opensearch://db")
    graph.add("a text")
    monkeypatch.setitem(sys.modules, "opensearchpy", None)
    with pytest.raises(ImportError, match=r"pip install \"nodekin\[opensearch\]\""):
        Retriever(graph, "ROOT", "cosine")("text")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ({"number": "8.13.4", "build_flavor": "default"}, "is Elasticsearch 8.13.4, whose k-NN"),
        (
            {"distribution": "opensearch", "number": "2.8.0"},
            "the version 2.8.0; an index needs 2.9",
        ),
        ({"distribution": "opensearch", "number": "1.3.20"}, "upgrade the server"),
        ("3", "is no OpenSearch: it answers"),
    ],
)
def test_other_servers_are_refused(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, version: Any, message: str
) -> None:
    opensearch_double.version = version
    with pytest.raises(StoreError, match=message):
        engine.version_token("nodekin_a")


@pytest.mark.parametrize("number", ["2.9.0", "3.0.0-alpha1", "7.10.2", "4.0.0"])
def test_servers_of_2_and_3_will_do(
    engine: OpenSearchEngine,
    opensearch_double: OpenSearchDouble,
    number: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opensearch_double.version = {"distribution": "opensearch", "number": number}
    assert engine.version_token("nodekin_a") is None
    assert ("was written for OpenSearch 2 and 3" in caplog.text) == (number == "4.0.0")


def test_a_server_that_speaks_something_else_is_told(socket_enabled: None) -> None:
    pytest.importorskip("opensearchpy", reason="no opensearchpy: pip install nodekin[opensearch]")
    with serving(ChatServer()) as server:  # has no GET
        engine = OpenSearchEngine(f"opensearch://127.0.0.1:{server.server_port}")
        with pytest.raises(StoreError, match="refuses what it was asked: 501"):
            engine.version_token("nodekin_a")
        engine.close()


# Errors


def test_a_server_without_the_plugin_is_told(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble
) -> None:
    opensearch_double.has_knn = False
    for has_hnsw in (False, True):
        with pytest.raises(StoreError, match=r"has no k-NN plugin .*opensearch-plugin install"):
            engine.create("nodekin_a", 8, has_hnsw=has_hnsw)


def test_vectors_of_another_length_are_refused(engine: OpenSearchEngine) -> None:
    with pytest.raises(StoreError, match=r"up to 16,000 numbers, and .* makes 20,000"):
        engine.create("nodekin_a", 20_000, has_hnsw=False)
    engine.create("nodekin_a", 8, has_hnsw=True)
    for use in (
        lambda: engine.put("nodekin_a", rows(3, dimension=3)),
        lambda: engine.nearest("nodekin_a", np.zeros(3, "f4"), 3, RowSelection(), False),
        lambda: engine.nearest("nodekin_a", np.zeros(3, "f4"), 3, RowSelection(), True),
    ):
        with pytest.raises(
            StoreError, match=r"vectors of another length .*embedding model changed"
        ):
            use()


def test_a_full_disk_is_told_at_once(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, waits: list[float]
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.put("nodekin_a", rows(3))
    opensearch_double.full = True
    for use in (
        lambda: engine.put("nodekin_a", rows(3)),
        lambda: engine.create("nodekin_b", 8, has_hnsw=True),
    ):
        with pytest.raises(
            StoreError, match=r"takes no writes: .*free space or add nodes"
        ) as raised:
            use()
        assert not isinstance(raised.value, EngineUnavailableError)
    assert not waits
    assert engine.count("nodekin_a", None, 0) == 3
    engine.delete("nodekin_a", [rows(1)[0].key])
    assert engine.count("nodekin_a", None, 0) == 2


def test_a_missing_right_is_told(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble
) -> None:
    reason = "no permissions for [indices:admin/create]"
    opensearch_double.fail("PUT", Fault(403, "security_exception", reason))
    with pytest.raises(
        StoreError, match=r"no permissions for .*needs the rights to create, .*kin_\*"
    ):
        engine.create("nodekin_a", 8, has_hnsw=True)


def test_a_server_that_is_away_is_named_and_words_go_on(
    opensearch_double: OpenSearchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodekin.nodegraph.locking.time.sleep", lambda seconds: None)
    opensearch_double.kill()
    address = opensearch_double.address.replace("//", "//me:hush@")
    graph = opened(f"{address}?words=memory")
    graph.add("a text")
    with pytest.raises(
        EngineUnavailableError, match=r"127\.0\.0\.1:\d+ can't be reached"
    ) as raised:
        Retriever(graph, "ROOT", "cosine")("text")
    assert "Whatever is no search goes on without it, and so do searches by words" in str(
        raised.value
    )
    assert "hush" not in str(raised.value)
    assert Retriever(graph, "ROOT", "bm25")("text")
    graph.close()
    graph = opened(address)
    graph.add("a text")
    with pytest.raises(EngineUnavailableError, match="where the address has words=memory"):
        Retriever(graph, "ROOT", "bm25")("text")
    graph.close()


def test_a_slow_server_is_told(opensearch_double: OpenSearchDouble) -> None:
    engine = OpenSearchEngine(f"{opensearch_double.address}?timeout=0.2")
    opensearch_double.silent = True
    with pytest.raises(
        EngineUnavailableError, match=r"didn't answer within 0\.2 seconds.*timeout="
    ):
        engine.version_token("nodekin_a")
    engine.close()


def test_shards_that_fail_are_no_answer(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    opensearch_double.failed_shards = 1
    for use in (
        lambda: engine.count("nodekin_a", None, 5),
        lambda: engine.set_version_token("nodekin_a", "one"),
        lambda: engine.nearest("nodekin_a", rows(1)[0].vector, 1, RowSelection(None, [], 5), True),
    ):
        with pytest.raises(EngineUnavailableError, match=r"a part of its shards only \(1 of 2"):
            use()


# Writes that survive


def test_too_long_requests_are_made_shorter(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    opensearch_double.longest = 5_000
    engine.put("nodekin_a", rows(300))
    assert engine.count("nodekin_a", None, 0) == 300
    assert 0 < opensearch_double.too_long < 8
    opensearch_double.too_long = 0
    engine.put("nodekin_a", rows(300))
    assert not opensearch_double.too_long  # what was learnt is kept
    long = rows(1)[0]._replace(id="x" * 6_000)
    with pytest.raises(StoreError, match=r"takes no request so long .*http\.max_content_length"):
        engine.put("nodekin_a", [*rows(3), long])
    many = ValueMatch("values", (), tuple(range(10_000)))
    with pytest.raises(StoreError, match="a condition that fewer values meet"):
        engine.count("nodekin_a", many, 5)


def test_what_a_busy_server_refused_is_sent_again(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, waits: list[float]
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    opensearch_double.busy.extend([7, 3, 1])
    engine.put("nodekin_a", rows(10))
    sent = [len(body) // 2 for kind, body in opensearch_double.requests if kind == "bulk"]
    assert sent == [10, 7, 3, 1]
    assert engine.count("nodekin_a", None, 0) == 10
    assert len(waits) == 3
    assert waits[0] < waits[2] < 1


def test_patience_with_a_busy_server_ends(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, waits: list[float]
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    opensearch_double.busy.extend([1] * 100)
    with pytest.raises(EngineUnavailableError, match=r"too busy, .*\(429 rejected_execution"):
        engine.put("nodekin_a", rows(1))
    assert 20 < sum(waits) <= 30


def test_a_server_is_left_alone_as_long_as_it_says(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, waits: list[float]
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    busy = Fault(429, "circuit_breaking_exception", "too much", {"Retry-After": "3"})
    for kind in ("bulk", "refresh", "count"):
        opensearch_double.fail(kind, busy, busy)
    engine.put("nodekin_a", rows(5))
    assert engine.count("nodekin_a", None, 0) == 5
    assert waits == [3] * 6
    long = Fault(503, "unavailable", "maintenance", {"Retry-After": "600"})
    dated = Fault(503, "unavailable", "", {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"})
    for fault in (long, dated):
        opensearch_double.fail("count", fault)
        with pytest.raises(EngineUnavailableError, match="too busy, or parts of it have failed"):
            engine.count("nodekin_a", None, 5)
    assert waits == [3] * 6


def test_a_search_of_a_busy_server_is_left_to_who_searches(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, waits: list[float]
) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    opensearch_double.fail("count", Fault(429, "rejected_execution_exception"))
    with pytest.raises(EngineUnavailableError, match="too busy"):
        engine.count("nodekin_a", None, 5)
    assert not waits


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("length", [1, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("similarity", ["cosine", "bm25"])
def test_a_lost_answer_to_any_request_is_repaired(
    opensearch_double: OpenSearchDouble,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    similarity: str,
    length: int,
    done: bool,
) -> None:
    """One is made up for at once; eight on end are an error, and made up for by a later search.

    Every third request is tried, in each case another third; with ``make stress`` all.
    """
    monkeypatch.setattr("nodekin.nodegraph.locking.time.sleep", lambda seconds: None)
    first, every = (0, 1) if LONG else (length + done, 3)
    for number in itertools.count(first, every):
        graphs = [
            opened(opensearch_double.address, tmp_path / f"{number}.db"),
            NodeGraph(embed=lengths, progress=False),
        ]
        search, expected = (Retriever(graph, "ROOT", similarity, top_k=3) for graph in graphs)
        for graph in graphs:
            graph.add([Document(f"{'a' * n} tea", id=str(n)) for n in range(8)])
        opensearch_double.lose(range(number, number + length), done=done)
        for removed in (None, "3", "4"):
            for graph in graphs if removed else ():
                graph.remove(removed)
                graph.add(Document("aaaaa tea", id=f"in place of {removed}"))
            for _ in range(3):
                try:
                    found = search("aaa tea")
                    break
                except EngineUnavailableError:
                    assert length > 1
            assert [(r.node.id, r.score) for r in found] == [
                (r.node.id, r.score) for r in expected("aaa tea")
            ]
        graphs[0].close()
        if not opensearch_double.lost:  # there were no more requests than that
            break
    assert number > 10


def test_a_server_that_was_killed_or_lost_is_caught_up_with(
    opensearch_double: OpenSearchDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodekin.nodegraph.locking.time.sleep", lambda seconds: None)
    with opened(opensearch_double.address, tmp_path / "g.db") as graph:
        graph.add([Document(f"{'a' * n} tea", id=str(n)) for n in range(20)])
        search = Retriever(graph, "ROOT", "cosine", top_k=3)
        before = [result.node.id for result in search("aaa tea")]
        backup = opensearch_double.backup()
        opensearch_double.kill()
        with pytest.raises(EngineUnavailableError):
            search("aaa tea")
        graph.remove(before[0])
        opensearch_double.start()
        assert [result.node.id for result in search("aaa tea")][:2] == before[1:]
        opensearch_double.indexes.clear()
        assert [result.node.id for result in search("aaa tea")][:2] == before[1:]
    for lost in (backup, {}):
        opensearch_double.indexes = lost
        with opened(opensearch_double.address, tmp_path / "g.db") as graph:
            again = Retriever(graph, "ROOT", "cosine", top_k=3)("aaa tea")
            assert [result.node.id for result in again][:2] == before[1:]
    with opened(opensearch_double.address) as graph:  # of which nothing lasts
        graph.add("a text")
        assert Retriever(graph, "ROOT", "cosine")("text")
        assert len(opensearch_double.indexes) == 2
    assert len(opensearch_double.indexes) == 1


def test_threads_share_an_engine(engine: OpenSearchEngine) -> None:
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.put("nodekin_a", rows(60))
    position, every, errors = engine.set_version_token("nodekin_a", "one"), rows(60), []

    def work(thread: int) -> None:
        try:
            for row in every[thread::8]:
                found = engine.nearest(
                    "nodekin_a", row.vector, 1, RowSelection(position=position), thread % 2 == 0
                )
                assert found.ids == [row.id]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not errors


# A real server, where there is one


@pytest.fixture
def real(opensearch_server: str) -> Iterator[OpenSearchEngine]:
    engine = OpenSearchEngine(opensearch_server)
    for name in ("nodekin_test_a", "nodekin_test_b"):
        engine.drop(name)
    yield engine
    for name in ("nodekin_test_a", "nodekin_test_b"):
        engine.drop(name)
    engine.close()


@pytest.mark.slow
def test_a_real_server_finds_what_memory_finds(real: OpenSearchEngine) -> None:
    same_as_memory(real, "nodekin_test_a", 60)
    same_as_memory(real, "nodekin_test_b", 60, has_hnsw=True)
    real.drop("nodekin_test_a")
    same_words_as_memory(real, "nodekin_test_a", 60)


@pytest.mark.slow
@pytest.mark.data
def test_questions_on_cmrc_have_the_results_of_a_real_server(
    opensearch_server: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a filter that leaves many, and with one that leaves few."""
    monkeypatch.setattr(engine_index, "_FEW", 300)
    monkeypatch.setattr(opensearch, "HNSW_FROM", 1_000)
    options = {"store": tmp_path / "graph.db", "index": opensearch_server}
    check_recall("OpenSearch", options, data, (None, {"part": {"lt": 20}}, {"part": 3}))


# Another server of the protocol, and the double beside it


@pytest.fixture(scope="module")
def osmem() -> Iterator[str]:
    pytest.importorskip("opensearchpy", reason="no opensearchpy: pip install nodekin[opensearch]")
    package = pytest.importorskip("osmem_server", reason="no osmem: pip install osmem-server")
    try:
        server = package.OsmemServer.start()
    except (OSError, package.OsmemError) as error:
        pytest.skip(f"osmem-server doesn't start here: {error}")
    yield server.url.replace("http://", "opensearch://")
    server.close()
    server.process.wait(300)
    server.process.stdout.close()


def test_words_are_found_on_osmem(osmem: str, socket_enabled: None) -> None:
    engine = OpenSearchEngine(osmem)
    same_words_as_memory(engine, "nodekin_words", 60)
    engine.close()


def test_what_is_no_search_by_vectors_is_the_same_on_osmem(
    osmem: str, socket_enabled: None
) -> None:
    engine, memory, chance = OpenSearchEngine(osmem), MemoryEngine(), random.Random(7)
    for each in (engine, memory):
        each.create("nodekin_a", 8, has_hnsw=True)
        each.put("nodekin_a", rows(300))
        each.delete("nodekin_a", [f"{i:032x}" for i in range(0, 300, 9)] + ["f" * 32])
        each.put("nodekin_a", [row._replace(value_ids=[5, 999]) for row in rows(3)])
        each.set_version_token("nodekin_a", "one")
        assert each.version_token("nodekin_a") == "one"
    for match in (None, *(random_match(chance) for _ in range(40))):
        assert engine.count("nodekin_a", match, 0) == memory.count("nodekin_a", match, 0)
        found, expected = (
            sorted(
                (r.key, r.id, r.order, *r.value_ids, r.vector.tobytes())
                for part in each.rows("nodekin_a", match, 0)
                for r in part
            )
            for each in (engine, memory)
        )
        assert found == expected
    engine.create("nodekin_a", 8, has_hnsw=True)
    engine.drop("nodekin_a")
    engine.drop("nodekin_a")
    assert engine.version_token("nodekin_a") is None
    for use in (
        lambda: engine.put("nodekin_a", rows(1)),
        lambda: engine.delete("nodekin_a", ["0" * 32]),
        lambda: engine.count("nodekin_a", None, 0),
    ):
        with pytest.raises(MissingCollectionError):
            use()
    engine.close()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/nodekin_a/_bulk", '{"index": {"_id": "1"}}\n{"id": "x"}'),
        ("POST", "/nodekin_a/_search", {"query": {"nearest": {}}}),
        ("POST", "/nodekin_a/_search", {"query": {"term": {"tags": "1"}, "exists": {}}}),
        ("POST", "/nodekin_a/_search", {"quary": {"match_all": {}}}),
        ("POST", "/nodekin_a/_search", {"query": {"bool": {"filters": []}}}),
        ("POST", "/nodekin_a/_search", {"query": {"match_all": {}}, "size": 10_001}),
        ("POST", "/nodekin_a/_search", {"query": {"terms": {"tags": ["1"] * 65_537}}}),
        ("POST", "/nodekin_a/_search", {"query": {"knn": {"tags": {"vector": [1], "k": 1}}}}),
        ("POST", "/nodekin_a/_search", {"query": {"knn": {"vector": {"vector": [1], "k": 1}}}}),
        ("POST", "/nodekin_a/_search?whole=true", {"query": {"match_all": {}}}),
        ("POST", "/nodekin_a/_searches", {"query": {"match_all": {}}}),
        ("PUT", "/Nodekin", {"settings": {"index": {}}, "mappings": {"properties": {}}}),
        ("PUT", "/b", {"settings": {"index": {"knm": 1}}, "mappings": {"properties": {}}}),
    ],
)
def test_the_double_refuses_wrong_requests(
    engine: OpenSearchEngine, opensearch_double: OpenSearchDouble, method: str, path: str, body: Any
) -> None:
    engine.create("nodekin_a", 2, has_hnsw=True)
    sent = body if isinstance(body, str) else json.dumps(body)
    with pytest.raises(Refusal) as raised:
        opensearch_double.answer(method, path, sent.encode(), {})
    assert raised.value.status == 400
