"""Rerankers of every kind, on results made by hand."""

import asyncio
import math
import pickle
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, MarkdownSplitter, Node, NodeGraph
from nodekin.retrievers import Evidence, Retriever, ScoredNode, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.ranking import above
from nodekin.retrievers.rerankers.cross_encoder import as_cross_encoder
from nodekin.retrievers.rerankers.cross_encoder_reranker import CrossEncoderReranker
from nodekin.retrievers.rerankers.reranker import RERANKERS, Reranker, register_reranker


def found(*texts: str) -> list[ScoredNode]:
    made = []
    for at, text in enumerate(texts):
        node = Node(text, id=f"n{at}")
        made.append(ScoredNode(node, 10.0 - at, (Evidence(node, 10.0 - at, "bm25", "q"),)))
    return made


def fixed(*scores):
    """Return a model that gives these scores, whatever it is asked."""
    return lambda query, texts: list(scores)


def seen(results) -> list[tuple[str, float]]:
    return [(result.node.text, result.score) for result in results]


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RERANKERS:
        monkeypatch.setitem(RERANKERS, name, RERANKERS[name])
    before = set(RERANKERS)
    yield
    for name in set(RERANKERS) - before:
        del RERANKERS[name]


# The model's scores


def test_results_by_the_models_scores_with_evidence_first() -> None:
    results = Reranker("ModuleReranker", model=fixed(0.1, 0.9))(found("a", "b"), "q")
    assert seen(results) == [("b", 0.9), ("a", 0.1)]
    assert [(e.similarity, e.score, e.query) for e in results[0].evidence] == [
        ("ModuleReranker", 0.9, "q"),
        ("bm25", 9.0, "q"),
    ]
    assert results[0].evidence[0].node == results[0].node
    assert "itself" in results[0].explain()


def test_ties_keep_the_order_of_the_retrieval() -> None:
    results = Reranker("ModuleReranker", model=fixed(1, 2, 1, 2))(found("a", "b", "c", "d"), "q")
    assert [r.node.text for r in results] == ["b", "d", "a", "c"]


def test_negative_scores_stay_in_order() -> None:
    results = Reranker("ModuleReranker", model=fixed(-5.0, -0.5, -9.0))(found("a", "b", "c"), "q")
    assert seen(results) == [("b", -0.5), ("a", -5.0), ("c", -9.0)]


def test_nothing_asks_no_model() -> None:
    def model(query, texts):
        raise AssertionError("asked")

    assert Reranker("ModuleReranker", model=model)([], "q") == []
    assert asyncio.run(Reranker("ModuleReranker", model=model).arerank([], "q")) == []
    assert (
        Reranker("ModuleReranker", model=model, output_format="content", join=True)([], "q") == ""
    )


@given(st.lists(st.floats(-1e6, 1e6), max_size=8), st.integers(1, 9))
def test_any_scores(scores, top_k) -> None:
    results = found(*"abcdefgh"[: len(scores)])
    made = Reranker("ModuleReranker", model=fixed(*scores), top_k=top_k)(results, "q")
    expected = sorted(zip(results, scores, strict=True), key=lambda pair: -pair[1])[:top_k]
    assert seen(made) == [(result.node.text, score) for result, score in expected]


def test_formats_and_top_k() -> None:
    settings = {"model": fixed(0, 1, 2), "output_format": "content"}
    results = found("a", "b", "c")
    assert Reranker("ModuleReranker", top_k=2, **settings)(results, "q") == ["c", "b"]
    assert Reranker("ModuleReranker", top_k=2, **settings)(results, "q", top_k=1) == ["c"]
    assert Reranker("ModuleReranker", join=", ", **settings)(results, query="q") == "c, b, a"


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([1.0], "gave 1 scores for 2 passages"),
        ([1.0, 2.0, 3.0], "gave 3 scores for 2 passages"),
        ([1.0, math.nan], "gave nan for passage 2 of 2; a score is a finite number"),
        ([-math.inf, 1.0], "gave -inf for passage 1"),
        ([[1.0, 2.0], [1.0, 2.0]], "one number a passage .a cross-encoder with num_labels=1"),
        (["1", "2"], "one number a passage"),
        ([None, 1.0], "one number a passage"),
        (None, "one number a passage"),
        ("ab", "one number a passage"),
    ],
)
def test_scores_that_can_not_be(scores, says) -> None:
    with pytest.raises(RerankError, match=says):
        Reranker("ModuleReranker", model=lambda query, texts: scores)(found("a", "b"), "q")


