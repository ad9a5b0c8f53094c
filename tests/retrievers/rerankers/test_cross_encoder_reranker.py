"""Cross-encoders of all kinds, their scores, and long passages in windows."""

import asyncio
import math
import pickle
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cross_encoders import ComputesScores, Predicts, Reranks, Scores
from support.fixed_retriever import candidates, text_scores

from nodekin.nodegraph import Document, MarkdownSplitter, Node, NodeGraph, count_tokens
from nodekin.nodegraph.splitters.chunking import measured
from nodekin.retrievers import Reranker, Retriever, ScoredNode
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.cross_encoder_reranker import (
    CrossEncoderReranker,
    passage_windows,
)


def _name(model) -> str:
    return type(model).__name__


@pytest.mark.parametrize("model", [Predicts(), Scores(), ComputesScores(), Reranks()], ids=_name)
def test_models_are_recognized_by_interface(model) -> None:
    reranker = Reranker("ModuleReranker", model=model)
    for ranked in (reranker, pickle.loads(pickle.dumps(reranker))):
        results = ranked(candidates("a", "ccc", "bb"), "q")
        assert text_scores(results) == [("ccc", 3.0), ("bb", 2.0), ("a", 1.0)]
        assert asyncio.run(ranked.arerank(candidates("a", "ccc", "bb"), "q")) == results
        assert text_scores(ranked(candidates("bb"), "q")) == [("bb", 2.0)]


async def only_async(query, texts):
    return [1.0]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (only_async, "is only async; give an object with both"),
        ("bge-reranker-large", r"name of a model.*CrossEncoder\('bge-reranker-large'\)"),
        (None, "the reranking model must be a function .*, got None"),
        (Scores, "Scores is a class; give a model of it"),
        (3, "the reranking model must be a function .*, got 3"),
    ],
)
def test_model_of_wrong_type_raises(model, says) -> None:
    with pytest.raises(TypeError, match=says):
        Reranker("ModuleReranker", model=model)


async def test_async_method_of_model_is_used() -> None:
    class Both:
        def rerank(self, query, texts):
            raise AssertionError("called")

        async def arerank(self, query, texts):
            await asyncio.sleep(0)
            return [float(text == query) for text in texts]

    results = await Reranker("ModuleReranker", model=Both()).arerank(candidates("a", "b"), "b")
    assert text_scores(results) == [("b", 1.0), ("a", 0.0)]


async def test_rerankers_of_one_model_run_sequentially() -> None:
    """They share a lock, since models and tokenizers are not thread-safe."""
    inside = threading.Lock()

    class Slow:
        def predict(self, pairs):
            assert threading.current_thread() is not threading.main_thread()
            assert inside.acquire(blocking=False)
            for _ in range(400_000):  # longer than the switch interval of threads
                pass
            inside.release()
            return [1.0] * len(pairs)

    rerankers = [Reranker("ModuleReranker", model=model) for model in [Slow()] * 4]
    await asyncio.gather(*(reranker.arerank(candidates("a"), "q") for reranker in rerankers))


async def test_two_models_run_in_parallel() -> None:
    both_inside = threading.Barrier(2, timeout=20)

    class Waits:
        def predict(self, pairs):
            both_inside.wait()
            return [1.0] * len(pairs)

    rerankers = [Reranker("ModuleReranker", model=Waits()) for _ in range(2)]
    await asyncio.gather(*(reranker.arerank(candidates("a"), "q") for reranker in rerankers))


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([1.0], "returned 1 scores for 2 passages"),
        ([1.0, 2.0, 3.0], "returned 3 scores for 2 passages"),
        ([1.0, math.nan], "returned nan for passage 2 of 2; scores must be finite numbers"),
        ([-math.inf, 1.0], "returned -inf for passage 1"),
        ([[1.0, 2.0], [1.0, 2.0]], "one number per passage .a cross-encoder with num_labels=1"),
        (["1", "2"], "one number per passage"),
        ([None, 1.0], "one number per passage"),
        (None, "one number per passage"),
        ("ab", "one number per passage"),
    ],
)
def test_invalid_scores_raise(scores, says) -> None:
    with pytest.raises(RerankError, match=says):
        Reranker("ModuleReranker", model=lambda query, texts: scores)(candidates("a", "b"), "q")


