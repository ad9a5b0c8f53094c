"""Measure how well a small model judges answers, and how long calls block the event loop.

``answers.py judges`` evaluates a model as a judge on statements whose truth is known. For each of
``--passages`` questions from the development set of CMRC 2018, and for as many first sub-questions
from MuSiQue, four statements about the passage are made: the sentence that contains the correct
answer, the same sentence with the answer to a different question, and a short sentence with each of
these two answers that does not occur in a passage. ``--llm`` is the name of a model on the server
at ``OPENAI_BASE_URL``. Its answers are cached in ``--cache``, so that an interrupted run can be
continued.

``answers.py turns`` measures the longest time for which a call blocks the event loop, as CPU time
of the thread of the loop. It also measures the longest garbage collection, whose time depends on
the number of objects in the program.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from harness import arguments, cmrc_dev, show, with_cache

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import (
    CorpusTools,
    FusionRetriever,
    QueryEngine,
    Retriever,
)
from nodekin.retrievers.evaluation import GoldPassage, Judge, Matching, Question
from nodekin.retrievers.evaluation.metrics import RetrievalCase, RetrievedItem
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES, make_strategy

SUPPORTED = {"its sentence": True, "its sentence, another answer in it": False,
             "the answer in other words": True, "another answer in other words": False}  # fmt: skip


class Planted(NamedTuple):
    """A statement about a passage that is known to be true or false.

    Attributes:
        kind: A description of how the statement was made.
        passage: The text of the passage.
        question: The question that the statement answers.
        statement: The text of the statement.
    """

    kind: str
    passage: str
    question: str
    statement: str


def chinese(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield short Chinese passages, each with a question and its answer."""
    seen = set()
    for question in cmrc_dev(data).questions:
        (gold,) = question.gold
        answer = question.answers[0].rstrip("。")
        if isinstance(gold, GoldPassage) and gold.text not in seen and len(gold.text) < 400:
            seen.add(gold.text)
            yield gold.text, question.text, answer


def english(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield English passages, each with a question and its answer.

    They belong to the first sub-questions of MuSiQue that are complete sentences.
    """
    rows = json.loads((data / "musique" / "musique_train.json").read_text(encoding="utf-8"))
    for row in rows:
        hop = row["question_decomposition"][0]
        if hop["question"].endswith("?"):
            passage = row["paragraphs"][hop["paragraph_support_idx"]]["paragraph_text"]
            if len(passage) < 600:
                yield passage, hop["question"], hop["answer"]


def planted(cases: list[tuple[str, str, str]], count: int, short: str) -> Iterator[Planted]:
    """Yield four true or false statements about each passage."""
    for at, (passage, question, answer) in enumerate(cases):
        other = next(
            a for p, _, a in cases[at + 1 :] + cases[:at] if a not in passage and len(a) < 40
        )
        sentence = next((s for s in split_sentences(passage) if answer in s), None)
        if sentence is None or len(answer) > 40 or sentence.strip() == answer:
            continue
        statements = [sentence, sentence.replace(answer, other),
                      short.format(answer), short.format(other)]  # fmt: skip
        for kind, statement in zip(SUPPORTED, statements, strict=True):
            yield Planted(kind, passage, question, statement)
        count -= 1
        if not count:
            return


def grounded(judge: Judge, one: Planted) -> float | None:
    """Return the groundedness score that a judge assigns to a statement."""
    item = RetrievedItem("1", one.passage, 1.0)
    case = RetrievalCase(Question("1", one.question), (item,), Matching(), one.statement)
    return judge.metric("groundedness").judge(case).value


def judged_answers(passed: list[str]) -> None:
    """Let the model judge all statements, and print how many of its verdicts are correct."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--llm", metavar="NAME", required=True, help="model that judges")
    parser.add_argument("--passages", type=int, default=5, help="in each language")
    options = parser.parse_args(passed)
    options.cache.mkdir(parents=True, exist_ok=True)
    chat = OpenAIChat(options.llm, timeout=1800)
    judge = Judge(chat, store=options.cache / "judge.db")
    sets = {"zh": (chinese, "答案是{}。"), "en": (english, "The answer is {}.")}
    rows = []
    for language, (read, short) in sets.items():
        right: dict[str, list[bool]] = {kind: [] for kind in SUPPORTED}
        for one in planted([*read(options.data)], options.passages, short):
            value = grounded(judge, one)
            print(one.kind, one.statement, value, sep="\t", flush=True)
            if value is not None:
                right[one.kind].append((value == 1) == SUPPORTED[one.kind])
        for kind, supported in SUPPORTED.items():
            count = f"{sum(right[kind])} of {len(right[kind])}"
            rows.append([f"{language}, {kind}", "yes" if supported else "no", count])
    header = ["statement", "supported", "`groundedness` is right"]
    show("What a model's judge is worth", header, rows)


