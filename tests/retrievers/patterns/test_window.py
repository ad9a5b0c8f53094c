"""Hits with their neighbours, and documents in which hits cluster."""

import asyncio
import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import Document, LinkedText, Node, NodeGraph, split_sentences
from nodekin.retrievers import Evidence, Retriever, ScoredNode, trace
from nodekin.retrievers.composite.document_completion import CompletionRetriever
from nodekin.retrievers.composite.window import WindowRetriever
from nodekin.retrievers.similarities import Bm25

WORDS = Bm25(analyzer=str.split)


class Scripted:
    """Finds what it is told, best first; notes how much was asked for."""

    def __init__(self, nodes) -> None:
        self.results = [
            ScoredNode(n, float(s), (Evidence(n, float(s), "told", "q"),))
            for n, s in zip(nodes, range(len(nodes), 0, -1), strict=True)
        ]
        self.asked: list[int | None] = []

    def retrieve(self, query, *, top_k=None, filters=None):
        self.asked.append(top_k)
        return self.results[:top_k]

    async def aretrieve(self, query, *, top_k=None, filters=None):
        await asyncio.sleep(0)
        return self.retrieve(query, top_k=top_k, filters=filters)


def words(*documents: str, store=None) -> NodeGraph:
    """Documents of lines of words."""
    graph = NodeGraph(progress=False, store=store)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add([Document(text, {"number": i}, id=f"d{i}") for i, text in enumerate(documents)])
    return graph


def pick(graph: NodeGraph, some: str) -> list[Node]:
    nodes = graph.nodes("word")
    return [next(n for n in nodes if n.text == word) for word in some.split(",")]


def texts(results) -> list[str]:
    return [result.node.text for result in results]


def test_neighbours_within_the_document_or_the_parent() -> None:
    graph = words("a b c\nd e\nf g", "x y")
    inner = Scripted(pick(graph, "d,y,a"))
    assert texts(WindowRetriever(inner, merge=False)("q")) == ["c\nd e", "x y", "a b"]
    assert texts(WindowRetriever(inner, within="parent")("q")) == ["d e", "x y", "a b"]
    assert texts(WindowRetriever(inner, 0, 0)("q")) == ["d", "y", "a"]
    assert texts(WindowRetriever(inner, 0, 3, merge=False)("q")) == ["d e\nf g", "y", "a b c\nd"]
    assert texts(WindowRetriever(inner, 9, 9)("q")) == ["a b c\nd e\nf g", "x y"]


def test_windows_that_overlap_or_touch_are_one() -> None:
    graph = words("a b c d e f g h i")
    for some, expected in (
        ("a,c", ["a b c d"]),  # overlap
        ("e,b", ["a b c d e f"]),  # touch
        ("b,f", ["a b c", "e f g"]),
        ("b,h,e", ["a b c d e f g h i"]),  # the last one joins the others
        ("i,a", ["h i", "a b"]),
    ):
        results = WindowRetriever(Scripted(pick(graph, some)))("q")
        assert texts(results) == expected
    (result,) = WindowRetriever(Scripted(pick(graph, "e,b,a")))("q")
    assert result.score == 3.0
    assert [e.node.text for e in result.evidence] == ["e", "b", "a"]


def test_windows_of_different_parents_do_not_touch() -> None:
    graph = words("a b\nc d")
    inner = Scripted(pick(graph, "b,c"))
    assert texts(WindowRetriever(inner, within="parent")("q")) == ["a b", "c d"]


def test_a_window_is_a_node() -> None:
    graph = words("a b\nc d")
    (result,) = WindowRetriever(Scripted(pick(graph, "b")))("q")
    node = result.node
    a, b, c = pick(graph, "a,b,c")
    assert (node.text, node.start, node.end) == ("a b\nc", 0, 5)
    assert node.id == f"{a.id}..{c.id}"
    assert (node.group, node.document_id, node.order) == ("word", "d0", a.order)
    assert node.metadata == b.metadata == {"number": 0}
    assert (node.parent, node.root) == (b.parent, graph.node("d0"))
    assert pickle.loads(pickle.dumps(node)).text == node.text
    assert graph.find("line")([e.node for e in result.evidence]) == [b.parent]
    (only,) = WindowRetriever(Scripted([b]), 0, 0)("q")
    assert only.node is b