def test_a_model_that_fails() -> None:
    def model(query, texts):
        raise OSError("gone")

    reranker = Reranker("ModuleReranker", model=model)
    with pytest.raises(RerankError, match="failed on 2 passages: OSError: gone") as caught:
        reranker(found("a", "b"), "q")
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(RerankError, match="OSError: gone"):
        asyncio.run(reranker.arerank(found("a", "b"), "q"))


# The shapes of models


class Predicts:
    def predict(self, sentences, show_progress_bar=None):
        assert show_progress_bar is False
        return np.array([[len(text)] for _, text in sentences], np.float32)


class Scores:
    def score(self, text_pairs):
        return [float(len(text)) for _, text in text_pairs]


class ComputesScores:
    def compute_score(self, sentence_pairs):
        lengths = [float(len(text)) for _, text in sentence_pairs]
        return lengths if len(lengths) > 1 else lengths[0]


class RerankerProtocol:
    def rerank(self, query, texts):
        return (len(text) for text in texts)


def _name(model) -> str:
    return type(model).__name__


@pytest.mark.parametrize(
    "model", [Predicts(), Scores(), ComputesScores(), RerankerProtocol()], ids=_name
)
def test_models_are_known_by_their_shape(model) -> None:
    reranker = Reranker("ModuleReranker", model=model)
    assert seen(reranker(found("a", "ccc", "bb"), "q")) == [("ccc", 3.0), ("bb", 2.0), ("a", 1.0)]
    assert seen(reranker(found("bb"), "q")) == [("bb", 2.0)]
    assert seen(asyncio.run(reranker.arerank(found("a", "bb"), "q"))) == [("bb", 2.0), ("a", 1.0)]
    again = pickle.loads(pickle.dumps(reranker))
    assert seen(again(found("a", "bb"), "q")) == [("bb", 2.0), ("a", 1.0)]


def test_a_langchain_cross_encoder() -> None:
    cross_encoders = pytest.importorskip("langchain_core.cross_encoders")

    class Lengths(cross_encoders.BaseCrossEncoder):
        def score(self, text_pairs):
            return [len(text) for query, text in text_pairs]

    reranker = Reranker("ModuleReranker", model=Lengths())
    assert seen(reranker(found("a", "bb"), "q")) == [("bb", 2.0), ("a", 1.0)]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("bge-reranker-large", r"name of a model.*CrossEncoder\('bge-reranker-large'\)"),
        (None, "None is no reranking model"),
        (Scores, "the class Scores is no reranking model"),
        (3, "3 is no reranking model; give a function"),
    ],
)
def test_what_is_no_model(model, says) -> None:
    with pytest.raises(TypeError, match=says):
        Reranker("ModuleReranker", model=model)


def test_an_async_function_alone_is_refused() -> None:
    async def model(query, texts):
        return [1.0]

    with pytest.raises(TypeError, match="is async alone; give an object with both"):
        as_cross_encoder(model)


async def test_the_async_form_of_a_model_is_used() -> None:
    class Both:
        def rerank(self, query, texts):
            raise AssertionError("asked")

        async def arerank(self, query, texts):
            await asyncio.sleep(0)
            return [float(text == query) for text in texts]

    results = await Reranker("ModuleReranker", model=Both()).arerank(found("a", "b"), "b")
    assert seen(results) == [("b", 1.0), ("a", 0.0)]


async def test_others_run_in_a_thread_and_one_at_a_time() -> None:
    inside, most = [0], [0]

    class Slow:
        def predict(self, pairs):
            assert threading.current_thread() is not threading.main_thread()
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1
            return [1.0] * len(pairs)

    reranker = Reranker("ModuleReranker", model=Slow())
    await asyncio.gather(*(reranker.arerank(found("a"), "q") for _ in range(4)))
    assert most == [1]


# Windows and headings


def test_a_long_passage_counts_with_its_best_window() -> None:
    text = "长江是中国最长的河流。它发源于青海省。它流入东海。茶是一种饮品。"
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [float("茶" in each) for each in texts]

    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"短。\n{text}", id="d")])
    results = Retriever(graph, "line")("长江是什么？短")
    reranker = Reranker("ModuleReranker", model=model, max_tokens=25, length=len, overlap=8)
    best, other = reranker(results, "茶")
    assert asked[-1] == "短。"
    assert asked[:-1] == [
        "长江是中国最长的河流。它发源于青海省。",
        "它发源于青海省。它流入东海。",
        "它流入东海。茶是一种饮品。",
    ]
    assert best.node.text == text
    assert best.score == 1.0
    window = best.evidence[0].node
    assert window.text == "它流入东海。茶是一种饮品。"
    assert graph.node("d").text[window.start : window.end] == window.text
    assert window.parent == best.node
    assert window.group == "line"
    assert "它流入东海。茶是一种饮品。" in best.explain()
    assert other.evidence[0].node == other.node
    pickle.loads(pickle.dumps(best))


