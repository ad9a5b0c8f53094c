"""A model that answers in any form finds what a model that answers plainly finds."""

import json
from functools import cache
from pathlib import Path

import pytest
from support.answer_forms import QUERY_FORMS, Scripted, filled

from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import QueryRewrite, Retriever

pytestmark = pytest.mark.data

COUNT = 20  # questions per corpus


def xquad_de(data: Path) -> tuple[list[str], list[tuple[str, str]]]:
    path = data / "xquad" / "xquad.de.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    articles = json.loads(path.read_text("utf-8"))["data"]
    paragraphs = [part for article in articles for part in article["paragraphs"]]
    questions = [(qa["question"], part["context"]) for part in paragraphs for qa in part["qas"]]
    return [part["context"] for part in paragraphs], questions


def cmrc(data: Path) -> tuple[list[str], list[tuple[str, str]]]:
    path = data / "cmrc2018" / "questions.jsonl"
    if not path.exists():
        pytest.skip(f"no {path}")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    questions = [(row["question"], row["context"]) for row in rows]
    return [*dict.fromkeys(context for _, context in questions)], questions


@pytest.mark.parametrize("corpus", [xquad_de, cmrc])
def test_rewrites_in_all_forms_keep_first_hits(corpus, data: Path) -> None:
    texts, questions = corpus(data)
    asked = questions[:: len(questions) // COUNT][:COUNT]
    graph = NodeGraph(progress=False)
    graph.add(texts)
    retriever = Retriever(graph, "ROOT", top_k=1)

    @cache
    def first(query: str) -> str:
        results = retriever.retrieve(query)
        return results[0].text if results else ""

    plain = sum(first(question) == gold for question, gold in asked) / COUNT
    assert plain >= 0.8
    worse = []
    for form in QUERY_FORMS:
        hits = 0
        for question, gold in asked:
            model = Scripted(filled(form, question))
            try:
                (query,) = QueryRewrite(model, on_error="raise")(f"{question[:-4]} pls")
            except ModelError:
                query = question  # the plain query is searched, with a note
            hits += first(query) == gold
        if abs(hits / COUNT - plain) > 0.01:
            worse.append((form, hits / COUNT))
    assert worse == []