def test_what_was_not_cut_out_of_the_document_is_joined() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("loud", lambda text: text.upper().split())
    graph.add(Document("a b c", id="d"))
    hit = graph.nodes("loud")[0]
    (result,) = WindowRetriever(Scripted([hit]))("q")
    assert (result.node.text, result.node.start, result.node.end) == ("A\nB", None, None)


def test_nodes_without_neighbours_stay() -> None:
    graph = words("a b")
    graph.create_node_group(
        "cluster", lambda nodes: [LinkedText("all", to=nodes), LinkedText("more", to=nodes)],
        parent="word", scope="group", trans_node=True,
    )  # fmt: skip
    hits = [graph.node("d0"), *graph.nodes("cluster"), Node("alone", id="x")]
    assert WindowRetriever(Scripted(hits)).retrieve("q") == Scripted(hits).results
    gone = pick(graph, "a")
    graph.remove("d0")
    assert texts(WindowRetriever(Scripted(gone))("q")) == ["a"]
    assert texts(CompletionRetriever(Scripted([*gone, *gone]))("q")) == ["a", "a"]


def test_top_k_counts_windows() -> None:
    graph = words("a b c d e f g h i j k l m n o p")
    inner = Scripted(pick(graph, "a,b,c,h,n"))
    windows = WindowRetriever(inner, top_k=2)
    assert texts(windows("q")) == ["a b c d", "g h i"]
    assert inner.asked == [8]
    assert texts(windows("q", top_k=1)) == ["a b"]  # more is not read
    assert len(WindowRetriever(inner)("q")) == 3
    assert inner.asked == [8, 4, None]


def test_on_retrievers_with_filters_and_two_languages(tmp_path) -> None:
    graph = NodeGraph(progress=False, store=tmp_path / "g")
    graph.create_node_group("sentence", split_sentences)
    graph.add(
        [
            Document("长江最长。它入海。黄河在北。泰山在东。", {"lang": "zh"}, id="zh"),
            Document("Mountains rise. The 长江 flows. Seas wait.", {"lang": "en"}, id="en"),
        ]
    )
    windows = WindowRetriever(Retriever(graph, "sentence"))
    results = windows("长江")
    assert set(texts(results)) == {
        "长江最长。它入海。",
        "Mountains rise. The 长江 flows. Seas wait.",
    }
    assert texts(windows("长江", filters={"lang": "zh"})) == ["长江最长。它入海。"]
    assert asyncio.run(windows.aretrieve("长江")) == results
    assert windows.batch(["长江", "nothing"]) == [results, []]
    graph.close()
    assert windows("长江") == results
    assert [r.node.group for r in Retriever(graph, "sentence")("长江")] == ["sentence"] * 2
    with trace() as traced:
        windows("长江", top_k=1)
    assert [(s.name, s.facts["results"]) for s in traced.stages] == [("window", 1)]
    content = WindowRetriever(Retriever(graph, "sentence"), output_format="content", join=True)
    assert "它入海。" in content("最长")


DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3)


def numbered(shape) -> NodeGraph:
    number = iter(range(10**6))
    return words(
        *("\n".join(" ".join(f"w{next(number)}" for _ in range(n)) for n in d) for d in shape)
    )


@settings(max_examples=80, deadline=None)
@given(
    DOCUMENTS,
    st.data(),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from(["document", "parent"]),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_windows_are_what_lies_around_hits(
    shape, data, before, after, merge, within, top_k
) -> None:
    graph = numbered(shape)
    every = graph.nodes("word")
    hits = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=8))
    windows = WindowRetriever(
        Scripted(hits), before, after, merge=merge, within=within, top_k=top_k
    )
    results = windows.retrieve("q")
    home = "document_id" if within == "document" else "parent_id"

    def around(hit: Node) -> set[str]:
        place = every.index(hit)
        some = every[max(0, place - before) : place + after + 1]
        return {n.text for n in some if getattr(n, home) == getattr(hit, home)}

    read = {e.node.id for r in results for e in r.evidence}
    assert read == {n.id for n in hits[: len(read)]}  # the best ones, none left out
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
    if merge:
        assert len(set(seen)) == len(seen)
        order = [n.text for n in every]
        spans = sorted(
            (order.index(r.node.text.split()[0]), order.index(r.node.text.split()[-1]), r.node)
            for r in results
        )
        for (_, end, one), (begin, _, other) in itertools.pairwise(spans):
            assert begin > end + 1 or getattr(one, home) != getattr(other, home)
    assert asyncio.run(windows.aretrieve("q")) == results


# Completion