def test_all_negative_windows_keep_the_best() -> None:
    scores = {"aaaa": -7.0, "bbbb": -2.0, "cc": -3.0}
    reranker = CrossEncoderReranker(
        lambda query, texts: [scores[each] for each in texts], max_tokens=9, length=len, overlap=0
    )
    assert seen(reranker.rerank(found("aaaabbbb", "cc"), "q")) == [("aaaabbbb", -2.0), ("cc", -3.0)]


def test_the_models_own_limit_and_tokenizer() -> None:
    class Tokenizer:
        def __call__(self, text, add_special_tokens, truncation, verbose):
            assert (add_special_tokens, truncation, verbose) == (False, False, False)
            return {"input_ids": list(text)}

        def num_special_tokens_to_add(self, pair):
            return 3

    class Model(Predicts):
        max_seq_length = 10
        tokenizer = Tokenizer()

        def predict(self, sentences, show_progress_bar=None):
            assert all(3 + len(query) + len(text) <= 10 for query, text in sentences)
            return [float(ord(text[-1])) for _, text in sentences]

    reranker = CrossEncoderReranker(Model())
    assert reranker.max_tokens == 10
    assert seen(reranker.rerank(found("abcdefghij"), "qq")) == [("abcdefghij", float(ord("j")))]
    assert CrossEncoderReranker(Model(), max_tokens=9).max_tokens == 9
    assert CrossEncoderReranker(Scores()).max_tokens == 400


def test_a_query_longer_than_the_model_reads() -> None:
    reranker = CrossEncoderReranker(Scores(), max_tokens=8, length=len)
    assert seen(reranker.rerank(found("abcdefgh"), "q" * 99)) == [("abcdefgh", 2.0)]


def test_headings_are_scored_and_never_shown() -> None:
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [float(query in each) for each in texts]

    graph = NodeGraph(progress=False)
    graph.create_node_group("section", MarkdownSplitter())
    graph.create_node_group("line", lambda text: text.splitlines()[1:], parent="section")
    graph.add("# Tea\nA drink.\n## Green\nUnfermented drink.\n")
    results = Retriever(graph, "line")("drink")
    (best,) = Reranker("ModuleReranker", model=model, top_k=1)(results, "Green")
    assert set(asked) == {"Tea > Green\nUnfermented drink.", "Tea\nA drink."}
    assert best.node.text == best.evidence[0].node.text == "Unfermented drink."
    asked.clear()
    Reranker("ModuleReranker", model=model, prefix=None)(results, "Green")
    assert sorted(asked) == ["A drink.", "Unfermented drink."]
    asked.clear()
    Reranker("ModuleReranker", model=model, prefix=lambda node: node.group.upper())(results, "q")
    assert sorted(asked) == ["LINE\nA drink.", "LINE\nUnfermented drink."]


def test_headings_that_are_too_long_lose_the_outermost() -> None:
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [0.0] * len(texts)

    nodes = [
        Node("text", {"headings": ["x" * 30, "Tea", " ", "Green"]}),
        Node("t", {"headings": 3}),
    ]
    reranker = CrossEncoderReranker(model, max_tokens=60, length=len)
    reranker.rerank([ScoredNode(node, 1.0) for node in nodes], "q")
    assert asked == ["Tea > Green\ntext", "3\nt"]
    long = ScoredNode(Node("a" * 100, {"headings": ["Tea"]}), 1.0)
    asked.clear()
    reranker.rerank([long], "q")
    assert all(each.startswith("Tea\n") and len(each) <= 55 for each in asked)


# Cuts


@pytest.mark.parametrize(
    ("scores", "settings", "kept"),
    [
        ([0.9, 0.28, 0.27], {"cut_off": 0.28}, [0.9, 0.28]),
        ([0.8, 0.4, 0.39], {"relative_cut": 0.5}, [0.8, 0.4]),
        ([0.8, 0.4, 0.3], {"relative_cut": 0.25, "cut_off": 0.35}, [0.8, 0.4]),
        ([-2.0, -3.0, -3.1], {"relative_cut": 0.5}, [-2.0, -3.0]),
        ([0.0, 0.0, -0.1], {"relative_cut": 0.5}, [0.0, 0.0]),
        ([1.0, 0.0, -0.1], {"relative_cut": 0}, [1.0, 0.0]),
        ([1.0, 1.0, 0.9], {"relative_cut": 1}, [1.0, 1.0]),
        ([-1.0, -1.0, -1.1], {"relative_cut": 1}, [-1.0, -1.0]),
        ([0.1, 0.2, 0.0], {"cut_off": 0.5}, []),
        ([-1.0, -2.0], {"cut_off": -1.5}, [-1.0]),
    ],
)
def test_cuts(scores, settings, kept) -> None:
    results = found(*"abc"[: len(scores)])
    made = Reranker("ModuleReranker", model=fixed(*scores), **settings)(results, "q")
    assert [r.score for r in made] == kept
    assert above([], **settings) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 1))
