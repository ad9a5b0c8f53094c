"""The store knows what an engine has: lost, interrupted or set back, no answer is wrong."""

import itertools
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_engine import MemoryEngine
from stress import LONG

from nodekin.adapters.engines import engine_table
from nodekin.adapters.engines.index_engine import EngineUnavailableError, MissingCollectionError
from nodekin.nodegraph import Document, Embedder, NodeGraph, NodeStore, TransientStoreError
from nodekin.retrievers import Retriever, RetrieverSettings
from nodekin.retrievers.indexes import engine_index
from nodekin.retrievers.indexes.engine_index import EngineVectorIndex
from nodekin.retrievers.indexes.engine_text_index import EngineTextIndex
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.indexes.vector_index import VectorIndex


def lengths(dimension: int) -> Embedder:
    def embed(texts: list[str]) -> Any:
        rows = [[1.0, *(float(len(word)) for word in text.split())] for text in texts]
        return [[*row, *[0.5] * dimension][:dimension] for row in rows]

    return Embedder(embed, f"lengths {dimension}")


def opened(store: Path | None, engine: MemoryEngine | None, dimension: int = 4) -> NodeGraph:
    graph = NodeGraph(store=store, index=engine, embed=lengths(dimension), progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


def document(number: int) -> Document:
    lines = (f"{'a' * n} {'b' * number} {'c' * (number % 3)}" for n in range(1, 4))
    return Document("\n".join(lines), {"part": number % 3}, id=f"d{number}'\"")


def fill(*graphs: NodeGraph, numbers: Any = range(8)) -> None:
    for graph in graphs:
        graph.add([document(number) for number in numbers])


def answers(graph: NodeGraph) -> list[Any]:
    found = []
    for filters in (None, {"part": 1}, {"not": {"part": 1}}, {"document.id": {"like": "d_'%"}}):
        for settings in (
            {"top_k": 5},
            {"target": "ROOT", "settings": RetrieverSettings(lift="sum")},
        ):
            retriever = Retriever(graph, "line", SEARCHED["by"], filters=filters, **settings)
            found.append([(r.node.id, r.score) for r in retriever("aa bbb c")])
    return found


def expected(numbers: Any) -> list[Any]:
    graph = opened(None, None)
    fill(graph, numbers=numbers)
    return answers(graph)


SEARCHED = {"by": "cosine"}
"""The similarity of ``answers``."""


@pytest.fixture(autouse=True, params=["cosine", "bm25"])
def searched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with vectors in the engine, and with words."""
    monkeypatch.setitem(SEARCHED, "by", request.param)
    return str(request.param)


vectors_only = pytest.mark.parametrize("searched", ["cosine"], indirect=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again without waiting."""
    monkeypatch.setattr("nodekin.nodegraph.locking.time.sleep", lambda seconds: None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "graph.db"


@pytest.mark.slow
def test_an_interruption_at_any_call_is_repaired(tmp_path: Path) -> None:
    changes = range(3, 12)
    for stop in itertools.count(1, 1 if LONG else 3):
        engine, file = MemoryEngine(words=True), tmp_path / f"{stop}.db"
        with opened(file, engine) as graph:
            fill(graph)
            answers(graph)
            graph.remove([document(number).id for number in range(3)])
            fill(graph, numbers=changes)
            calls = itertools.count(1)

            def interrupt(name: str, calls: Any = calls, stop: int = stop) -> None:
                if next(calls) == stop:
                    raise KeyboardInterrupt

            engine.before = interrupt
            try:
                answers(graph)
            except KeyboardInterrupt:
                finished = False
            else:
                finished = True
            engine.switch_on()
            if stop % 2:  # the same process goes on, or another one begins
                graph.add(document(20))
                graph.remove(document(20).id)
                assert answers(graph) == expected(changes)
        with opened(file, engine) as graph:
            assert answers(graph) == expected(changes)
            fill(graph, numbers=[30])
            assert answers(graph) == expected([*changes, 30])
        if finished:
            assert stop > 15
            break


def test_an_interrupted_first_build_is_finished(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(engine_index, "_BATCH", 5)
    for stop in (1, 2, 4, 9, 14, 25):
        engine, calls = MemoryEngine(words=True), itertools.count(1)

        def interrupt(name: str, calls: Any = calls, stop: int = stop) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt

        engine.before = interrupt
        with opened(tmp_path / f"{stop}.db", engine) as graph:
            fill(graph)
            with pytest.raises(KeyboardInterrupt):
                answers(graph)
            engine.switch_on()
            graph.remove([document(0).id, document(5).id])
        with opened(tmp_path / f"{stop}.db", engine) as graph:
            assert answers(graph) == expected([1, 2, 3, 4, 6, 7])
        assert len(engine.collections) <= 2  # made, and not yet noted when it was interrupted


@vectors_only
def test_an_engine_that_is_off_is_named_and_words_go_on(file: Path) -> None:
    engine = MemoryEngine()
    with opened(file, engine) as graph:
        fill(graph)
        before = answers(graph)
        engine.switch_off()
        with pytest.raises(EngineUnavailableError, match="Memory at memory:// can't be reached"):
            answers(graph)
        assert Retriever(graph, "line", "bm25")("aaa")
        fill(graph, numbers=[9])
        with pytest.raises(EngineUnavailableError):
            answers(graph)
        engine.switch_on()
        graph.remove(document(9).id)
        assert answers(graph) == before


def test_what_fails_for_now_is_tried_again(file: Path) -> None:
    engine, calls = MemoryEngine(words=True), itertools.count()

    def refuse(name: str) -> None:
        if next(calls) % 20 == 5:
            raise EngineUnavailableError("busy")

    engine.before = refuse
    with opened(file, engine) as graph:
        for numbers in (range(4), range(4, 8)):
            fill(graph, numbers=numbers)
            answers(graph)
        assert answers(graph) == expected(range(8))


@vectors_only
@pytest.mark.parametrize("failures", [1, 3, 100])
def test_reading_all_rows_is_begun_again(
    file: Path, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a group is has_hnsw, and where a build is resumed."""
    failed = itertools.count()
    read = MemoryEngine.rows

    def fail(self: MemoryEngine, *arguments: Any) -> Iterator[Any]:
        rows = read(self, *arguments)
        yield next(rows)
        if next(failed) < failures:
            raise EngineUnavailableError("busy")
        yield from rows

    monkeypatch.setattr(MemoryEngine, "rows", fail)
    engine = MemoryEngine(hnsw_from=40)
    with opened(file, engine) as graph:
        fill(graph)
        written = itertools.count()

        def interrupt(name: str) -> None:
            if name == "put" and next(written) == 20:
                raise KeyboardInterrupt

        engine.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            answers(graph)
        engine.switch_on()
        if failures == 100:
            with pytest.raises(EngineUnavailableError, match="busy"):
                answers(graph)
            assert next(failed) == 4
            return
        assert answers(graph) == expected(range(8))
        assert next(failed) > failures
        failed = itertools.count()
        fill(graph, numbers=range(8, 16))
        assert answers(graph) == expected(range(16))
        assert next(failed) > failures
        assert [c.has_hnsw for c in engine.collections.values()] == [True]


@pytest.mark.parametrize("reopened", [True, False])
def test_an_engine_that_lost_everything_is_filled_again(file: Path, reopened: bool) -> None:
    engine = MemoryEngine(words=True)
    graph = opened(file, engine)
    fill(graph)
    answers(graph)
    engine.collections.clear()
    if reopened:
        graph.close()
        graph = opened(file, engine)
    assert answers(graph) == expected(range(8))
    assert len(engine.collections) == 1
    engine.calls.clear()
    assert answers(graph) == expected(range(8))
    assert "put" not in engine.calls
    graph.close()


def test_an_engine_that_was_set_back_is_filled_again(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph:
        fill(graph)
        answers(graph)
        backup = engine.backup()
        fill(graph, numbers=range(8, 10))
        graph.remove(document(1).id)
        answers(graph)
    engine.collections = backup
    with opened(file, engine) as graph:
        assert answers(graph) == expected([0, *range(2, 10)])


@vectors_only
@pytest.mark.parametrize("seen_by", ["an update", "a failure", "another process"])
def test_an_engine_that_lost_a_row_is_filled_again(
    file: Path, seen_by: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = MemoryEngine(words=True)
    graph = opened(file, engine)
    fill(graph)
    answers(graph)
    (collection,) = engine.collections.values()
    del collection.rows[next(iter(collection.rows))]
    if seen_by == "an update":
        fill(graph, numbers=[8])
        assert answers(graph) == expected(range(9))
        assert "has 26 vectors of group 'line' in place of 27" in caplog.text
    elif seen_by == "a failure":
        before_a_call = engine.before
        engine.switch_off()
        with pytest.raises(EngineUnavailableError):
            answers(graph)
        engine.before = before_a_call
        assert answers(graph) == expected(range(8))
    else:
        with opened(file, engine) as other:
            assert answers(other) == expected(range(8))
    assert len(engine.collections) == 1
    graph.close()


@vectors_only
def test_rows_that_came_during_an_update_are_not_taken_for_lost(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = MemoryEngine()
    graph, other = opened(file, engine), opened(file, None)
    fill(graph)
    answers(graph)
    before = [*engine.collections]
    fill(graph, numbers=[8])

    def change(name: str) -> None:
        if name == "count":
            engine.switch_on()
            fill(other, numbers=[9])
            assert len(other.nodes("line")) == 30

    engine.before = change
    assert answers(graph) == expected(range(10))
    assert [*engine.collections] == before
    assert "all of them again" not in caplog.text


def test_a_store_that_was_set_back_or_copied_is_never_mixed_up(tmp_path: Path) -> None:
    engine, file, copied = MemoryEngine(words=True), tmp_path / "graph.db", tmp_path / "copy.db"
    with opened(file, engine) as graph:
        fill(graph)
        answers(graph)
    shutil.copy(file, copied)
    with opened(file, engine) as graph, opened(copied, engine) as another:
        fill(graph, numbers=range(8, 12))
        graph.remove(document(1).id)
        another.remove(document(2).id)
        assert answers(graph) == expected([0, *range(2, 12)])
        assert answers(another) == expected([0, 1, *range(3, 8)])
    with opened(copied, engine) as another:
        another.compact()
    shutil.copy(copied, file)
    with opened(file, engine) as graph:
        fill(graph, numbers=range(20, 24))
        assert answers(graph) == expected([0, 1, *range(3, 8), *range(20, 24)])


def test_processes_share_what_one_has_written(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph, opened(file, engine) as another:
        fill(graph)
        assert answers(graph) == expected(range(8))
        engine.calls.clear()
        assert answers(another) == expected(range(8))
        assert "put" not in engine.calls
        fill(another, numbers=[8])
        assert answers(another) == answers(graph) == expected(range(9))
        assert not any(
            isinstance(i, VectorIndex | TextIndex) for i in graph.reader._shared.values()
        )


def test_a_thread_that_reads_an_earlier_state_sees_that_state(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph, opened(file, engine) as another:
        fill(graph)
        before = answers(graph)
        with graph.reader.reading("line"):
            another.remove(document(3).id)
            fill(another, numbers=[8])
            assert answers(another) == expected([0, 1, 2, 4, 5, 6, 7, 8])
            assert answers(graph) == before
        assert answers(graph) == expected([0, 1, 2, 4, 5, 6, 7, 8])


def test_a_change_during_a_search_is_searched_again(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph, opened(file, engine) as another:
        fill(graph)
        answers(graph)

        def change(name: str) -> None:
            if name == "nearest":
                engine.switch_on()
                another.remove(document(3).id)
                fill(another, numbers=[8])
                thread = threading.Thread(target=answers, args=(another,))
                thread.start()
                thread.join(300)

        engine.before = change
        assert answers(graph) == expected([0, 1, 2, 4, 5, 6, 7, 8])


def test_what_is_being_written_is_compared_beside_it(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph, opened(file, engine) as another:
        fill(graph)
        answers(graph)
        assert answers(another)
        (index,) = (
            i
            for i in another.reader._shared.values()
            if isinstance(i, EngineVectorIndex | EngineTextIndex)
        )
        with index._table().updating() as free:
            assert free
            graph.remove(document(3).id)
            fill(graph, numbers=[8])
            engine.calls.clear()
            assert answers(graph) == expected([0, 1, 2, 4, 5, 6, 7, 8])
            assert "put" not in engine.calls


def test_who_lost_the_lock_writes_nothing_that_counts(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph, opened(file, engine) as another:
        fill(graph)
        answers(graph)
        fill(graph, numbers=[8])
        assert answers(another)
        (index,) = (
            i
            for i in another.reader._shared.values()
            if isinstance(i, EngineVectorIndex | EngineTextIndex)
        )

        table = index._table()

        def steal(name: str) -> None:
            if name == "put":
                engine.switch_on()
                record = table._record()  # type: ignore[attr-defined]
                table._put(replace(record, writer="another"))  # type: ignore[attr-defined]

        engine.before = steal
        fill(graph, numbers=[9])
        with pytest.raises(TransientStoreError, match="another process updates group 'line'"):
            answers(graph)
        assert answers(graph) == expected(range(10))


@vectors_only
def test_a_group_that_has_grown_large_has_hnsw(file: Path) -> None:
    engine = MemoryEngine(hnsw_from=40)
    with opened(file, engine) as graph:
        fill(graph)
        answers(graph)
        assert [c.has_hnsw for c in engine.collections.values()] == [False]
        fill(graph, numbers=range(8, 16))
        assert answers(graph) == expected(range(16))
        assert [c.has_hnsw for c in engine.collections.values()] == [True]
        graph.remove(document(3).id)
        assert answers(graph) == expected([0, 1, 2, *range(4, 16)])


@vectors_only
def test_an_interrupted_linking_begins_anew(file: Path) -> None:
    engine = MemoryEngine(hnsw_from=40)
    with opened(file, engine) as graph:
        fill(graph)
        answers(graph)
        fill(graph, numbers=range(8, 16))

        def interrupt(name: str) -> None:
            if name == "rows":
                raise KeyboardInterrupt

        engine.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            answers(graph)
        engine.switch_on()
    with opened(file, engine) as graph:
        graph.remove(document(3).id)
        assert answers(graph) == expected([0, 1, 2, *range(4, 16)])
        assert [c.has_hnsw for c in engine.collections.values()] == [True]


def test_all_documents_may_go_and_come_back(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph:
        for numbers in ((), (1, 2), (), (2, 3)):
            for i in graph._store.document_ids():
                graph.remove(i)
            fill(graph, numbers=numbers)
            assert answers(graph) == expected(numbers)


@vectors_only
def test_a_model_of_another_dimension_has_a_collection_of_its_own(file: Path) -> None:
    engine = MemoryEngine(words=True)
    for dimension in (4, 1, 6):
        with opened(file, engine, dimension) as graph, opened(None, None, dimension) as memory:
            fill(graph, memory)
            assert answers(graph) == answers(memory)
    assert len(engine.collections) == 3


@vectors_only
def test_several_embeddings_and_groups_are_apart(file: Path) -> None:
    engine, models = MemoryEngine(words=True), {"one": lengths(3), "two": lengths(5)}
    graphs = [NodeGraph(store=file, index=engine, embed=models, progress=False)]
    graphs.append(NodeGraph(embed=models))
    results = []
    for graph in graphs:
        graph.create_node_group("line", str.splitlines)
        fill(graph)
        found = []
        for group in ("line", "ROOT"):
            for key in ("one", "two", ["one", "two"]):
                retriever = Retriever(
                    graph, group, "cosine", settings=RetrieverSettings(embed_keys=key), top_k=7
                )
                found.append([(r.node.id, r.score) for r in retriever("aa bbb")])
        results.append(found)
    assert results[0] == results[1]
    assert len(engine.collections) == 4
    graphs[0].close()


def test_compacting_drops_what_nobody_has_updated_for_a_day(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine, by = MemoryEngine(words=True), SEARCHED["by"]
    with opened(file, engine) as graph:
        fill(graph, numbers=range(4))
        assert answers(graph) == expected(range(4))
        assert Retriever(graph, "ROOT", by)("aa")
    with opened(file, engine, 6) as graph:  # another model, if it is searched by vectors
        fill(graph, numbers=range(4, 8))
        assert answers(graph)
        graph.compact()
    before = set(engine.collections)
    assert len(before) == (3 if by == "cosine" else 2)
    shutil.copy(file, tmp_path / "copy.db")
    monkeypatch.setattr("nodekin.adapters.engines.engine_table._OUTDATED", -1)
    with opened(tmp_path / "copy.db", engine, 6) as graph:
        graph.compact()  # what it has records of is the other file's
    assert set(engine.collections) == before
    with opened(file, engine, 6) as graph:
        before_a_call = engine.before
        engine.switch_off()
        graph.compact()
        assert "what is outdated was left in the engine" in caplog.text
        engine.before = before_a_call
        assert set(engine.collections) == before
        graph.compact()
        assert len(engine.collections) == 1
        dropped = before.difference(engine.collections)
        assert not any(kind.startswith(tuple(dropped)) for kind in graph._store.kinds())
    with opened(file, engine) as graph:
        assert answers(graph) == expected(range(8))


def test_a_graph_in_memory_leaves_nothing_behind() -> None:
    engine = MemoryEngine(words=True)
    graph = opened(None, engine)
    fill(graph)
    assert answers(graph) == expected(range(8))
    graph.close()
    assert engine.collections == {}
    assert answers(graph) == expected(range(8))
    engine.switch_off()
    engine.before, refuse = (lambda name: None), engine.before
    engine.before = lambda name: refuse(name) if name == "drop" else None
    graph.close()  # an engine that is gone needs no cleaning


def test_a_lost_collection_while_it_is_written_is_an_error_that_says_so(file: Path) -> None:
    engine = MemoryEngine(words=True)

    def lose(name: str) -> None:
        if name == "put":
            engine.collections.clear()
            raise MissingCollectionError("gone")

    engine.before = lose
    with opened(file, engine) as graph:
        fill(graph)
        with pytest.raises(TransientStoreError, match=r"has lost the \w+ of group 'line'"):
            answers(graph)
        engine.switch_on()
        assert answers(graph) == expected(range(8))


def test_threads_of_two_processes_see_whole_states(file: Path) -> None:
    engine = MemoryEngine(words=True)
    graph, another = opened(file, engine), opened(file, engine)
    fill(graph)
    sizes = {3 * 8, 3 * 9} if SEARCHED["by"] == "cosine" else {10, 11}
    errors: list[BaseException] = []
    stop = threading.Event()

    def read(reader: NodeGraph) -> None:
        retriever = Retriever(reader, "line", SEARCHED["by"], top_k=100)
        try:
            while not stop.is_set():
                ids = [result.node.id for result in retriever("aa bb")]
                assert len(ids) in sizes
                assert len({*ids}) == len(ids)
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read, args=(g,)) for g in (graph, another) * 2]
    for reader in readers:
        reader.start()
    for _ in range(8):
        another.add(document(8))
        graph.remove(document(8).id)
    stop.set()
    for reader in readers:
        reader.join(300)
    assert not errors
    graph.close()
    another.close()


@vectors_only
def test_stores_lock_what_is_made_of_a_graph(engine: Any) -> None:
    from nodekin.nodegraph.memory_store import as_store

    place = engine.options().get("store")
    store: NodeStore = as_store(place)
    other = as_store(place) if engine.lasting else store
    with store.exclusive("one", wait=True) as free, other.exclusive("two", wait=False) as second:
        assert (free, second) == (True, True)
        with other.exclusive("one", wait=False) as again:
            assert not again
    with other.exclusive("one", wait=True) as again:
        assert again
    assert bool(store.place) == engine.lasting
    for each in {id(store): store, id(other): other}.values():
        each.close()


@vectors_only
def test_vectors_of_results_are_those_that_were_put(file: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(file, engine) as graph:
        fill(graph)
        answers(graph)
        (collection,) = engine.collections.values()
        lengths_of_vectors = [float(np.linalg.norm(r.vector)) for r in collection.rows.values()]
        assert lengths_of_vectors == pytest.approx([1.0] * 24)
        assert all(row.id.isascii() and len(row.key) == 32 for row in collection.rows.values())


def test_records_of_an_earlier_version_are_read(file: Path) -> None:
    engine = MemoryEngine()
    with opened(file, engine) as graph:
        fill(graph)
        before = answers(graph)
        store = graph._store
        for key, stored in store.get_values(engine_table._KIND).items():
            old = stored.replace(b"has_hnsw", b"linked").replace(b"next_token", b"next_mark")
            old = old.replace(b"version_token", b"mark")
            assert old != stored
            store.put_values(engine_table._KIND, {key: old})
    with opened(file, engine) as graph:
        assert answers(graph) == before
        graph.compact()
