"""Random texts and model outputs give an answer or an error with a reason."""

from __future__ import annotations

import logging
import math
import random

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
