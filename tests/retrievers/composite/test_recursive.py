"""Several groups as one pool, and nodes that stand for retrievers."""

import asyncio
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fixed_retriever import FixedRetriever, ids, scored, texts
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph, UnknownGroupError
from nodekin.retrievers import FusionRetriever, Retriever, trace
from nodekin.retrievers.composite.recursive import RecursiveRetriever
from nodekin.retrievers.ranking import lifted_score
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = Bm25(analyzer=str.split)


def corpus(**documents: str) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=name) for name, text in documents.items()])
    return graph


def test_default_target_is_nearest_common_ancestor(library) -> None:
    assert RecursiveRetriever(library, ["sentence", "word"]).target == "sentence"
    assert RecursiveRetriever(library, ["sentence", "line"]).target == "ROOT"
    assert RecursiveRetriever(library, ["word"]).target == "word"
    both = RecursiveRetriever(library, ["sentence", "paragraph"], similarity=WORDS)
    assert both.target == "paragraph"
    assert texts(both("sea")) == ["sea"]


LINES = st.lists(
    st.lists(st.sampled_from("abcx"), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6
)


@settings(max_examples=amount(26, 80))
@given(
    st.lists(LINES, min_size=1, max_size=5),
    st.integers(1, 4),
    st.sampled_from(["max", "sum", "mean"]),
    st.sampled_from(["ROOT", "line", "pair"]),
)
def test_pool_equals_lifted_hits_of_all_groups(documents, top_k, how, target) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.create_node_group("pair", lambda text: text.split("\n", 1))
    graph.add([Document("\n".join(lines), id=str(i)) for i, lines in enumerate(documents)])
    groups = ["line", "word", "pair"]
    pool = RecursiveRetriever(graph, groups, target, WORDS, lift=how)
    found = [hit for g in groups for hit in Retriever(graph, g, WORDS, top_k=10**6)("a b")]
    hits = [(hit.node, hit.score) for hit in sorted(found, key=lambda hit: -hit.score)]
    expected: dict[str, list[float]] = {}
    for node, score in hits:
        for kin in graph.find(target)(node):
            expected.setdefault(kin.id, []).append(score)
    every = pool.retrieve("a b", top_k=10**6)
    assert {r.node.id: r.score for r in every} == {
        i: pytest.approx(lifted_score(s, how)) for i, s in expected.items()
    }
    results = pool.retrieve("a b", top_k=top_k)
    assert ids(results) == ids(every)[:top_k]
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    for result in results:
        assert result.evidence
        for match in result.evidence:
            assert result.node in graph.find(target)(match.node)
    assert pool.retrieve("a b", top_k=top_k) == results
    assert pool.batch(["a b", ""], top_k=top_k) == [results, []]


# References


def toc() -> tuple[NodeGraph, dict[str, Retriever]]:
    teas = corpus(green="green tea leaves", black="black tea milk", cup="cup")
    seas = corpus(north="north sea", south="south sea tea")
    entries = NodeGraph(progress=False)
    entries.add(
        [
            Document("all about tea tea", {"retriever": "teas"}, id="1"),
            Document("all about sea and tea", {"retriever": "seas"}, id="2"),
            Document("a plain page on tea and a long list of other things", id="3"),
        ]
    )
    return entries, {n: Retriever(g, "ROOT", WORDS) for n, g in (("teas", teas), ("seas", seas))}


def test_reference_results_replace_node() -> None:
    entries, parts = toc()
    retriever = RecursiveRetriever(entries, ["ROOT"], similarity=WORDS, references=parts)
    first, second, third = Retriever(entries, "ROOT", WORDS).retrieve("tea")
    assert ids([first, second, third]) == ["1", "2", "3"]
    inner = parts["teas"].retrieve("tea")
    results = retriever("tea")
    assert set(ids(results)) == {"green", "black", "south", "3"}
    scores = {r.node.id: r.score for r in results}
    assert scores["green"] == first.score == results[0].score
    assert scores["black"] == first.score * inner[1].score / inner[0].score
    assert scores["south"] == second.score
    assert scores["3"] == third.score
    evidence = results[0].evidence
    assert [(e.node.id, e.similarity) for e in evidence] == [
        ("green", "bm25"),
        ("1", "reference"),
        ("1", "bm25"),
    ]
    assert evidence[0].score == inner[0].score
    assert evidence[1].score == first.score
    assert 'reference for "tea": "all about tea tea"' in results[0].explain()


def test_differences_of_negative_reference_scores_are_kept() -> None:
    graph = corpus(entry="tea")
    found = corpus(a="a", b="b", c="c").nodes("ROOT")
    part = FixedRetriever(scored(found, [0.5, 0.0, -0.5]))
    results = RecursiveRetriever(graph, ["ROOT"], references={"entry": part})("tea")
    first, second, third = (result.score for result in results)
    assert first == Retriever(graph, "ROOT")("tea")[0].score
    assert [second, third] == pytest.approx([first - 0.5, first - 1])


def test_recursive_results_are_equal_async_and_pickled() -> None:
    entries, parts = toc()
    retriever = RecursiveRetriever(entries, ["ROOT"], similarity=WORDS, references=parts)
    with trace() as traced:
        results = retriever.retrieve("tea", top_k=3)
    (recurse,) = traced.children
    assert (recurse.name, recurse.attributes["references"], recurse.attributes["results"]) == (
        "recurse",
        2,
        3,
    )
    assert [each.name for each in recurse.children] == ["search"] * 3
    assert asyncio.run(retriever.aretrieve("tea", top_k=3)) == results
    assert asyncio.run(retriever.abatch(["tea", ""], top_k=3)) == [results, []]
    again = pickle.loads(pickle.dumps(retriever))
    assert ids(again.retrieve("tea", top_k=3)) == ids(results)


def test_unknown_reference_raises_with_known_names() -> None:
    entries, parts = toc()
    del parts["seas"]
    retriever = RecursiveRetriever(entries, ["ROOT"], similarity=WORDS, references=parts)
    with pytest.raises(LookupError, match=r"about sea.*refers to the retriever 'seas'.*'teas'"):
        retriever("sea")
    with pytest.raises(LookupError, match="'seas'"):
        asyncio.run(retriever.aretrieve("sea"))


def test_hits_with_reference_are_not_lifted() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(Document("tea opens a corpus\ntea here and now also", id="page"))
    part = Retriever(corpus(x="tea in x"), "ROOT", WORDS)
    lines = graph.nodes("line")
    by_id = RecursiveRetriever(graph, ["line"], "ROOT", WORDS, references={lines[0].id: part})
    assert ids(by_id("tea")) == ["x", "page"]
    of_the_target = RecursiveRetriever(graph, ["line"], "ROOT", WORDS, references={"page": part})
    (result,) = of_the_target("tea")
    assert result.node.id == "x"
    assert [e.node.text for e in result.evidence] == [
        "tea in x",
        "tea opens a corpus\ntea here and now also",
        *texts(Retriever(graph, "line", WORDS)("tea")),
    ]


def test_top_k_is_filled_despite_repeated_references() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("tea tea tea", {"retriever": "x"}, id=f"e{i}") for i in range(30)])
    graph.add([Document(f"tea and more {i}", id=f"p{i}") for i in range(5)])
    asked = []

    class Part:
        def retrieve(self, query, *, top_k=None, filters=None):
            asked.append((query, top_k, filters))
            return Retriever(corpus(x="tea"), "ROOT", WORDS).retrieve(query)

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return self.retrieve(query, top_k=top_k, filters=filters)

    retriever = RecursiveRetriever(
        graph, ["ROOT"], similarity=WORDS, references={"x": Part()}, top_k=4
    )
    assert ids(retriever("tea")) == ["x", "p0", "p1", "p2"]
    assert asked == [("tea", 4, None)]  # once
    retriever("tea", filters={"retriever": "x"}, top_k=2)
    assert asked[1:] == [("tea", 2, {"retriever": "x"})]


