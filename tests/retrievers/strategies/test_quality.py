"""Quality of multi-step search with correct and with wrong models."""

import itertools
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.strategies.multi_step import MultiStepRetriever

pytestmark = pytest.mark.data
Asked = list[tuple[str, set[str]]]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.ERROR):
        yield


def read(data: Path, name: str) -> tuple[list[dict[str, Any]], Any]:
    paths = [data / name / f"{name}_train{end}.json" for end in ("", "_corpus")]
    for path in paths:
        if not path.exists():
            pytest.skip(f"no {path}")
    questions, corpus = (json.loads(path.read_text("utf-8")) for path in paths)
    return questions, corpus


def plain_of(passages: dict[str, tuple[str, str]]) -> Retriever:
    """Search passages, which are titles and texts by id."""
    graph = NodeGraph(progress=False)
    graph.add([Document(text, {"title": title}, id=i) for i, (title, text) in passages.items()])
    return Retriever(graph, "ROOT", top_k=10)


def all_found(retriever: Any, asked: Asked) -> dict[int, float]:
    """Return the share of questions whose gold passages are all found, by number of results."""
    found = [([r.node.id for r in retriever.retrieve(q)], gold) for q, gold in asked]
    return {k: sum(gold <= set(ids[:k]) for ids, gold in found) / len(found) for k in (5, 10)}


def gold_steps(rows: list[dict[str, Any]]) -> dict[str, list[tuple[str, str, str]]]:
    """Return question, answer and passage of each step, the earlier answers filled in."""
    steps: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows:
        passages = {p["idx"]: p["paragraph_text"] for p in row["paragraphs"]}
        answers: dict[str, str] = {}
        for number, step in enumerate(row["question_decomposition"], 1):
            question = step["question"]
            for mark, answer in answers.items():
                question = question.replace(mark, answer)
            answers[f"#{number}"] = step["answer"]
            gold = (question, step["answer"], passages[step["paragraph_support_idx"]])
            steps.setdefault(row["question"], []).append(gold)
    return steps


def oracle(steps: dict[str, list[tuple[str, str, str]]], reads: bool) -> Callable[[str], str]:
    """Return a model that asks the gold questions. ``reads``: it requires the gold passages."""

    def model(prompt: str) -> str:
        whole = max((q for q in steps if f": {q}\n" in prompt), key=len)
        golds = steps[whole]
        done = sum(f". {question} -> " in prompt for question, _, _ in golds)
        _, answer, passage = golds[done - 1]
        if reads and done and passage.strip() not in prompt:
            return "Answer: unknown\nAnswered: no\nNext question: NONE"
        if done == len(golds):
            return f"Answer: {answer}\nAnswered: yes\nNext question: NONE"
        known = answer if done else "unknown"
        return f"Answer: {known}\nAnswered: no\nNext question: {golds[done][0]}"

    return model


@pytest.mark.slow
def test_musique_with_a_model_that_is_right(data: Path) -> None:
    """Plain BM25 has 0.18 and 0.25; measured here 0.85 and 0.91, and 0.82 and 0.88 reading."""
    rows, corpus = read(data, "musique")
    texts = {str(at): (row["title"], row["text"]) for at, row in enumerate(corpus)}
    numbers = {text: i for i, text in texts.items()}
    asked = [
        (
            row["question"],
            {
                numbers[p["title"], p["paragraph_text"]]
                for p in row["paragraphs"]
                if p["is_supporting"]
            },
        )
        for row in rows
    ]
    plain, steps = plain_of(texts), gold_steps(rows)
    figures = all_found(MultiStepRetriever(plain, oracle(steps, False), top_k=10), asked)
    assert figures[5] >= 0.80, figures
    assert figures[10] >= 0.86, figures
    figures = all_found(MultiStepRetriever(plain, oracle(steps, True), top_k=10), asked)
    assert figures[5] >= 0.77, figures


def test_hotpotqa_with_a_model_that_is_wrong(data: Path) -> None:
    rows, corpus = read(data, "hotpotqa")
    texts = {title: (title, "".join(sentences)) for title, sentences in corpus.items()}
    asked = [(r["question"], {title for title, _ in r["supporting_facts"]}) for r in rows]
    plain = plain_of(texts)
    said = itertools.cycle(["", "asdf qwer", "I'm sorry, but I can't.", '{"a": 1}', "抱歉", "```"])
    useless = MultiStepRetriever(plain, lambda prompt: next(said), top_k=10)
    for question, _ in asked[:50]:
        expected = [(r.node.id, r.score) for r in plain.retrieve(question)]
        assert [(r.node.id, r.score) for r in useless.retrieve(question)] == expected
    # A well-formed answer that always asks an unrelated question.
    others = itertools.cycle(row["question"] for row in rows[::-1])
    lost = MultiStepRetriever(
        plain, lambda prompt: f"Answer: unknown\nAnswered: no\nNext question: {next(others)}"
    )
    before, after = all_found(plain, asked), all_found(lost, asked)
    assert after[5] >= before[5] - 0.02, (before, after)
    assert after[10] >= before[10] - 0.02, (before, after)