def test_the_best_always_passes_a_relative_cut(scores, share) -> None:
    node = Node("a")
    results = [ScoredNode(node, score) for score in sorted(scores, reverse=True)]
    kept = above(results, relative_cut=share)
    assert kept[0] == results[0]
    assert kept == results[: len(kept)]


# Functions


@pytest.mark.usefixtures("clean_registry")
def test_a_function_of_one_node() -> None:
    @register_reranker(batch=False)
    def by_length(node, query, at_least=0):
        return len(node.text) + len(query) if len(node.text) >= at_least else None

    results = found("a", "bbb", "cc")
    assert seen(Reranker("by_length")(results, "q")) == [("bbb", 4.0), ("cc", 3.0), ("a", 2.0)]
    assert seen(Reranker(by_length, at_least=2)(results, "q")) == [("bbb", 4.0), ("cc", 3.0)]
    reranker = Reranker("by_length", at_least=2, top_k=2)
    assert seen(reranker(results, "q", at_least=3)) == [("bbb", 4.0)]
    assert seen(reranker(results, "q")) == [("bbb", 4.0), ("cc", 3.0)]
    best = Reranker("by_length")(results, "q")[0]
    assert [e.similarity for e in best.evidence] == ["by_length", "bm25"]
    assert by_length(Node("abc"), "q") == 4


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize("bare", [True, False])
def test_a_function_that_filters(bare) -> None:
    def keeps(node, **kwargs):
        assert kwargs == {"query": "q", "words": ["a", "c"]}
        return node if node.text in kwargs["words"] else None

    (register_reranker if bare else register_reranker())(keeps)
    results = found("a", "b", "c")
    assert Reranker("keeps", words=["a", "c"])(results, query="q") == [results[0], results[2]]


@pytest.mark.usefixtures("clean_registry")
def test_a_filter_of_yes_and_no() -> None:
    register_reranker(lambda node: node.text != "b", name="not_b")
    assert [r.node.text for r in Reranker("not_b")(found("a", "b", "c"), "q")] == ["a", "c"]


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda nodes: [3, 1, 2], [("a", 3.0), ("c", 2.0), ("b", 1.0)]),
        (lambda nodes: np.array([-1, -2, -1.0]), [("a", -1.0), ("c", -1.0), ("b", -2.0)]),
        (lambda nodes: [1, None, 2], [("c", 2.0), ("a", 1.0)]),
        (lambda nodes: nodes[::-1], [("c", 1.0), ("b", 0.5), ("a", 1 / 3)]),
        (lambda nodes: nodes[1:2], [("b", 1.0)]),
        (lambda nodes: [(nodes[1], 5), (nodes[0], 7)], [("a", 7.0), ("b", 5.0)]),
        (lambda nodes: [], []),
    ],
)
def test_a_function_of_all_nodes(made, expected) -> None:
    @register_reranker(batch=True)
    def whole(nodes, q):
        assert q == "q"
        return made(nodes)

    results = Reranker("whole")(found("a", "b", "c"), "q")
    assert seen(results) == expected
    assert all(r.evidence[0].similarity == "whole" for r in results)
    assert Reranker("whole")([], "q") == []


@pytest.mark.usefixtures("clean_registry")
@pytest.mark.parametrize(
    ("batch", "made", "says"),
    [
        (False, "yes", "'bad' returned 'yes'; for one node it returns a score, the node"),
        (False, math.nan, "finite number as a score"),
        (True, None, "for all nodes at once it returns a list of scores"),
        (True, [1.0], "a score for each of 2 nodes"),
        (True, [Node("other")], "one of the nodes that it was given"),
        (True, [1.0, "x"], "finite number as a score"),
        (True, [True, False], "finite number as a score"),
    ],
)
def test_what_a_function_may_not_return(batch, made, says) -> None:
    register_reranker(batch=batch, name="bad")(lambda nodes: made)
    with pytest.raises(RerankError, match=says):
        Reranker("bad")(found("a", "b"), "q")


