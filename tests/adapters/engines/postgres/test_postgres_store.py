"""Graphs on a PostgreSQL server."""

import itertools
import multiprocessing
import os
import pickle
import subprocess
import sys
from contextlib import closing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from support.entity_links import WITH_ANNA, WITHOUT, changed_in_turns
from support.graph_edits import GraphEdits
from support.postgres_server import RunningServer
from support.stress import amount

from nodekin.adapters.engines.postgres.graph_database import PostgresDatabase
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.retrievers import AutoMergeRetriever, Retriever, WindowRetriever
from nodekin.retrievers.similarities.bm25 import Bm25


@pytest.mark.slow
def test_random_writes_match_a_model(postgres_server: RunningServer) -> None:
    class Machine(GraphEdits):
        def place(self) -> str:
            return postgres_server.address()

        def teardown(self) -> None:
            self.graph.close()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=amount(8, 15),
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


DOCUMENTS = [
    Document("green tea\nis hot", {"source": "tea.md", "year": 2021}, id="tea"),
    Document("a cup of coffee\nand tea", {"source": "cup.md", "tags": ("a", "b")}, id="cup"),
    Document("河水 \0 \ud83c\nrivers", {"source": "河.md"}, id="河'\"%_"),
]


def lines(text: str) -> list[str]:
    return text.splitlines()


def opened(store: str | None) -> NodeGraph:
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("line", lines)
    return graph


def test_an_address_gives_the_results_of_memory(address: str) -> None:
    answers = []
    for store in (address, address, None):
        graph = opened(store)
        if not graph.reader.document_ids():
            graph.add(DOCUMENTS)
        retriever = Retriever(graph, "line")
        answers.append(
            [
                (r.node.id, r.node.text, r.node.metadata, r.score)
                for query in ("tea", "河水", "cup rivers")
                for r in retriever(query)
            ]
        )
        graph.close()
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) >= 4


def test_changes_are_found_by_another_graph(address: str) -> None:
    one, other = opened(address), opened(address)
    one.add(DOCUMENTS)
    retriever = Retriever(other, "line")
    assert {r.node.document_id for r in retriever("tea")} == {"tea", "cup"}
    one.remove("cup")
    one.add(Document("black tea", id="tea"))
    assert [r.node.text for r in retriever("tea")] == ["black tea"]
    one.close()
    other.close()


def test_lines_that_do_not_change_are_not_written_again(address: str) -> None:
    with opened(address) as graph:
        graph.add(Document("one\ntwo", id="a"))
        graph.build("line")
        revision = graph.reader.revision("line")
        graph.add(Document("one\ntwo\nthree", id="a"))
        graph.build("line")
        changes = graph.reader.changes("line", revision)
        assert list(changes.removed) == []
        assert [node.text for node in changes.added] == ["three"]


def test_schemas_separate_graphs(postgres_server: RunningServer) -> None:
    names = ["tenant one", 'two"; DROP', "三"]
    graphs = [opened(f"{postgres_server.uri}&schema={name}") for name in names]
    for graph, name in zip(graphs, names, strict=True):
        graph.add(Document(name, id="same"))
    for graph, name in zip(graphs, names, strict=True):
        assert [node.text for node in graph.nodes("ROOT")] == [name]
        graph.close()


def write_pairs(address: str, ready: Event, done: Event) -> None:
    """Change two documents together, again and again."""
    graph = opened(address)
    for number in itertools.count():
        graph.add([Document(f"{number}\nx", id="a"), Document(f"{number}\ny", id="b")])
        graph.nodes("line")
        ready.set()
        if done.is_set():
            break
    graph.close()


@pytest.mark.slow
def test_turns_read_one_state_while_a_process_writes(address: str) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=write_pairs, args=(address, ready, done))
    process.start()
    try:
        assert ready.wait(60)
        store = PostgresStore(address)
        seen = set()
        for _ in range(100):
            with store.transactions.turn() as state:
                first, second = (node.text.split() for node in store.nodes.of_group("ROOT"))
                again = [node.text.split() for node in store.nodes.get(["a", "b"]) if node]
                derived = [node.text for node in store.nodes.of_group("line")]
            assert first[0] == second[0]
            assert again == [first, second]
            assert derived in ([], [*first, *second]) or derived[0] == derived[2]
            seen.add(state)
        store.close()
        assert len(seen) > 1
    finally:
        done.set()
        process.join(60)
    assert process.exitcode == 0


def test_a_pickled_store_reopens_its_address(address: str) -> None:
    store = PostgresStore(address)
    store.change_documents(DOCUMENTS)
    again = pickle.loads(pickle.dumps(store))
    assert again.nodes.ids("ROOT") == store.nodes.ids("ROOT")
    store.close()
    again.close()


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
from nodekin.nodegraph import Document
from nodekin.adapters.engines.postgres.address import PostgresAddress
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
store = PostgresStore(sys.argv[1])
store.change_documents([Document("x", id="a")])
child = os.fork()
store.change_documents([Document("x", id=str(os.getpid()))])
if not child:
    os._exit(0 if len(store.nodes.ids("ROOT")) >= 2 else 1)
assert os.waitpid(child, 0)[1] == 0
assert len(store.nodes.ids("ROOT")) == 3
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_opens_new_connections(address: str) -> None:
    subprocess.run([sys.executable, "-c", FORKED, address], check=True, timeout=60)