def test_top_k_limits_references_of_several_embeddings() -> None:
    def vowels(texts):
        return [[text.count("a"), text.count("e")] for text in texts]

    def length(texts):
        return [[len(text), 1] for text in texts]

    graph = NodeGraph(embed={"vowels": vowels, "length": length}, progress=False)
    graph.add([Document(text, id=text) for text in ("aaaaaa", "eeee", "e", "ee", "ae", "aaae")])
    others = NodeGraph(progress=False)
    others.add(["one", "two", "three"])
    references = {"eeee": FixedRetriever(scored([*others.nodes("ROOT")]))}
    retriever = RecursiveRetriever(graph, ["ROOT"], similarity="cosine", references=references)
    for top_k in (1, 2, 4):
        results = retriever("ee", top_k=top_k)
        assert len(results) == top_k
        assert results[0].text == "one"


def test_filters_apply_to_referenced_retrievers() -> None:
    part = NodeGraph(progress=False)
    part.add([Document("tea", {"tenant": t}, id=t) for t in ("ann", "bob")])
    entries = NodeGraph(progress=False)
    entries.add(Document("tea", {"tenant": ["ann", "bob"], "retriever": "part"}))
    references = {"part": Retriever(part, "ROOT", WORDS)}
    setup = {"similarity": WORDS, "references": references}
    assert ids(
        RecursiveRetriever(entries, ["ROOT"], **setup)("tea", filters={"tenant": "bob"})
    ) == ["bob"]
    own = RecursiveRetriever(entries, ["ROOT"], filters={"tenant": "ann"}, **setup)
    assert ids(own("tea")) == ["ann"]