def test_a_short_document_is_returned_whole() -> None:
    graph = words("a b c d\ne f", "x y z", "p")
    completed = CompletionRetriever(Scripted(pick(graph, "b,x,e,p")))
    results = completed("q")
    assert texts(results) == ["a b c d\ne f", "x", "p"]
    assert results[0].node == graph.node("d0")
    assert [e.node.text for e in results[0].evidence] == ["b", "e"]
    assert [r.score for r in results] == [4, 3, 1]
    assert texts(CompletionRetriever(Scripted(pick(graph, "b,x,e,p")), share=0.6)("q")) == [
        *("b", "x", "e", "p")
    ]


def test_two_documents() -> None:
    graph = words("a b c d", "x y z", "p")
    results = CompletionRetriever(Scripted(pick(graph, "x,a,z,d")))("q")
    assert texts(results) == ["x y z", "a b c d"]
    single = Scripted(pick(graph, "x,a"))
    assert CompletionRetriever(single).retrieve("q") == single.results  # one hit is no cluster


def test_of_a_long_document_what_lies_between_the_hits() -> None:
    graph = words("a b c d e f g h i")
    inner = Scripted(pick(graph, "f,c"))
    for limit, expected in ((17, ["a b c d e f g h i"]), (16, ["c d e f"]), (7, ["c d e f"])):
        assert texts(CompletionRetriever(inner, limit=limit, length=len)("q")) == expected
    assert texts(CompletionRetriever(inner, limit=6, length=len)("q")) == ["f", "c"]
    (result,) = CompletionRetriever(inner, limit=5)("q")
    c, f = pick(graph, "c,f")
    assert result.node.id == f"{c.id}..{f.id}"
    assert result.node.root.text[result.node.start : result.node.end] == "c d e f"
    assert len(result.evidence) == 2
    assert asyncio.run(CompletionRetriever(inner, limit=5).aretrieve("q")) == [result]


def test_completion_around_windows_and_filters(tmp_path) -> None:
    graph = words("tea a b c tea d e f", "sea tea g", store=tmp_path / "g")
    windows = WindowRetriever(Retriever(graph, "word", WORDS), 0, 1)
    completed = CompletionRetriever(windows, limit=6)
    assert texts(completed("tea")) == ["tea a b c tea d", "tea g"]
    assert texts(completed("tea", filters={"number": 1})) == ["tea g"]
    assert texts(completed("tea", top_k=1)) == ["tea a"]
    graph.close()
    assert asyncio.run(completed.aretrieve("tea")) == completed.retrieve("tea")


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.data(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 40))
def test_completion_loses_nothing(shape, data, share, limit) -> None:
    graph = numbered(shape)
    hits = data.draw(st.lists(st.sampled_from(graph.nodes("word")), unique=True, max_size=8))
    completed = CompletionRetriever(Scripted(hits), share=share, limit=limit, length=len)
    results = completed.retrieve("q")
    assert sorted(e.score for r in results for e in r.evidence) == [
        float(n) for n in range(1, len(hits) + 1)
    ]
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    assert len({r.node.id for r in results}) == len(results)
    for result in results:
        node = result.node
        assert node.root.text[node.start : node.end] == node.text
        inside = {e.node.text for e in result.evidence}
        assert inside <= set(node.text.split())
        if len(inside) > 1:
            assert len(node.text) <= limit
            assert len(inside) >= share * len(hits)
            assert inside == {h.text for h in hits if h.document_id == node.document_id}


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (WindowRetriever, {"inner": 3}, TypeError, "inner is an object with retrieve.* not 3"),
        (WindowRetriever, {"before": -1}, ValueError, "before must be 0 or more, not -1"),
        (WindowRetriever, {"after": 1.5}, TypeError, "after is a whole number of nodes, not 1.5"),
        (WindowRetriever, {"within": "page"}, ValueError, "within is 'document' or 'parent'"),
        (WindowRetriever, {"top_k": True}, TypeError, "top_k is a whole number"),
        (WindowRetriever, {"output_format": "x"}, ValueError, "output_format is"),
        (CompletionRetriever, {"share": 0}, ValueError, "share is above 0 and at most 1, not 0"),
        (CompletionRetriever, {"limit": 0}, ValueError, "limit must be 1 or more, not 0"),
        (CompletionRetriever, {"length": 5}, TypeError, "length is a callable"),
    ],
)
def test_what_can_not_be(kind, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        kind(**{"inner": Scripted([]), **arguments})
