"""Words that an engine searches: the results of an index in memory, which no process holds."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from memory_engine import MemoryEngine
from stress import LONG

from nodekin.adapters.engines import engine_words
from nodekin.adapters.engines.index_engine import WordHits
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Bm25, Retriever, RetrieverSettings
from nodekin.retrievers.indexes import text_index
from nodekin.retrievers.indexes.engine_text_index import EngineTextIndex
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.similarities.bm25 import DEFAULT_ANALYZER, open_postings

QUERIES = ("tea", "green tea river", "the bank of the river", "长江 河流", "milk milk", "nothing")

WORDS = "tea green black milk river bank bed the of 长江 河流 金钱".split()


def opened(engine: MemoryEngine | None = None, store: Any = None) -> NodeGraph:
    graph = NodeGraph(store=store, index=engine, progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


def document(number: int, lines: int = 6, longest: int = 12) -> Document:
    chance = random.Random(number)
    texts = [
        " ".join(chance.choices(WORDS, range(12, 0, -1), k=chance.randrange(1, longest)))
        for _ in range(lines)
    ]
    return Document("\n".join(texts), {"part": number % 3}, id=f"d{number}")


def rows(results: list[Any]) -> list[tuple[str, float]]:
    return [(result.node.id, result.score) for result in results]


def same(graphs: list[NodeGraph], similarity: Any = "bm25", **settings: Any) -> None:
    for filters in (None, {"part": 1}, {"not": {"part": 1}}):
        for query in QUERIES:
            got, expected = (
                rows(Retriever(graph, "line", similarity, filters=filters, **settings)(query))
                for graph in graphs
            )
            assert got == expected, (query, filters)


def graphs_with(engine: MemoryEngine, count: int = 40) -> list[NodeGraph]:
    graphs = [opened(engine), opened()]
    for graph in graphs:
        graph.add([document(number) for number in range(count)])
    return graphs


def test_no_process_holds_an_index() -> None:
    graphs = graphs_with(MemoryEngine(words=True))
    same(graphs, top_k=3)
    same(graphs, target="ROOT", settings=RetrieverSettings(lift="sum"))
    (index,) = graphs[0].reader._shared.values()
    assert isinstance(index, EngineTextIndex)
    assert index._statistics is not None
    assert len(index._statistics[1]._terms) < len(WORDS) + 10  # those of the queries
    assert index._recent is None
    assert any(isinstance(index, TextIndex) for index in graphs[1].reader._shared.values())


@pytest.mark.parametrize(("k1", "b"), [(0.0, 0.75), (0.4, 0.1), (1.2, 0.0), (9.0, 1.0)])
def test_other_settings_have_their_own_scores(k1: float, b: float) -> None:
    graphs = graphs_with(MemoryEngine(words=True))
    same(graphs, Bm25(k1=k1, b=b), top_k=3)


def test_nodes_that_become_longer_change_all_scores() -> None:
    graphs = graphs_with(MemoryEngine(words=True), 5)
    same(graphs, top_k=3)
    for graph in graphs:
        graph.add([document(number, longest=400) for number in range(50, 70)])
    same(graphs, top_k=3)
    for graph in graphs:
        graph.remove([f"d{number}" for number in range(5)])
    same(graphs, top_k=3)


class Inexact(MemoryEngine):
    """Return sums that are up to a quarter too low or too high."""

    def search_words(self, *args: Any) -> WordHits:
        collection, query, limit, *others = args
        found = super().search_words(collection, query, None, *others)
        chance = random.Random(5)
        scores = [score * chance.uniform(0.8, 1.25) for score in found.scores]
        pairs = sorted(zip(scores, found.keys, strict=True), reverse=True)[:limit]
        return WordHits([key for _, key in pairs], [score for score, _ in pairs])


def test_an_engine_may_say_how_inexact_it_is() -> None:
    engine = Inexact(words=True)
    engine.word_slack = 1.25
    same(graphs_with(engine), top_k=3)


def test_more_ties_than_an_engine_returns() -> None:
    engine = MemoryEngine(words=True)
    engine.max_results = 20
    graphs = [opened(engine), opened()]
    for graph in graphs:
        graph.add([Document("green tea\n" * 30 + "tea tea", id=str(n)) for n in range(3)])
    retrievers = [Retriever(graph, "line", "bm25", top_k=5) for graph in graphs]
    got, expected = (rows(retriever("tea")) for retriever in retrievers)
    assert [score for _, score in got] == [score for _, score in expected]
    same(graphs, top_k=40)  # all are read, and ties are in document order


def test_several_graphs_are_searched_as_one() -> None:
    engine = MemoryEngine(words=True)
    mixed = [opened(engine), opened()]
    alone = [opened(), opened()]
    for first, second in (mixed, alone):
        first.add([document(number) for number in range(10)])
        second.add([document(number) for number in range(10, 30)])
    for query in QUERIES:
        got, expected = (rows(Retriever(g, "line", "bm25")(query)) for g in (mixed, alone))
        assert got == expected


def test_nodes_without_a_term_count_in_the_average() -> None:
    graphs = [opened(MemoryEngine(words=True)), opened()]
    for texts in (["...\ntea", "!"], ["tea\n?"], ["..."], ["tea"], ["tea", "green tea"]):
        for graph in graphs:
            graph.remove(graph.reader.document_ids())
            graph.add([Document(text, id=str(n)) for n, text in enumerate(texts)])
        same(graphs)


def test_metadata_that_changes_is_seen() -> None:
    graphs = graphs_with(MemoryEngine(words=True), 6)
    same(graphs)
    for graph in graphs:
        graph.add(Document(document(3).text, {"part": 1}, id="d3"))
    same(graphs)


def test_every_analyzer_has_a_collection_of_its_own() -> None:
    engine = MemoryEngine(words=True)
    graphs = graphs_with(engine, 5)
    same(graphs)
    same(graphs, Bm25(analyzer=str.split))
    same(graphs, Bm25(analyzer=list))
    assert len(engine.collections) == 3


def test_another_analysis_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MemoryEngine(words=True)
    with opened(engine, tmp_path / "graph.db") as graph:
        graph.add(document(1))
        assert Retriever(graph, "line", "bm25")("tea")
    (before,) = engine.collections
    monkeypatch.setattr(text_index, "_ANALYSIS", 99)
    with opened(engine, tmp_path / "graph.db") as graph:
        assert Retriever(graph, "line", "bm25")("tea")
        assert kinds_of_collections(graph) == {*engine.collections} != {before}


def kinds_of_collections(graph: NodeGraph) -> set[str]:
    kinds = {kind.partition(" ")[0] for kind in graph._store.kinds()}
    return {kind for kind in kinds if kind.startswith("nodekin_")}


def test_compacting_deletes_what_an_interruption_left(tmp_path: Path) -> None:
    engine = MemoryEngine(words=True)
    with opened(engine, tmp_path / "graph.db") as graph:
        graph.add(document(1))
        graph._store.put_values("nodekin_left nodes", {"a": b"1"})
        assert Retriever(graph, "line", "bm25")("tea")
        assert len(kinds_of_collections(graph)) == 2
    with opened(engine, tmp_path / "graph.db") as graph:
        graph.compact()
        assert kinds_of_collections(graph) == {*engine.collections}
    with opened(engine, tmp_path / "graph.db") as graph:
        engine.calls.clear()
        assert Retriever(graph, "line", "bm25")("tea")
        assert "put" not in engine.calls


def test_many_terms_are_written_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_words, "_MAX_TERMS", 20)
    monkeypatch.setattr(engine_words, "BATCH", 3)
    same(graphs_with(MemoryEngine(words=True), 5))


def test_what_needs_all_postings_says_that_it_indexes_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    graphs = graphs_with(MemoryEngine(words=True), 5)
    same(graphs, Bm25(method="okapi"))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("the words of group 'line' are indexed in this process")
    assert "okapi" in said
    caplog.clear()
    open_postings(graphs[1], "ROOT", DEFAULT_ANALYZER, "a reason")
    open_postings(opened(MemoryEngine()), "ROOT", DEFAULT_ANALYZER, "a reason")
    assert not caplog.records  # nothing else could be expected there


def test_a_group_that_nobody_can_search_is_refused() -> None:
    with pytest.raises(ValueError, match="no engine that searches words; open an index"):
        EngineTextIndex(opened(), "line", str.split)


@pytest.mark.slow
@pytest.mark.data
def test_questions_on_cmrc_have_the_results_of_memory(data: Path, tmp_path: Path) -> None:
    """Some of them in a third of the texts; with ``make stress`` all.

    The bound for an engine is recall@10 and the first result, for 99 of 100.
    """
    for name in ("pymilvus", "milvus_lite"):
        pytest.importorskip(name, reason=f"no {name}: pip install nodekin[milvus] milvus-lite")
    folder = data / "cmrc2018"
    if not (folder / "kb").is_dir():
        pytest.skip(f"no CMRC 2018 in {data}")
    files = sorted((folder / "kb").glob("*.txt"))[:: 1 if LONG else 3]
    texts = [file.read_text("utf-8") for file in files]
    lines = (folder / "questions.jsonl").read_text("utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    on_engine = NodeGraph(
        store=tmp_path / "graph.db", index=f"milvus://{tmp_path}/words.db", progress=False
    )
    in_memory = NodeGraph(progress=False)
    for graph in (on_engine, in_memory):
        graph.create_node_group("sentence", lambda text: re.findall("[^。\n]+。?", text))
        graph.add([Document(text, {"part": number}) for number, text in enumerate(texts)])
    for step, filters in ((1, None), (7, {"part": {"lt": len(texts) // 2}}), (7, {"part": 3})):
        some = questions[:: step if LONG else 20 * step]
        retrievers = [
            Retriever(graph, "sentence", "bm25_chinese", top_k=10, filters=filters)
            for graph in (on_engine, in_memory)
        ]
        got, expected = (
            [[(r.node.text, r.score) for r in of_one] for of_one in retriever.batch(some)]
            for retriever in retrievers
        )
        assert got == expected
    on_engine.close()


_WRITING = """
import json, os, sys
from nodekin.nodegraph import Document, NodeGraph
from nodekin.adapters.engines.milvus import MilvusEngine
from nodekin.retrievers import Retriever

