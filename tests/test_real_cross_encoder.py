"""A real cross-encoder for Chinese puts results in a better order."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.rerankers.cross_encoder_reranker import CrossEncoderReranker
from nodekin.retrievers.rerankers.rerank_retriever import RerankRetriever
from nodekin.retrievers.similarities.bm25 import Bm25

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]

CHUNK = 160  # characters
FETCHED = 5


@pytest.fixture(scope="module")
def model(data: Path):
    folder = data.parent / "models" / "zh-ce-mini"
    if not folder.is_dir():
        pytest.skip(f"no model in {folder}, the folder beside --data")
    reason = "the cross-encoder needs: pip install torch sentence-transformers"
    torch = pytest.importorskip("torch", reason=reason)
    package = pytest.importorskip("sentence_transformers", reason=reason)
    settings = {"dtype": torch.float32}
    return package.CrossEncoder(str(folder), device="cpu", max_length=144, model_kwargs=settings)


@pytest.fixture(scope="module")
def cmrc(data: Path) -> tuple[NodeGraph, list[dict]]:
    """Return the paragraphs in chunks, and the questions that a chunk answers.

    A cut every 160 characters goes through the answers to 136 of the 1002 questions. No order of
    chunks is right for those: they count nothing before and after, and dilute any gain.
    """
    folder, questions = data / "cmrc2018" / "kb", data / "cmrc2018" / "questions.jsonl"
    if not folder.is_dir() or not questions.is_file():
        pytest.skip(f"no {folder}")
    graph = NodeGraph(source=folder, progress=False)
    graph.create_node_group("paragraph", str.splitlines)
    graph.create_node_group("chunk", _chunks, parent="paragraph")
    lines = questions.read_text("utf-8").splitlines()
    good = [asked for asked in map(json.loads, lines) if _answered(asked)]
    return graph, good


def _chunks(text: str) -> list[str]:
    return [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]


def _answered(question: dict) -> bool:
    return any(
        answer in part for part in _chunks(question["context"]) for answer in question["answers"]
    )


def _reciprocal_ranks(rankings: list[list[str]], questions: list[dict]) -> np.ndarray:
    """Return one over the place of the first chunk that has the answer, 0 where none does."""
    values = []
    for texts, asked in zip(rankings, questions, strict=True):
        good = (
            1 / place
            for place, text in enumerate(texts, 1)
            if text in asked["context"] and any(answer in text for answer in asked["answers"])
        )
        values.append(next(good, 0.0))
    return np.array(values)


def _error(differences: np.ndarray) -> float:
    """Return the standard error of their mean."""
    return float(differences.std(ddof=1) / len(differences) ** 0.5)


def _texts(rankings: list[list[ScoredNode]]) -> list[list[str]]:
    return [[result.node.text.strip() for result in results] for results in rankings]


def test_cross_encoder_improves_ranking_on_cmrc(model, cmrc) -> None:
    """The gain exceeds twice its standard error over the questions.

    The retrieval is weak on purpose: BM25 on jieba's words. All 866 questions are needed, since
    200 questions have a standard error of 0.02, about the size of the gain. For every fourth
    question, the reranker's order is compared with the plain model on equal truncated chunks.
    """
    jieba = pytest.importorskip("jieba", reason="the weak retrieval needs: pip install jieba")
    graph, questions = cmrc
    asked = [question["question"] for question in questions]
    inner = Retriever(graph, "chunk", Bm25(analyzer=jieba.lcut), top_k=FETCHED)
    retriever = RerankRetriever(
        inner, "ModuleReranker", model=model, top_k=FETCHED, fetch_k=FETCHED, on_error="raise"
    )
    found, ranked = inner.batch(asked), retriever.batch(asked)
    before, after = (_reciprocal_ranks(_texts(rankings), questions) for rankings in (found, ranked))
    some = slice(None, None, 4)
    alone = [_by(model, q, r) for q, r in zip(asked[some], _texts(found[some]), strict=True)]
    bare = _reciprocal_ranks(alone, questions[some])
    figures = {
        "before": float(before.mean()),
        "after": float(after.mean()),
        "gain": float((after - before).mean()),
        "its standard error": _error(after - before),
        "beside the bare model": float((after[some] - bare).mean()),
        "standard error beside it": _error(after[some] - bare),
    }
    logging.getLogger(__name__).info("MRR@5 over %d questions: %s", len(asked), figures)
    assert figures["gain"] > 2 * figures["its standard error"] > 0, figures
    assert figures["beside the bare model"] > -0.01, figures
    assert all(0 <= r.score <= 1 for results in ranked for r in results)
    assert all([e.similarity for e in r.evidence[:1]] == ["ModuleReranker"] for r in ranked[0])


def _by(model, query: str, texts: list[str]) -> list[str]:
    """Order texts by the model alone."""
    scores = model.predict([(query, text) for text in texts], show_progress_bar=False)
    return [texts[at] for at in np.argsort(-scores, kind="stable")]


def test_long_passages_are_read_in_windows(model) -> None:
    """The answer is after the first 144 tokens, the model's limit without windows."""
    reranker = CrossEncoderReranker(model)
    assert reranker.max_tokens == 144
    filler = "茶是一种用茶树叶子泡制的饮品，各地有不同的喝法。" * 20
    question = "长江有多长？"
    answer = "长江全长约6300公里，是亚洲最长的河流。"
    other = Document(filler, id="other")
    lengthy = Document(filler + answer + filler, id="long")
    made = NodeGraph(progress=False)
    made.add([other, lengthy])
    results = [ScoredNode(made.node(name), 1.0) for name in ("other", "long")]
    best, _ = reranker.rerank(results, question)
    assert best.node.id == "long"
    window = best.evidence[0].node
    assert "6300公里" in window.text
    assert len(window.text) < 144 * 3
    assert best.node.text[window.start : window.end] == window.text
    tokens = model.tokenizer(question, window.text)["input_ids"]
    assert len(tokens) <= 144
