"""Links are followed without the lock of the graph, in one state of it."""

from dataclasses import replace

import pytest

from nodekin.nodegraph import Document, EntityExtractor, NodeGraph
from nodekin.nodegraph.concurrency import is_reading_graph
from nodekin.retrievers import Retriever
from nodekin.retrievers.composite.link_retriever import LinkRetriever
from nodekin.retrievers.similarities.bm25 import Bm25

QUESTION = "Which university honoured the author of the play Brand?"


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("Brand (play)\nBrand is a play by Henrik Ibsen.", id="brand"),
            Document("Henrik Ibsen\nA university gave him its doctorate.", id="ibsen"),
            Document("Bergen\nUniversity town, university life.", id="bergen"),
            Document("Play\nChildren play.", id="play"),
        ]
    )
    graph.create_node_group("entity", EntityExtractor())
    return graph


class BusyWords(Bm25):
    """A word similarity beside a writer, which changes the graph whenever nobody holds it."""

    __slots__ = ()

    def open(self, graph, group, key=None):
        index = super().open(graph, group, key)
        snapshot = index.snapshot

        class Index:
            def snapshot(self, queries, filter):
                taken = snapshot(queries, filter)

                def term_scores(number, ids):
                    was_held.append(is_reading_graph())
                    if was_held.count(False) <= writes and not is_reading_graph():
                        metadata = {"number": len(was_held)}
                        graph.add(Document(texts[changed], metadata, id=changed))
                    return taken.term_scores(number, ids)

                return replace(taken, term_scores=term_scores)

            def __getattr__(self, name):
                return getattr(index, name)

        return Index()


texts = {"brand": "Brand (play)\nBrand is a play by Henrik Ibsen.", "news": "News."}
was_held: list[bool] = []
changed = "brand"
writes = 0


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_links_beside_writer_are_followed_in_one_state(graph, count, monkeypatch) -> None:
    monkeypatch.setitem(globals(), "writes", count)
    plain = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")
    expected = [result.node.id for result in plain.retrieve(QUESTION)]
    was_held.clear()
    busy = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity", bm25=BusyWords())
    assert [result.node.id for result in busy.retrieve(QUESTION)] == expected
    assert was_held[0] is False
    assert was_held[-1] is (count == 1000)  # a busy writer cannot delay a search for ever
    assert was_held.count(False) >= min(count + 1, 3)


def test_links_beside_writer_of_other_passages_are_followed_once(graph, monkeypatch) -> None:
    plain = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity")
    expected = [result.node.id for result in plain.retrieve(QUESTION)]
    monkeypatch.setitem(globals(), "changed", "news")
    busy = LinkRetriever(Retriever(graph, "ROOT"), graph, via="entity", bm25=BusyWords())
    was_held.clear()
    busy.retrieve(QUESTION)
    count = len(was_held)
    monkeypatch.setitem(globals(), "writes", 1000)
    was_held.clear()
    assert [result.node.id for result in busy.retrieve(QUESTION)] == expected
    assert was_held == [False] * count