store, index, stop, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
calls = 0

def dying(method):
    def call(self, *args):
        global calls
        calls += 1
        if calls == stop:
            os._exit(9)
        return method(self, *args)
    return call

for method in ("put_words", "set_version_token", "delete", "drop", "version_token"):
    setattr(MilvusEngine, method, dying(getattr(MilvusEngine, method)))
with NodeGraph(store=store, index=index, progress=False) as graph:
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"tea {name} {n}\\nriver {n}", id=str(n)) for n in range(5)])
    retriever = Retriever(graph, "line", "bm25")
    queries = (f"tea {name}", "river 3", "tea river", "green1 green2")
    print(json.dumps([[(r.node.id, r.score) for r in retriever(query)] for query in queries]))
"""


@pytest.mark.slow
def test_a_process_that_dies_while_it_writes_is_repaired_by_the_next(tmp_path: Path) -> None:
    """In the middle of a first build and of updates, at any call of the engine that writes."""
    for name in ("pymilvus", "milvus_lite"):
        pytest.importorskip(name, reason=f"no {name}: pip install nodekin[milvus] milvus-lite")
    store, index = str(tmp_path / "graph.db"), f"milvus://{tmp_path}/words.db"
    codes = []
    for turn, stop in enumerate((1, 2, 0, 2, 3, 4, 0)):  # 0 for never
        name = f"green{turn}"
        command = [sys.executable, "-c", _WRITING, store, index, str(stop), name]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        codes.append(run.returncode)
        if run.returncode == 9:
            continue
        assert run.returncode == 0, run.stderr
        graph = opened()
        graph.add([Document(f"tea {name} {n}\nriver {n}", id=str(n)) for n in range(5)])
        retriever = Retriever(graph, "line", "bm25")
        queries = (f"tea {name}", "river 3", "tea river", "green1 green2")
        expected = [[list(row) for row in rows(retriever(query))] for query in queries]
        assert json.loads(run.stdout) == expected, turn
    assert codes == [9, 9, 0, 9, 9, 9, 0]
