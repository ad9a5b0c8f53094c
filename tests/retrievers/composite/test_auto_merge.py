"""Hits are replaced by their parent if enough of its children are hits."""

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fixed_retriever import fixed, texts
from support.function_calls import function_calls
from support.stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import Retriever, trace
from nodekin.retrievers.composite.auto_merge import AutoMergeRetriever


def tree(*documents: str, store=None) -> NodeGraph:
    """Documents of sections (|) of lines (/) of words."""
    graph = NodeGraph(progress=False, store=store)
    graph.create_node_group("section", lambda text: text.split("|"))
    graph.create_node_group("line", lambda text: text.split("/"), parent="section")
    graph.create_node_group("word", str.split, parent="line")
    graph.add([Document(text, id=f"d{i}") for i, text in enumerate(documents)])
    return graph


def pick(graph: NodeGraph, words: str, group: str = "word") -> list[Node]:
    nodes = graph.nodes(group)
    return [next(n for n in nodes if n.text == word) for word in words.split(",")]


def test_merging_takes_equally_many_calls_with_many_children() -> None:
    calls = []
    for size in (50, 2_000):
        graph = tree(" ".join(f"w{number}" for number in range(size)))
        retriever = AutoMergeRetriever(fixed(pick(graph, "w1,w2")), target="line")
        retriever("q")
        calls.append(function_calls(lambda retriever=retriever: retriever("q")))
    assert calls[1] < 1.2 * calls[0]


def test_calls_of_merging_increase_linearly_with_results() -> None:
    calls = []
    for count in (40, 160):
        graph = tree("|".join(f"a{number} b{number}" for number in range(count)))
        retriever = AutoMergeRetriever(fixed(graph.nodes("word")[::2]), target="line")
        calls.append(function_calls(lambda retriever=retriever: retriever("q")))
    assert calls[1] < 5 * calls[0]


def test_auto_merge_lift_sets_score() -> None:
    graph = tree("a b/c d|e")
    inner = fixed(pick(graph, "a,e,b,d"), [9, 5, 3, 1])
    for lift, expected in (
        ("max", [("a b", 9), ("e", 5), ("d", 1)]),
        ("sum", [("a b", 10.5), ("e", 5), ("d", 1)]),
        ("mean", [("a b", 6), ("e", 5), ("d", 1)]),
    ):
        results = AutoMergeRetriever(inner, lift=lift, target="line")("q")
        assert [(r.node.text, r.score) for r in results] == expected


def test_auto_merge_ancestor_hit_absorbs_descendant_hits() -> None:
    graph = tree("a b c/d|e")
    (line,) = pick(graph, "a b c", "line")
    results = AutoMergeRetriever(fixed([*pick(graph, "a,e"), line]), target="line")("q")
    assert texts(results) == ["a b c", "e"]
    whole = AutoMergeRetriever(fixed([*pick(graph, "a"), graph.node("d0")]), target="line")
    assert texts(whole("q")) == ["a b c/d|e"]  # though it is above the target


async def test_auto_merge_applies_filters_in_all_calls() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("part", lambda text: text.split("，"), parent="line")
    graph.add(
        [
            Document("长江很长，长江很深，海\nrivers，seas", {"lang": "zh"}, id="zh"),
            Document("长江 Yangtze，the river\nsea，长江，lake", {"lang": "en"}, id="en"),
        ]
    )
    merging = AutoMergeRetriever(Retriever(graph, "part"), target="line")
    with trace() as traced:
        results = merging("长江")
    assert set(texts(results)) == {"长江很长，长江很深，海", "长江 Yangtze", "长江"}
    assert texts(merging("长江", filters={"lang": "zh"})) == ["长江很长，长江很深，海"]
    assert await merging.aretrieve("长江") == results
    assert merging.batch(["长江", "nothing"]) == [results, []]
    (span,) = traced.children
    assert (span.name, span.attributes["hits"], span.attributes["results"]) == ("merge", 4, 3)


def test_auto_merge_keeps_nodes_without_graph() -> None:
    graph = tree("a b c")
    nodes = pick(graph, "a,b")
    alone = Node("alone", id="alone")
    graph.remove("d0")
    merging = AutoMergeRetriever(fixed([*nodes, alone]))
    assert texts(merging("q")) == ["alone"]
    assert AutoMergeRetriever(fixed([]))("q") == []


def ancestors(graph: NodeGraph, node_id: str) -> list[Node]:
    above = graph.node(node_id).parent
    return [] if above is None else [above, *ancestors(graph, above.id)]