def chain(length: int) -> tuple[NodeGraph, dict[str, Retriever]]:
    """Return retrievers in a cycle, each with a page and a reference to the next."""
    parts = {}
    for number in range(length):
        graph = NodeGraph(progress=False)
        parts[str(number)] = Retriever(graph, "ROOT", WORDS)
        after = str((number + 1) % length)
        graph.add(Document("tea tea", {"retriever": after}, id=f"to {after} from {number}"))
        graph.add(Document("tea and page", id=f"page {number}"))
    return parts["0"].graphs[0], parts


def test_max_depth_keeps_deeper_nodes() -> None:
    first, parts = chain(6)
    for depth in (1, 2, 3):
        retriever = RecursiveRetriever(
            first, ["ROOT"], similarity=WORDS, references=parts, max_depth=depth, top_k=20
        )
        pages = {f"page {n}" for n in range(depth + 1)}
        assert set(ids(retriever("tea"))) == pages | {f"to {depth + 1} from {depth}"}


def test_mutually_referencing_retrievers_end() -> None:
    here, there = NodeGraph(progress=False), NodeGraph(progress=False)
    for graph, name in ((here, "here"), (there, "there")):
        graph.add([Document("tea entry", {"retriever": "other"}), Document("tea page", id=name)])
    knots: dict = {}

    def other(query: str) -> list:
        return list(knots["other"].retrieve(query))

    a = RecursiveRetriever(here, ["ROOT"], references={"other": other})
    b = RecursiveRetriever(there, ["ROOT"], references={"other": FusionRetriever([a], "concat")})
    knots["other"] = b
    with trace() as traced:
        results = a("tea")
    assert sorted(ids(results)) == ["here", "there"]
    assert "leads_back=True" in str(traced)
    assert asyncio.run(a.aretrieve("tea")) == results
    assert sorted(ids(b("tea"))) == ["here", "there"]


def test_empty_reference_is_skipped() -> None:
    entries, parts = toc()
    empty = {**parts, "teas": Retriever(NodeGraph(progress=False), "ROOT")}
    retriever = RecursiveRetriever(entries, ["ROOT"], similarity=WORDS, references=empty)
    assert ids(retriever("tea")) == ["south", "3"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"groups": "line"}, TypeError, "groups must be a list of names, got 'line'"),
        ({"groups": []}, ValueError, "groups must not be empty"),
        ({"groups": ["lines"]}, UnknownGroupError, "lines"),
        ({"groups": ["line", "lines"]}, UnknownGroupError, "lines"),
        ({"target": "x"}, UnknownGroupError, "x"),
        ({"max_depth": 0}, ValueError, "max_depth must be 1 or more, got 0"),
        ({"references": 3}, TypeError, "references must be a mapping"),
        ({"references": {"x": 3}}, TypeError, "'x' refers to.*must be an object with retrieve"),
        ({"top_k": 0}, ValueError, "top_k must be 1 or more"),
        ({"lift": "best"}, ValueError, "lift must be"),
    ],
)
def test_recursive_with_invalid_argument_raises(library, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        RecursiveRetriever(library, **{"groups": ["line"], **arguments})
