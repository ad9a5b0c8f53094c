"""Links that are followed where an engine has the words: the results of an index in memory."""

import random
from typing import Any

import pytest
from engines import Engine
from memory_engine import MemoryEngine

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor
from nodekin.nodegraph.search_tables import StaleSnapshotError
from nodekin.retrievers import Bm25, LinkRetriever, Retriever
from nodekin.retrievers.composite.link_graph import LinkOptions
from nodekin.retrievers.filters import parse_filters
from nodekin.retrievers.indexes.engine_text_index import EngineTextIndex
from nodekin.retrievers.indexes.text_index import TextIndex

NAMES = ("Henrik Ibsen", "Oslo Town", "Brand Play", "Green Tea House", "Old Skien Road", "挪威王国")

WORDS = "tea green black milk river bank bed the of 长江 河流 金钱".split()

QUERIES = (
    "which river is near Oslo Town",
    "green tea of Henrik Ibsen",
    "the bank of Old Skien Road and the milk",
    "Green Tea House 长江 河流",
    "挪威王国 的 河流",
    "nothing",
)


def document(number: int) -> Document:
    chance = random.Random(number)
    title = chance.choice(NAMES) if chance.random() < 0.3 else f"Title {number}"
    words = [*chance.choices(WORDS, range(12, 0, -1), k=chance.randrange(12))]
    words += chance.choices(NAMES, k=chance.randrange(3))
    chance.shuffle(words)
    text = f"{title}\n{' '.join(words)}." if number % 7 else ""  # some have no words
    return Document(text, {"part": number % 3}, id=f"d{number}")


def filled(count: int = 60, **options: Any) -> NodeGraph:
    graph = NodeGraph(progress=False, **options)
    graph.add([document(number) for number in range(count)])
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    chance = random.Random(0)
    for source, target in [chance.sample(range(count), 2) for _ in range(20)]:
        graph.link(f"d{source}", f"d{target}", "cites", weight=chance.random())
    return graph


@pytest.fixture
def graphs() -> list[NodeGraph]:
    """One whose words an engine searches, and one in memory."""
    return [filled(index=MemoryEngine(words=True)), filled()]


def rows(results: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (r.node.text, r.score, [(e.node.text, e.score, e.similarity) for e in r.evidence])
        for r in results
    ]


def same(graphs: list[NodeGraph], **settings: Any) -> None:
    for filters in (None, {"part": 1}, {"not": {"part": 1}}):
        for query in QUERIES:
            got, expected = (
                rows(
                    LinkRetriever(
                        Retriever(graph, "ROOT", top_k=5, filters=filters), graph, **settings
                    )(query)
                )
                for graph in graphs
            )
            assert got == expected, (query, filters)
            assert got or query == "nothing"


def test_the_results_are_those_of_memory_and_no_process_has_the_words(
    graphs: list[NodeGraph],
) -> None:
    same(graphs)
    same(graphs, via="entity")
    same(graphs, via="entity", filters={"part": [1, 2]})
    same(graphs, via="entity", options=LinkOptions(max_passages_per_entity=3, max_passages=12))
    kinds = {type(index) for index in graphs[0].reader._shared.values()}
    assert EngineTextIndex in kinds
    assert TextIndex not in kinds
    assert TextIndex in {type(index) for index in graphs[1].reader._shared.values()}


def test_every_engine_has_the_results_of_memory(engine: Engine) -> None:
    with filled(**engine.options()) as graph:
        same([graph, filled()], via="entity")


def test_after_changes_too(graphs: list[NodeGraph]) -> None:
    same(graphs, via="entity")
    for graph in graphs:
        graph.remove([f"d{number}" for number in range(0, 60, 5)])
        graph.add([document(number) for number in range(100, 120)])
        graph.add([Document("Oslo Town\nmilk and river", {"part": 1}, id="d2")])
    same(graphs, via="entity")


