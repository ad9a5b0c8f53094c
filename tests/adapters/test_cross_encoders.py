"""A real cross-encoder for Chinese puts results in a better order."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode, TextAnalyzer
from nodekin.retrievers.bm25 import Bm25
from nodekin.retrievers.module_reranker import ModuleReranker
from nodekin.retrievers.rerank_retriever import RerankRetriever

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]

QUESTIONS = 100
CHUNK = 160  # characters


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
    """Return the paragraphs in chunks, and questions with their answers, evenly chosen."""
    folder, questions = data / "cmrc2018" / "kb", data / "cmrc2018" / "questions.jsonl"
    if not folder.is_dir() or not questions.is_file():
        pytest.skip(f"no {folder}")
    graph = NodeGraph(source=folder, progress=False)
    graph.create_node_group("paragraph", str.splitlines)
    graph.create_node_group("chunk", _chunks, parent="paragraph")
    lines = questions.read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines[:: len(lines) // QUESTIONS]][:QUESTIONS]
    return graph, asked


def _chunks(text: str) -> list[str]:
    return [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]


def _place(results: list[ScoredNode], question: dict) -> float:
    """Return where the first chunk came that has the answer, from 1; infinity if none did."""
    gold, answers = question["context"], question["answers"]
    for place, text in enumerate((result.node.text.strip() for result in results), 1):
        if text in gold and any(answer in text for answer in answers):
            return place
    return np.inf


def _mrr(rankings: list[list[ScoredNode]], questions: list[dict]) -> float:
    places = [_place(each, asked) for each, asked in zip(rankings, questions, strict=True)]
    return float(np.mean([1 / place for place in places]))


def _characters(text: str) -> list[str]:
    """Analyse weakly: single characters, and all words of a question."""
    return [term for term in TextAnalyzer()(text) if len(term) == 1 or term.isascii()]


def test_the_order_gets_better(model, cmrc, caplog) -> None:
    graph, questions = cmrc
    asked = [question["question"] for question in questions]
    inner = Retriever(graph, "chunk", Bm25(analyzer=_characters))
    retriever = RerankRetriever(
        inner, "ModuleReranker", model=model, top_k=10, fetch=10, on_error="raise"
    )
    before = inner.batch(asked, top_k=10)
    after = retriever.batch(asked)
    figures = {"before": _mrr(before, questions), "after": _mrr(after, questions)}
    logging.getLogger(__name__).info("MRR@10 over %d questions: %s", len(asked), figures)
    assert figures["after"] > figures["before"], figures
    assert all(0 <= r.score <= 1 for results in after for r in results)
    assert all([e.similarity for e in r.evidence[:1]] == ["ModuleReranker"] for r in after[0])


def test_long_passages_are_read_in_windows(model) -> None:
    """The answer stands where the model, which reads 144 tokens, would not come without them."""
    reranker = ModuleReranker(model)
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


def test_from_many_threads(model, cmrc) -> None:
    graph, questions = cmrc
    inner = Retriever(graph, "chunk", top_k=4)
    retriever = RerankRetriever(
        inner, "ModuleReranker", model=model, top_k=2, fetch=4, on_error="raise"
    )
    asked = [question["question"] for question in questions[:8]]
    alone = [[r.node.id for r in retriever(each)] for each in asked]
    with ThreadPoolExecutor(4) as pool:
        made = [[r.node.id for r in results] for results in pool.map(retriever, asked)]
    assert made == alone
