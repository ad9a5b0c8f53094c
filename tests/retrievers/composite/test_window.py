"""Hits extended by their neighbors."""

import asyncio
import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.composite_graphs import DOCUMENTS, numbered, pick, words
from support.fixed_retriever import fixed, scored, texts
from support.function_calls import function_calls
from support.stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph, split_sentences
from nodekin.nodegraph.node import LinkedText
from nodekin.retrievers import Retriever
from nodekin.retrievers.composite.window import WindowRetriever


def test_window_stays_within_document() -> None:
    graph = words("a b c\nd e\nf g", "x y")
    inner = fixed(pick(graph, "d,y,a"))
    assert texts(WindowRetriever(inner)("q")) == ["a b c\nd e", "x y"]
    assert texts(WindowRetriever(inner, 0, 0)("q")) == ["d", "y", "a"]
    assert texts(WindowRetriever(inner, 9, 9)("q")) == ["a b c\nd e\nf g", "x y"]


def test_window_is_node_with_span() -> None:
    graph = words("a b\nc d")
    (result,) = WindowRetriever(fixed(pick(graph, "b")))("q")
    node = result.node
    a, b, c = pick(graph, "a,b,c")
    assert (node.text, node.start, node.end) == ("a b\nc", 0, 5)
    assert node.id == f"{a.id}..{c.id}"
    assert (node.group, node.document_id, node.order) == ("word", "d0", a.order)
    assert node.metadata == b.metadata == {"number": 0}
    assert (node.parent, node.root) == (b.parent, graph.node("d0"))
    assert pickle.loads(pickle.dumps(node)).text == node.text
    assert graph.find("line")([e.node for e in result.evidence]) == [b.parent]
    (only,) = WindowRetriever(fixed([b]), 0, 0)("q")
    assert only.node is b


def test_window_of_generated_texts_joins_lines() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("loud", lambda text: text.upper().split())
    graph.add(Document("a b c", id="d"))
    hit = graph.nodes("loud")[0]
    (result,) = WindowRetriever(fixed([hit]))("q")
    assert (result.node.text, result.node.start, result.node.end) == ("A\nB", None, None)


def test_nodes_without_neighbors_stay_unchanged() -> None:
    graph = words("a b")
    graph.create_node_group(
        "cluster", lambda nodes: [LinkedText("all", to=nodes), LinkedText("more", to=nodes)],
        parent="word", scope="group", trans_node=True,
    )  # fmt: skip
    hits = [graph.node("d0"), *graph.nodes("cluster"), Node("alone", id="x")]
    assert WindowRetriever(fixed(hits)).retrieve("q") == scored(hits)
    gone = pick(graph, "a")
    graph.remove("d0")
    assert texts(WindowRetriever(fixed(gone))("q")) == []  # removed after the search


def test_window_below_whole_group_crosses_parents() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["Tea is green.", "Rivers run."])
    graph.create_node_group("summary", lambda nodes: ["a b|c d", "e"], scope="group")
    graph.create_node_group("part", lambda text: text.split("|"), "summary")
    graph.create_node_group("word", str.split, "part")
    assert texts(WindowRetriever(fixed(pick(graph, "b")))("q")) == ["a\nb\nc"]
    assert texts(WindowRetriever(fixed(pick(graph, "d")), 9, 9)("q")) == ["a\nb\nc\nd"]
    assert texts(WindowRetriever(fixed(pick(graph, "e")), 9, 9)("q")) == ["e"]


def test_window_takes_equally_many_calls_in_long_documents() -> None:
    calls = []
    for size in (50, 2_000):
        graph = words(" ".join(f"w{number}" for number in range(size)))
        retriever = WindowRetriever(fixed(pick(graph, "w25")))
        retriever("q")
        calls.append(function_calls(lambda retriever=retriever: retriever("q")))
    assert calls[1] < 1.2 * calls[0]


def test_windows_of_two_languages_apply_filters() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("sentence", split_sentences)
    english = "Mountains rise. The 长江 flows. Seas wait."
    graph.add([Document("长江最长。它入海。黄河在北。", {"lang": "zh"}), Document(english)])
    windows = WindowRetriever(Retriever(graph, "sentence"))
    assert set(texts(windows("长江"))) == {"长江最长。它入海。", english}
    assert texts(windows("长江", filters={"lang": "zh"})) == ["长江最长。它入海。"]
    assert "它入海。" in windows("最长", output_format="content", join=True)


def test_window_of_reversed_lines_joins_their_texts() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", lambda text: text.splitlines()[::-1])
    graph.add("Water boils.\nTea steeps.\nCups are warmed.")
    windows = WindowRetriever(Retriever(graph, "line"))
    assert texts(windows("tea")) == ["Cups are warmed.\nTea steeps.\nWater boils."]


@settings(max_examples=amount(26, 80))
@given(
    DOCUMENTS,
    st.data(),
    st.integers(0, 3),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_windows_contain_neighbors_of_hits(shape, data, before, after, top_k) -> None:
    graph = numbered(shape)
    every = graph.nodes("word")
    hits = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=8))
    windows = WindowRetriever(fixed(hits), before, after, top_k=top_k)
    results = windows.retrieve("q")

    def around(hit: Node) -> set[str]:
        place = every.index(hit)
        some = every[max(0, place - before) : place + after + 1]
        return {n.text for n in some if n.document_id == hit.document_id}

    read = {e.node.id for r in results for e in r.evidence}
    assert read == {n.id for n in hits[: len(read)]}  # the best hits, without gaps
    assert len(read) == sum(len(r.evidence) for r in results)
    if top_k is None:
        assert len(read) == len(hits)
    else:
        assert len(results) <= top_k
    assert len({r.node.id for r in results}) == len(results)
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    seen: list[str] = []
    for result in results:
        node = result.node
        assert node.root.text[node.start : node.end] == node.text
        expected = set().union(*(around(e.node) for e in result.evidence))
        assert set(node.text.split()) == expected
        assert [e.score for e in result.evidence] == sorted(
            (e.score for e in result.evidence), reverse=True
        )
        assert result.score == result.evidence[0].score
        seen += node.text.split()
    assert len(set(seen)) == len(seen)
    order = [n.text for n in every]
    spans = sorted(
        (order.index(r.node.text.split()[0]), order.index(r.node.text.split()[-1]), r.node)
        for r in results
    )
    for (_, end, one), (begin, _, other) in itertools.pairwise(spans):
        assert begin > end + 1 or one.document_id != other.document_id
    assert asyncio.run(windows.aretrieve("q")) == results


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"inner": 3}, TypeError, "inner must be an object with retrieve.* got 3"),
        ({"before": -1}, ValueError, "before must be 0 or more, got -1"),
        ({"after": 1.5}, TypeError, "after must be an integer, got 1.5"),
        ({"top_k": True}, TypeError, "top_k must be an integer"),
    ],
)
def test_window_with_invalid_argument_raises(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        WindowRetriever(**{"inner": fixed([]), **arguments})