# Long passages


def test_long_passage_gets_score_of_its_best_window() -> None:
    text = "长江是中国最长的河流。它发源于青海省。它流入东海。茶是一种饮品。"
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [float("茶" in each) for each in texts]

    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"短。\n{text}", id="d")])
    results = Retriever(graph, "line")("长江是什么？短")
    reranker = Reranker("ModuleReranker", model=model, max_tokens=33, length=len)
    best, other = reranker(results, "茶")
    assert asked[-1] == "短。"
    assert asked[:-1] == [
        "长江是中国最长的河流。它发源于青海省。它流入东海。",
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


def test_negative_scores_keep_the_best_window() -> None:
    def model(query, texts):
        return [-7.0 if "a" in text else -2.0 if "b" in text else -3.0 for text in texts]

    reranker = CrossEncoderReranker(model, max_tokens=9, length=len)
    assert text_scores(reranker.rerank(candidates("aaaabbbb", "cc"), "q")) == [
        ("aaaabbbb", -2.0),
        ("cc", -3.0),
    ]


def test_limit_and_tokenizer_of_the_model_apply() -> None:
    class Tokenizer:
        def __call__(self, texts, add_special_tokens, truncation, verbose):
            assert (add_special_tokens, truncation, verbose) == (False, False, False)
            assert max(map(len, texts)) <= 320  # a long text is cut first
            return {"input_ids": [list(text) for text in texts]}

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
    assert text_scores(reranker.rerank(candidates("abcdefghij"), "qq")) == [
        ("abcdefghij", float(ord("j")))
    ]
    (ranked,) = reranker.rerank(candidates("a b. " * 200 + "z" + " b. a" * 200), "qq")
    assert ranked.score == float(ord("z"))
    assert "z" in ranked.evidence[0].node.text
    assert CrossEncoderReranker(Model(), max_tokens=9).max_tokens == 9
    assert CrossEncoderReranker(Scores()).max_tokens == 400


def test_query_above_the_limit_is_truncated() -> None:
    reranker = CrossEncoderReranker(Scores(), max_tokens=8, length=len)
    assert text_scores(reranker.rerank(candidates("abcdefgh"), "q" * 99)) == [("abcdefgh", 2.0)]


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


def test_long_headings_lose_the_outermost() -> None:
    asked = []

    def model(query, texts):
        asked.extend(texts)
        return [0.0] * len(texts)

    nodes = [Node("text", {"headings": ["x" * 30, "Tea", "Green"]}), Node("t", {"headings": 3})]
    reranker = CrossEncoderReranker(model, max_tokens=60, length=len)
    reranker.rerank([ScoredNode(node, 1.0) for node in nodes], "q")
    assert asked == ["Tea > Green\ntext", "3\nt"]
    long = ScoredNode(Node("a" * 100, {"headings": ["Tea"]}), 1.0)
    asked.clear()
    reranker.rerank([long], "q")
    assert len(asked) > 1
    assert all(each.startswith("Tea\n") and len(each) <= 55 for each in asked)


TEXTS = st.text(st.sampled_from("ab c\n.,!?长江茶。，、；“”1 "), max_size=200)


def windows_of(text, limit, overlap, length):
    return passage_windows(text, limit, overlap, measured(text, length))


@given(TEXTS, st.integers(1, 30), st.integers(0, 20), st.sampled_from([len, count_tokens]))
def test_windows_cover_any_text(text, limit, overlap, length) -> None:
    overlap = min(overlap, limit - 1)
    windows = windows_of(text, limit, overlap, length)
    assert windows
    seen = [False] * len(text)
    for begin, end in windows:
        assert 0 <= begin <= end <= len(text)
        assert length(text[begin:end]) <= limit
        seen[begin:end] = [True] * (end - begin)
    assert all(was or c.isspace() for was, c in zip(seen, text, strict=True))
    for (begin, end), (after, later) in pairwise(windows):
        assert begin < after
        assert end < later
        assert length(text[after:end]) <= overlap  # the shared text
    assert windows == windows_of(text, limit, overlap, length)