def brute(graph: NodeGraph, hits: list[Node], ratio: float, top: list[str]) -> set[str]:
    """Merge with the public API until nothing changes; then drop nodes inside other nodes."""
    left = {n.id: n for n in hits}
    changed = True
    while changed:
        changed = False
        by_parent = defaultdict(list)
        for node in left.values():
            if node.group not in top:
                by_parent[node.parent.id].append(node)
        for parent, some in by_parent.items():
            here = graph.node(parent)
            if len(some) / len(here.children[some[0].group]) > ratio:
                for node in some:
                    del left[node.id]
                left[parent] = here
                changed = True
    return {i for i in left if not any(above.id in left for above in ancestors(graph, i))}


DOCUMENTS = st.lists(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3),
    min_size=1,
    max_size=2,
)


def numbered(shape) -> NodeGraph:
    number = iter(range(10**6))
    return tree(
        *(
            "|".join("/".join(" ".join(str(next(number)) for _ in range(n)) for n in s) for s in d)
            for d in shape
        )
    )


@settings(max_examples=amount(26, 80))
@given(DOCUMENTS, st.data(), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_auto_merge_equals_brute_force(shape, data, ratio) -> None:
    graph = numbered(shape)
    words = graph.nodes("word")
    hits = data.draw(st.lists(st.sampled_from(words), unique=True, max_size=12))
    top_k = data.draw(st.one_of(st.none(), st.integers(1, 4)))
    target = data.draw(st.sampled_from(["ROOT", "section", "line"]))
    inner = fixed(hits)
    for lift in ("max", "mean", "sum"):
        merging = AutoMergeRetriever(inner, ratio=ratio, target=target, lift=lift, top_k=top_k)
        results = merging.retrieve("q")
        read = {e.node.id for r in results for e in r.evidence}
        if top_k is None:
            assert read == {n.id for n in hits}
            above = {"ROOT": [], "section": ["section"], "line": ["section", "line"]}[target]
            assert {r.node.id for r in results} == brute(graph, hits, ratio, ["ROOT", *above])
        else:
            assert len(results) <= top_k
            assert read == {n.id for n in hits[: len(read)]}  # the best hits
            assert len(results) == top_k or len(read) == min(len(hits), 4 * top_k)
        assert len(read) == sum(len(r.evidence) for r in results)  # none in two results
        assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
        for result in results:
            for match in result.evidence:
                assert match.node in graph.find("word")(result.node)
        kept = {r.node.id for r in results}
        assert not any(above.id in kept for i in kept for above in ancestors(graph, i))
        assert asyncio.run(merging.aretrieve("q")) == results


def test_auto_merge_returns_documents_only_on_request() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("a b\nc d", id="d"))
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    words = fixed(graph.nodes("word"))
    assert texts(AutoMergeRetriever(words)("q")) == ["a b", "c d"]
    assert texts(AutoMergeRetriever(words, target="ROOT")("q")) == ["a b\nc d"]
    mixed = fixed([*graph.nodes("word")[:2], graph.nodes("line")[1]])
    assert texts(AutoMergeRetriever(mixed)("q")) == ["a b", "c d"]
    # Lines are children of documents, so only documents remain to merge into.
    assert texts(AutoMergeRetriever(fixed(graph.nodes("line")))("q")) == ["a b\nc d"]


def test_auto_merge_counts_children_per_group() -> None:
    """LlamaIndex counts children of all groups, so two halves would not merge."""
    graph = NodeGraph(progress=False)
    graph.create_node_group("half", lambda text: text.split("; "))
    graph.create_node_group("word", str.split)
    graph.add(Document("a b c d e f; g h i j k l", id="d"))
    merging = AutoMergeRetriever(fixed(graph.nodes("half")))
    graph.nodes("word")
    assert [r.node.id for r in merging("q")] == ["d"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"inner": "bm25"}, TypeError, "inner must be an object with retrieve.* got 'bm25'"),
        ({"ratio": 1}, ValueError, "ratio must be from 0 to below 1, got 1"),
        ({"ratio": "x"}, TypeError, "ratio must be a number, got 'x'"),
        ({"lift": "best"}, ValueError, "lift must be 'max', 'sum' or 'mean', got 'best'"),
        ({"top_k": 0}, ValueError, "top_k must be 1 or more"),
    ],
)
def test_auto_merge_with_invalid_argument_raises(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        AutoMergeRetriever(**{"inner": fixed([]), **arguments})