@pytest.mark.usefixtures("clean_registry")
def test_a_function_that_raises() -> None:
    @register_reranker
    def broken(node, query):
        raise KeyError(query)

    with pytest.raises(RerankError, match="'broken' failed: KeyError: 'q'"):
        Reranker(broken)(found("a"), "q")


@pytest.mark.usefixtures("clean_registry")
def test_registrations_that_can_not_be() -> None:
    with pytest.raises(ValueError, match="'KeywordFilter' is nodekin's own"):
        register_reranker(lambda node: 1, name="KeywordFilter")
    with pytest.raises(TypeError, match="a reranker is a function"):
        register_reranker(Node)

    async def waits(node):
        return 1

    with pytest.raises(TypeError, match="is async; write an object"):
        register_reranker(waits)

    @register_reranker
    def mine(node, weight=1):
        return weight

    with pytest.raises(TypeError, match="'mine' has no setting 'wight'; it has 'weight'"):
        Reranker("mine", wight=2)
    with pytest.raises(TypeError, match="'mine' has no setting 'wight'"):
        Reranker("mine")(found("a"), "q", wight=2)


# Objects, and what is refused


class Reverses:
    name = "reverses"

    def rerank(self, results, query):
        return [ScoredNode(r.node, -r.score, r.evidence) for r in reversed(results)]


def test_an_object_of_ones_own() -> None:
    reranker = Reranker(Reverses(), top_k=1)
    assert seen(reranker(found("a", "b"), "q")) == [("b", -9.0)]
    assert seen(asyncio.run(reranker.arerank(found("a", "b"), "q"))) == [("b", -9.0)]
    around = Reranker(reranker, output_format="content")
    assert around(found("a", "b"), "q") == ["b"]


@pytest.mark.parametrize(
    ("given", "settings", "error", "says"),
    [
        ("ModulReranker", {}, ValueError, "no reranker 'ModulReranker'; there is 'ModuleReranker'"),
        ("ModuleReranker", {}, TypeError, r"needs model: write Reranker\('ModuleReranker', model="),
        ("ModuleReranker", {"modl": 1}, TypeError, "no setting 'modl'; it has 'model'"),
        (lambda node: 1, {}, TypeError, "a function below @register_reranker"),
        (Reverses, {}, TypeError, "a reranker is one of"),
        (
            RerankerProtocol(),
            {},
            TypeError,
            r'if it is a model, write Reranker\("ModuleReranker", model=',
        ),
        (Reverses(), {"model": 1}, TypeError, r"give them to Reverses\(...\) itself"),
        (Reverses(), {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        (Reverses(), {"cut_off": "1"}, TypeError, "cut_off is a number, not '1'"),
        (Reverses(), {"cut_off": math.nan}, ValueError, "cut_off is a number"),
        (Reverses(), {"relative_cut": 1.5}, ValueError, "share of the top score, 0 to 1, not 1.5"),
        (Reverses(), {"output_format": "text"}, ValueError, "output_format is"),
        (Reverses(), {"join": True}, ValueError, "join=True joins contents"),
        (
            "ModuleReranker",
            {"model": Scores(), "max_tokens": 0},
            ValueError,
            "max_tokens must be 1",
        ),
        ("ModuleReranker", {"model": Scores(), "overlap": 0.5}, TypeError, "overlap is a whole"),
        ("ModuleReranker", {"model": Scores(), "prefix": 3}, TypeError, "prefix is"),
        ("ModuleReranker", {"model": Scores(), "length": 3}, TypeError, "length is a function"),
    ],
)
def test_what_can_not_be(given, settings, error, says) -> None:
    with pytest.raises(error, match=says):
        Reranker(given, **settings)


def test_calls_that_can_not_be() -> None:
    with pytest.raises(TypeError, match="a query is a str, not int 3"):
        Reranker(Reverses())(found("a"), 3)
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        Reranker(Reverses())(found("a"), "q", top_k=0)

    class Wrong:
        name = "wrong"

        def rerank(self, results, query):
            return [result.node for result in results]

    with pytest.raises(RerankError, match="returns a list of ScoredNode"):
        Reranker(Wrong())(found("a"), "q")


def test_what_is_traced() -> None:
    with trace() as traced:
        Reranker("ModuleReranker", model=fixed(1, 2), name="mine")(found("a", "b"), "q")
    (done,) = traced.stages
    assert done.name == "rerank"
    assert done.facts == {"reranker": "mine", "query": "q", "candidates": 2, "results": 2}
    assert [(s.name, s.facts) for s in done.stages] == [("model", {"passages": 2, "windows": 2})]