def test_what_the_engine_lacks_is_compared_beside_it(
    graphs: list[NodeGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    same(graphs, via="entity")
    monkeypatch.setattr(EngineTextIndex, "ready", lambda index: None)  # another process is writing
    for graph in graphs:
        graph.remove(["d1", "d3"])
        graph.add([document(number) for number in range(100, 110)])
        graph.add([Document("Oslo Town\nmilk and river", {"part": 1}, id="d2")])
    same(graphs, via="entity")


def test_terms_are_added_up_to_the_scores_of_a_search(graphs: list[NodeGraph]) -> None:
    for query in QUERIES:
        scores = []
        for graph in graphs:
            bm25 = Bm25()
            index = bm25.open(graph, "ROOT")
            index.ready()
            with graph.reader.reading("ROOT"):
                index.sync()
                passages = index.passages()
                known = passages.known([*graph.reader.ids("ROOT"), "other"])
                ids = [i for i in [*graph.reader.ids("ROOT"), "other"] if i in known]
                of_terms = passages.term_scores(ids, bm25.prepare(query, [index]))
            assert "other" not in ids
            scores.append(of_terms.tolist())
            found = {r.node.id: r.score for r in Retriever(graph, "ROOT", top_k=99)(query)}
            sums = dict(zip(ids, of_terms.sum(axis=1), strict=True))
            assert {i: s for i, s in sums.items() if s} == pytest.approx(found)
        assert scores[0] == scores[1]


def test_an_entity_of_many_passages_is_not_read_to_its_end(
    graphs: list[NodeGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graphs[0]
    hub = graph.nodes("entity")[0]
    graph.link(hub.id, [f"d{number}" for number in range(60)])
    read: list[str] = []
    existing = graph.reader.existing_nodes

    def noting(ids: list[str]) -> Any:
        read.extend(ids)
        return existing(ids)

    retriever = LinkRetriever(
        Retriever(graph, "ROOT", top_k=1),
        graph,
        via="entity",
        options=LinkOptions(max_passages_per_entity=4, seeds=1, named=0, repetition=0),
    )
    retriever("warm up")
    monkeypatch.setattr(graph.reader, "existing_nodes", noting)
    assert retriever(QUERIES[0])
    assert 0 < len(read) < 40


def test_it_is_tried_again_where_another_process_goes_on(
    graphs: list[NodeGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    retrievers = [LinkRetriever(Retriever(g, "ROOT", top_k=5), g, via="entity") for g in graphs]
    expected = [rows(retriever(QUERIES[0])) for retriever in retrievers]
    term_scores, calls = EngineTextIndex.term_scores, []

    def ahead(index: EngineTextIndex, *args: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise StaleSnapshotError("another process has changed the words")
        return term_scores(index, *args)

    monkeypatch.setattr(EngineTextIndex, "term_scores", ahead)
    assert [rows(retriever(QUERIES[0])) for retriever in retrievers] == expected
    assert len(calls) > 2


def test_titles_that_a_process_holds_are_spoken_of(
    graphs: list[NodeGraph], caplog: pytest.LogCaptureFixture
) -> None:
    for graph in graphs:
        inner = Retriever(graph, "ROOT")
        without = LinkOptions(named=0, repetition=0)
        assert LinkRetriever(inner, graph, via="entity", options=without)(QUERIES[0])
        assert not caplog.records
    for _ in range(2):
        for graph in graphs:
            assert LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")(QUERIES[0])
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("the titles among 'entity' are held in this process")


def test_what_a_filter_leaves_is_that_of_the_table(graphs: list[NodeGraph]) -> None:
    allowed = []
    for graph in graphs:
        index = Bm25().open(graph, "ROOT")
        index.ready()
        with graph.reader.reading("ROOT"):
            index.sync()
            passages = index.passages()
            ids = graph.reader.ids("ROOT")
            passages.known(ids)
            assert passages.meeting(parse_filters(None)) is None
            meets = passages.meeting(parse_filters({"part": {"gte": 1}}))
            assert meets is not None
            allowed.append([i for i in ids if meets(i)])
    assert allowed[0] == allowed[1]
    assert 0 < len(allowed[0]) < 60