@pytest.mark.parametrize("package", ["psycopg", "psycopg_pool"])
def test_missing_psycopg_error_names_the_extra(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if ".engines.postgres" in name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "nodekin\[postgres\]"'):
        NodeGraph(store="postgresql://db/x")


FORMAT_1 = """
UPDATE derivations d SET fields = o.fields, search_text = o.search_text
    FROM documents o WHERE o.key = d.document AND d.fields IS NULL;
UPDATE derivations SET fields = NULL WHERE fields = '';
ALTER TABLE documents DROP COLUMN fields, DROP COLUMN search_text;
ALTER TABLE derivations
    DROP COLUMN text,
    ALTER COLUMN source TYPE text USING encode(source, 'hex'),
    ALTER COLUMN rule TYPE text USING encode(rule, 'hex'),
    ALTER COLUMN metadata TYPE text USING encode(metadata, 'hex');
CREATE INDEX derivations_by_document ON derivations (document);
ALTER TABLE nodes DROP COLUMN length, ALTER COLUMN text SET NOT NULL;
DROP INDEX nodes_by_parent;
CREATE INDEX nodes_by_parent ON nodes (derivation, parent);
DROP TABLE blocks;
DELETE FROM counters WHERE name = 'texts';
UPDATE nodekin_graph SET format = 1;
"""


def test_tables_of_format_1_keep_their_nodes(address: str) -> None:
    split: list[str] = []

    def words(text: str) -> list[str]:
        split.append(text)
        return text.split()

    def graph() -> NodeGraph:
        graph = NodeGraph(store=address, progress=False)
        graph.create_node_group("word", words, version="1")
        return graph

    with graph() as first:
        first.add([Document("green tea", {"year": 1}, id="a"), Document("cup", id="c")])
        first.build("word")
        first.add(Document("cup", {"year": 2}, id="c"))  # its words are outdated
        database = first._store.database
        assert isinstance(database, PostgresDatabase)
        database.call(lambda connection: connection.run_script(FORMAT_1))
    with graph() as second:
        found = [(node.text, node.metadata) for node in second.nodes("word")]
        year_1 = {"year": 1}
        assert found == [("green", year_1), ("tea", year_1), ("cup", {"year": 2})]
        assert "green tea" not in split[2:]
        second.add(Document("milk", id="b"))
        assert [node.text for node in second.nodes("word")] == ["green", "tea", "cup", "milk"]


def test_tables_of_another_format_raise(address: str) -> None:
    with closing(PostgresStore(address)) as store, store.transactions.transaction():
        store.database.run_many("UPDATE nodekin_graph SET format = ?", [(9,)])
    for open_again in (lambda: PostgresStore(address), lambda: store.nodes.ids("ROOT")):
        with pytest.raises(StoreError, match=r"format 9, .* format 3; index the documents again"):
            open_again()


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [(WITHOUT, WITH_ANNA, ["one", "three", "two"]), (WITH_ANNA, WITHOUT, ["one", "two"])],
)
def test_graphs_that_build_in_turns_share_links(
    address: str, first: str, then: str, expected: list[str]
) -> None:
    assert changed_in_turns(address, first, then) == [expected] * 3


def test_the_password_is_not_shown(address: str) -> None:
    store = PostgresStore(address.replace("postgres:@", "postgres:secret@"))
    assert "secret" not in repr(store)
    store.close()
    with pytest.raises(StoreError) as caught:
        PostgresStore("postgresql://me:secret@/x?host=/nowhere")
    assert "postgresql://me@/nowhere/x?schema=nodekin cannot be reached" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_cache_stores_the_word_index(address: str, tmp_path: Path) -> None:
    cached = f"{address}&cache={tmp_path / 'cache'}"
    with opened(cached) as graph:
        graph.add([Document(f"line {n} tea\nwater {n}", id=str(n)) for n in range(200)])
        before = [(r.node.id, r.score) for r in Retriever(graph, "line")("tea 7")]
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert [*folder.iterdir()]
    with opened(cached) as graph, opened(address) as other:
        assert [(r.node.id, r.score) for r in Retriever(graph, "line")("tea 7")] == before
        assert Bm25().open(graph, "line")._loaded
        other.add(Document("tea 7", id="new"))
        other.remove("3")
        expected = [(r.node.id, r.score) for r in Retriever(other, "line")("tea 7")]
        assert [(r.node.id, r.score) for r in Retriever(graph, "line")("tea 7")] == expected


def test_an_impossible_cache_folder_raises(address: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be created.*cache= in the address"):
        opened(f"{address}&cache={tmp_path / 'file'}")


def test_windows_and_merging_equal_those_in_memory(address: str) -> None:
    results = []
    for store in (None, address):
        with NodeGraph(store=store, progress=False) as graph:
            graph.add([Document("a b c\nd e\nf g", id="1"), Document("x y", id="2")])
            graph.create_node_group("line", str.splitlines)
            graph.create_node_group("word", str.split, parent="line")
            words = Retriever(graph, "word")
            windows = WindowRetriever(words, 1, 2)
            merging = AutoMergeRetriever(words, target="line")
            for query in ("c", "d e", "a b x"):
                for retriever in (windows, merging):
                    results.append([result.node.text for result in retriever(query)])
    half = len(results) // 2
    assert results[:half] == results[half:]
    assert results[:2] == [["b c\nd e"], ["c"]]
