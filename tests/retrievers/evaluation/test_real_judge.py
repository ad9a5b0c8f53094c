"""A small real model judges Chinese passages: ``make test-models`` starts it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import QueryEngine, Retriever, ScoredNode
from nodekin.retrievers.evaluation import Dataset, Judge, evaluate, load_squad

pytestmark = [pytest.mark.models, pytest.mark.enable_socket]

METRICS = (
    *("judged_context_recall@1", "judged_context_relevance@1"),
    *("groundedness@1", "answer_relevance"),
)


class Wrong:
    """A retriever of irrelevant passages."""

    def __init__(self, graph: NodeGraph, inner: Retriever) -> None:
        self.graph, self.inner = graph, inner

    def retrieve(self, query: str, *, top_k: Any = None, filters: Any = None) -> Sequence[Any]:
        right = {result.node.id for result in self.inner.retrieve(query, top_k=6)}
        return [ScoredNode(n, 1.0) for n in self.graph.nodes("ROOT") if n.id not in right][:1]

    async def aretrieve(self, query: str, **options: Any) -> Sequence[Any]:
        return self.retrieve(query)


def test_right_passages_get_better_judgements(data: Path, language_model: Any) -> None:
    path = data / "cmrc2018" / "dev.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    squad = load_squad(path)
    with NodeGraph(progress=False) as graph:
        graph.add([d for d in squad.documents if len(d.text) < 400][:12])
        texts = {node.text for node in graph.nodes("ROOT")}
        one_each: dict[str, Any] = {}
        for question in squad.questions:
            passage = getattr(question.gold[0], "text", "")
            if passage in texts:
                one_each.setdefault(passage, question)
        questions = Dataset([*one_each.values()][:3], name="CMRC 2018 dev")
        right = Retriever(graph, "ROOT", top_k=1)
        setups = {
            "right": QueryEngine(right, language_model),
            "wrong": QueryEngine(Wrong(graph, right), language_model),
        }
        metrics = Judge(language_model).metrics(*METRICS)
        evaluation = evaluate(setups, questions, metrics, progress=False, documents=())
    for by_setup in evaluation.judgements.values():
        for judgements in by_setup.values():
            for judgement in judgements.values():
                assert judgement.value is not None or judgement.reason
                assert judgement.value is None or 0 <= judgement.value <= 1
    # A model of 1.5 billion parameters calls any passage relevant, but recognizes whether a
    # passage supports the right answer.
    good, bad = (evaluation.figure(setup, "judged_context_recall@1") for setup in setups)
    assert good.judged + bad.judged >= 4
    assert (good.value or 0) > (bad.value or 0)
