"""Cross-encoders of all kinds, and their scores."""

import asyncio
import math
import pickle
import threading
import time

import pytest
from support.cross_encoders import ComputesScores, Predicts, Reranks, Scores
from support.fixed_retriever import candidates, text_scores

from nodekin.retrievers import Reranker
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.cross_encoder_reranker import as_cross_encoder


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


def test_langchain_cross_encoder_is_accepted() -> None:
    cross_encoders = pytest.importorskip("langchain_core.cross_encoders")

    class Lengths(cross_encoders.BaseCrossEncoder):
        def score(self, text_pairs):
            return [len(text) for query, text in text_pairs]

    reranker = Reranker("ModuleReranker", model=Lengths())
    assert text_scores(reranker(candidates("a", "bb"), "q")) == [("bb", 2.0), ("a", 1.0)]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("bge-reranker-large", r"name of a model.*CrossEncoder\('bge-reranker-large'\)"),
        (None, "the reranking model must be a function .*, got None"),
        (Scores, "Scores is a class; give a model of it"),
        (3, "the reranking model must be a function .*, got 3"),
    ],
)
def test_model_of_wrong_type_raises(model, says) -> None:
    with pytest.raises(TypeError, match=says):
        Reranker("ModuleReranker", model=model)


def test_async_function_only_raises() -> None:
    async def model(query, texts):
        return [1.0]

    with pytest.raises(TypeError, match="is only async; give an object with both"):
        as_cross_encoder(model)


async def test_async_method_of_model_is_used() -> None:
    class Both:
        def rerank(self, query, texts):
            raise AssertionError("called")

        async def arerank(self, query, texts):
            await asyncio.sleep(0)
            return [float(text == query) for text in texts]

    results = await Reranker("ModuleReranker", model=Both()).arerank(candidates("a", "b"), "b")
    assert text_scores(results) == [("b", 1.0), ("a", 0.0)]


async def test_sync_models_run_one_at_a_time() -> None:
    """All rerankers of one model share its lock, since its tokenizer is not thread-safe."""
    inside, most = [0], [0]

    class Slow:
        def predict(self, pairs):
            assert threading.current_thread() is not threading.main_thread()
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1
            return [1.0] * len(pairs)

    model = Slow()
    rerankers = [Reranker("ModuleReranker", model=model) for _ in range(4)]
    await asyncio.gather(*(reranker.arerank(candidates("a"), "q") for reranker in rerankers))
    assert most == [1]


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