def turns(passed: list[str]) -> None:
    """Print the longest time for which each call blocks the event loop, as a median."""
    # The output is invalid for some strategies.
    logging.getLogger("nodekin").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=turns.__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args(passed).rounds
    graph = NodeGraph(progress=False)
    graph.add(Document(text, id=str(number)) for number, text in enumerate(_passages(400)))
    graph.create_node_group("sentence", split_sentences)
    wide, question = Retriever(graph, "ROOT", top_k=400), "w1 w2 w3"
    queries = "\n".join(f"Where does tea number {n} grow?" for n in range(3_300))  # 100 kB of text
    tools = CorpusTools(graph, max_tokens=50_000)
    engine = QueryEngine(wide, _Model("w1 [1]."), top_k=400, context_window=10**6)
    strategies = {name: make_strategy(name, wide, _Model(queries)) for name in STRATEGIES}
    two = FusionRetriever([wide, Retriever(graph, "sentence", top_k=400)], top_k=400)
    calls: dict[str, Callable[[], Any]] = {
        "an answer from 400 sources": lambda: engine.aquery(question),
        "the same as a stream, of 100 kB": lambda: _read(
            QueryEngine(wide, _Model(queries), top_k=400, context_window=10**6).astream(question)
        ),
        **{
            f"{name}, 100 kB of a model": lambda r=r: r.aretrieve(question, top_k=400)  # type: ignore[misc]
            for name, r in strategies.items()
        },
        "a fusion of two, 400 each": lambda: two.aretrieve(question),
        "an agent's search": lambda: asyncio.to_thread(tools.call, "search", {"query": question}),
        "an agent's grep": lambda: asyncio.to_thread(tools.call, "grep", {"pattern": "w1"}),
    }
    rows = []
    for name, call in calls.items():
        with_garbage, without = (
            [_longest_turn(call, collects) for _ in range(rounds)] for collects in (True, False)
        )
        figures = statistics.median(without), statistics.median(with_garbage), max(with_garbage)
        rows.append([name, *(f"{1000 * seconds:.1f}" for seconds in figures)])
    start = time.process_time()
    gc.collect()
    whole = time.process_time() - start
    show("The longest turn of an event loop, ms", ["call", "no collection", "median", "most"], rows)
    sys.stdout.write(f"a collection of {len(gc.get_objects()):,} objects: {1000 * whole:.0f} ms\n")


def _passages(count: int) -> Iterator[str]:
    """Yield random passages of about sixty words, with word frequencies as in real texts."""
    rng, ranks = random.Random(7), range(1, 20_001)
    words, weights = [f"w{rank}" for rank in ranks], list(accumulate(1 / rank for rank in ranks))
    for _ in range(count):
        yield " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(30, 90)))


class _Model:
    """A fake language model that immediately returns a fixed text."""

    def __init__(self, text: str) -> None:
        self.complete = lambda prompt: text
        self._text = text

    async def acomplete(self, prompt: str) -> str:
        return self._text

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        for word in self._text.split(" "):
            yield word + " "


async def _read(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


def _longest_turn(call: Callable[[], Any], collects: bool) -> float:
    """Return the longest time in seconds for which a call blocks a new event loop.

    Args:
        call: An async function to run in the loop.
        collects: Whether garbage collection is enabled.
    """
    seconds = list[float]()
    run_turn = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        start = time.thread_time()
        run_turn(handle)
        seconds.append(time.thread_time() - start)

    async def measured() -> None:
        await call()
        asyncio.Handle._run = timed
        await call()

    gc.collect()
    (gc.enable if collects else gc.disable)()
    try:
        asyncio.run(measured())
    finally:
        asyncio.Handle._run = run_turn
        gc.enable()
    return max(seconds)


PARTS = {"judges": judged_answers, "turns": turns}


def main() -> None:
    """Run the benchmark that the first command-line argument selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS, help="PART --help has its options")
    PARTS[parser.parse_args(sys.argv[1:2]).part](sys.argv[2:])


if __name__ == "__main__":
    main()
