"""Random texts, files, filters and model outputs give an answer or an error with a reason."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from support.answer_readers import READERS
from support.stress import Tally, amount

from nodekin.nodegraph import (
    Document,
    MarkdownSplitter,
    ModelError,
    NodeGraph,
    RecursiveSplitter,
    split_sentences,
)
from nodekin.retrievers import (
    HyDERetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QueryEngine,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.filters import parse_filters

pytestmark = pytest.mark.slow

PIECES = (
    *("tea", "Green tea. ", "Who wrote it? ", "是", "茶叶", "。", "？", "\n", "\n\n", " ", "\t"),
    *("# Title\n", "```\n", "- a\n", "1. ", "| a | b |\n", "> ", "**", "_", "<b>", "</passages>"),
    *('{"a": 1}', "[", "]", "{", '"', "'", ",", ":", "\\", "null", "Answer: ", "Answered: yes\n"),
    *("Next question: ", "<think>", "</think>", "0", "-1e309", "NaN", "8/10", "No", "没有", "none"),
    *("\x00", "\x1b[0m", "\u200b", "\u202e", "\ufeff", "\ud800", "\U0001f600", "e\u0301", "ﬁ", "İ"),
    *("ภาษาไทย", "ខ្មែរ", "العربية", "한국어", "ひらがな", "getUserName", "a" * 300, "$or", "a.b"),
)


def text_of(choose: random.Random, most: int = 40) -> str:
    """Return pieces of everything, and letters from all over."""
    return "".join(
        chr(choose.randrange(0x110000)) if choose.random() < 0.1 else choose.choice(PIECES)
        for _ in range(choose.randrange(most))
    )


def test_random_texts_are_split_and_searched() -> None:
    choose, tally = random.Random(1), Tally("texts")
    for _ in range(amount(10, 1_000)):
        graph = NodeGraph(progress=False)
        graph.create_node_group("sentence", split_sentences)
        graph.create_node_group("chunk", RecursiveSplitter(40, 8))
        graph.create_node_group("section", MarkdownSplitter())
        texts = [text_of(choose) for _ in range(20)]
        graph.add([Document(text, id=f"d{n}") for n, text in enumerate(texts)])
        for number, text in enumerate(texts):
            with tally.trying(text):
                for name in ("sentence", "chunk", "section"):
                    for node in graph.find(name)(graph.node(f"d{number}")):
                        assert node.start is None or text[node.start : node.end] == node.text
                results = Retriever(graph, choose.choice(["sentence", "chunk", "ROOT"]))(text)
                scores = [result.score for result in results]
                assert all(map(math.isfinite, scores))
                assert scores == sorted(scores, reverse=True)
    tally.check()


SCALARS: tuple[Callable[[random.Random], Any], ...] = (
    lambda c: c.choice(["tea", "Tea", "", "2020", "2020-01-05", "x%", "1", "NaN", "null", "是"]),
    lambda c: text_of(c, 4),
    lambda c: c.choice([0, 1, -1, 2**70, -(2**70), 2020, True, False, None]),
    lambda c: c.choice([0.5, 1.0, 1e308, -1e308, 5e-324, math.inf, -math.inf]),
    lambda c: c.choice([Decimal("1.0"), Decimal("1e400"), Decimal("0.5")]),
    lambda c: date(c.randrange(1, 9999), 1, 5),
    lambda c: datetime(c.randrange(1, 9999), 1, 5, tzinfo=c.choice([None, timezone.utc])),
)
FIELDS = ("a", "b", "and", "$or", "a.b", "是", "", "document.id")
OPERATORS = "eq ne in nin gt gte lt lte contains any all like exists empty".split()


def value_of(choose: random.Random, depth: int = 1) -> Any:
    if depth and choose.random() < 0.2:
        values = [value_of(choose, depth - 1) for _ in range(choose.randrange(4))]
        return values if choose.random() < 0.8 else tuple(values)
    return choose.choice(SCALARS)(choose)


def filters_of(choose: random.Random, depth: int = 2) -> Any:
    kind = choose.random()
    if depth and kind < 0.15:
        parts = [filters_of(choose, depth - 1) for _ in range(choose.randrange(1, 3))]
        return {choose.choice(["and", "or"]): parts}
    if depth and kind < 0.25:
        return {"not": filters_of(choose, depth - 1)}
    if kind < 0.28:
        return choose.choice([None, [], {}, "a", 7, {7: 1}, {"and": 1}, {"a": {"no": 1}}])
    conditions: dict[str, Any] = {}
    for _ in range(choose.randrange(1, 3)):
        value = value_of(choose)
        if choose.random() < 0.8:
            value = {choose.choice(OPERATORS): value}
        conditions[choose.choice(FIELDS)] = value
    return conditions


def test_random_filters_return_matching_nodes_only() -> None:
    """By an index as node by node, or they are refused."""
    choose, tally = random.Random(2), Tally("filters")
    for _ in range(amount(5, 400)):
        graph = NodeGraph(progress=False)
        for number in range(12):
            fields = {
                choose.choice(FIELDS[:-1]): value_of(choose) for _ in range(choose.randrange(4))
            }
            graph.add(Document("tea", fields, id=f"d{number}"))
        nodes = graph.nodes("ROOT")
        retriever = Retriever(graph, "ROOT", top_k=20)
        for _ in range(100):
            filters = filters_of(choose)
            with tally.trying(filters):
                try:
                    parsed = parse_filters(filters)
                except (TypeError, ValueError):
                    tally.note("refused")
                    continue
                found = {result.node.id for result in retriever.retrieve("tea", filters=filters)}
                assert found == {node.id for node in nodes if parsed.matches(node)}
    tally.check()


def test_random_model_output_is_parsed_or_rejected() -> None:
    choose, tally = random.Random(3), Tally("answers of models, by each reader")
    for _ in range(amount(300, 20_000)):
        text = text_of(choose)
        for name, read in READERS.items():
            with tally.trying((name, text)):
                try:
                    read(text)
                except ValueError:
                    tally.note("refused")
    tally.check()


def test_strategies_return_results_for_random_model_output() -> None:
    choose, tally = random.Random(4), Tally("strategies with random model output")
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Green tea {n}, and a cup of it.", id=f"d{n}") for n in range(4)])
    plain = Retriever(graph, "ROOT")

    def model(prompt: str) -> str:
        return text_of(choose)

    strategies = [
        MultiQueryRetriever(plain, model),
        HyDERetriever(plain, model),
        SubQuestionRetriever(plain, model, answers=True),
        MultiStepRetriever(plain, model, max_steps=3),
    ]
    logging.disable(logging.WARNING)
    for number in range(amount(60, 4_000)):
        strategy = choose.choice(strategies)
        with tally.trying((number, strategy)):
            assert strategy.retrieve("green tea")
        with tally.trying((number, "engine")):
            try:
                QueryEngine(plain, model).query("green tea")
            except ModelError:
                tally.note("refused")
    logging.disable(logging.NOTSET)
    tally.check()
