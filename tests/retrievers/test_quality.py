"""Retrieval quality of the settings as they come, on public data sets."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever, as_retriever
from nodekin.retrievers.evaluation.metrics import is_similar

pytestmark = pytest.mark.data


def part(data: Path, *names: str) -> list[Path]:
    paths = [data / name for name in names]
    for path in paths:
        if not path.exists():
            pytest.skip(f"no {path}")
    return paths


def first_hits(retriever: Retriever, questions: Sequence[dict]) -> np.ndarray:
    """Return the rank of the gold paragraph, from 1, or infinity if it is missing."""
    places = []
    for question in questions:
        texts = [result.node.text for result in retriever.retrieve(question["question"])]
        hits = (n for n, text in enumerate(texts, 1) if is_similar(text, question["context"]))
        places.append(next(hits, np.inf))
    return np.array(places)


@pytest.fixture(scope="module")
def cmrc(data: Path) -> tuple[NodeGraph, list[dict]]:
    """Return the graph of the paragraphs, and the questions."""
    folder, questions = part(data, "cmrc2018/kb", "cmrc2018/questions.jsonl")
    graph = NodeGraph(source=folder, progress=False)
    graph.create_node_group("paragraph", str.splitlines)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    assert len(graph.nodes("paragraph")) == 256
    return graph, [json.loads(line) for line in questions.read_text("utf-8").splitlines()]


def test_cmrc_paragraph_search_stays_above_limit(cmrc) -> None:
    graph, questions = cmrc
    places = first_hits(Retriever(graph, "paragraph", "bm25_chinese", top_k=5), questions)
    figures = {"MRR@5": np.mean(1 / places), **{f"R@{k}": np.mean(places <= k) for k in (1, 3, 5)}}
    assert len(places) == 1002
    assert figures["MRR@5"] >= 0.985, figures
    assert figures["R@1"] >= 0.975, figures
    assert figures["R@5"] >= 0.995, figures


def test_cmrc_lifted_sentence_search_exceeds_lazyllm(cmrc) -> None:
    """LazyLLM reaches 0.912 and 0.969 with this search."""
    graph, questions = cmrc
    retriever = Retriever(graph, "sentence", "bm25_chinese", target="paragraph", top_k=5)
    places = first_hits(retriever, questions)
    figures = {"MRR@5": np.mean(1 / places), **{f"R@{k}": np.mean(places <= k) for k in (1, 3, 5)}}
    assert figures["R@1"] > 0.912, figures
    assert figures["R@5"] > 0.969, figures
    results = retriever.retrieve(questions[0]["question"])
    assert len(results) == 5
    assert all(e.node.parent == r.node for r in results for e in r.evidence)


@pytest.mark.parametrize("language", ["de", "vi"])
def test_one_threshold_separates_answerable_questions(data: Path, language: str) -> None:
    """Half of the questions are about paragraphs outside the corpus."""
    (path,) = part(data, f"xquad/xquad.{language}.json")
    articles = json.loads(path.read_text("utf-8"))["data"]
    rows = [row for article in articles for row in article["paragraphs"]]
    half = len(rows) // 2
    graph = NodeGraph(progress=False)
    graph.add([row["context"] for row in rows[:half]])
    default, words = as_retriever(graph), Retriever(graph, "ROOT", "bm25")

    def scores(retriever, asked: Sequence[dict]) -> np.ndarray:
        questions = [qa["question"] for row in asked for qa in row["qas"]][::3]
        found = [retriever.retrieve(question, top_k=1) for question in questions]
        return np.array([results[0].score if results else 0.0 for results in found])

    def auc(own: np.ndarray, others: np.ndarray) -> float:
        above, ties = own[:, None] > others, own[:, None] == others
        return float(above.mean() + ties.mean() / 2)

    own, others = scores(default, rows[:half]), scores(default, rows[half:])
    assert (own >= 0.5).mean() >= 0.85
    assert (others >= 0.5).mean() <= 0.2
    assert (others >= np.quantile(own, 0.1)).mean() <= 0.12
    assert auc(own, others) >= auc(scores(words, rows[:half]), scores(words, rows[half:]))
