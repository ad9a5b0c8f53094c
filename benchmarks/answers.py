"""How well stored answers know when they are out of date: against retrieving all of them again.

``python benchmarks/answers.py stored --questions 10000 --passages 20000 --edits 1000``: passages
and questions are drawn from a vocabulary with the frequencies of words; a question is a part of a
passage. After each batch of random edits an oracle retrieves every question again. With ``--data``
passages are those of files of text, one a line.

And what a small model's judge is worth (``answers.py judges``): planted statements on passages,
judged with their passage.

For each of ``--passages`` questions of CMRC 2018's development set, and as many first hops of
MuSiQue, there are four answers: the sentence of the passage that has the right answer, the same
sentence with the answer to another question in its place, and each of the two answers in a short
sentence that stands nowhere. The gate supports what stands in the passage word for word. The model
says yes or no to each. ``groundedness`` asks the gate first, then the model. ``--llm`` is a model
of the server at ``OPENAI_BASE_URL``. What it decides is kept in ``--cache``, so that a run that was
interrupted goes on.

And the longest turn of an event loop (``answers.py turns``), in CPU time of its thread, beside the
longest collection of garbage, which is as long as the program has objects.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import math
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import arguments, cmrc_dev, show, with_cache

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.nodegraph.stored_answers import StoredAnswer
from nodekin.retrievers import (
    AnswerSettings,
    CorpusTools,
    FusionRetriever,
    QueryEngine,
    Retriever,
)
from nodekin.retrievers.answers.answer import Answer, Source
from nodekin.retrievers.answers.staleness import no_model, stored_answer
from nodekin.retrievers.evaluation import GoldPassage, Judge, Matching, Question, judges
from nodekin.retrievers.evaluation.matching import RetrievalCase, RetrievedItem
from nodekin.retrievers.protocols import RetrieverProtocol
from nodekin.retrievers.strategies.strategy_registry import make_strategy, simple_strategies

_EDITS = ("add", "change", "change", "remove", "move", "rename", "metadata", "weights")

_PASSAGES_PER_DOCUMENT = 4

_DIMENSION = 64


class Figures(NamedTuple):
    """What one search came to.

    Attributes:
        named: How many of the answers were named whose fresh retrieval differs.
        differing: How many there are.
        others: How many were named although it does not.
        answers: How many answers were looked at, over all batches.
        retrievals: How many questions were retrieved again.
        changes: How often the results of a question changed from one batch to the next.
        seconds: What naming them took.
        edits: How many edits there were.
    """

    named: int
    differing: int
    others: int
    answers: int
    retrievals: int
    changes: int
    seconds: float
    edits: int

    def __str__(self) -> str:
        return (
            f"named {self.named:,} of {self.differing:,} that differ, {self.others:,} others of "
            f"{self.answers:,}; {self.retrievals:,} retrievals for {self.changes:,} changes of "
            f"results ({self.retrievals / max(self.changes, 1):.1f} each); "
            f"{1000 * self.seconds / max(self.edits, 1):.1f} ms an edit"
        )


class Corpus:
    """Make passages and questions, and edit the documents of a graph at random."""

    def __init__(self, seed: int, lines: list[str] | None = None) -> None:
        self.random = random.Random(seed)
        self._lines = lines
        ranks = np.arange(1, 20_001)
        self._weights = np.cumsum(1 / ranks).tolist()
        self._words = [f"w{rank}" for rank in ranks]

    def passage(self) -> str:
        """Return a passage of some sixty words."""
        if self._lines is not None:
            return self.random.choice(self._lines)
        count = self.random.randint(30, 90)
        return " ".join(self.random.choices(self._words, cum_weights=self._weights, k=count))

    def document(self, name: str) -> Document:
        """Return a document of some passages, a line each."""
        passages = [self.passage() for _ in range(_PASSAGES_PER_DOCUMENT)]
        return Document("\n".join(passages), {"year": self.random.randint(2000, 2030)}, id=name)

    def question(self, passages: list[str]) -> str:
        """Return some words of a passage, and one of another."""
        words = self.random.choice(passages).split()
        return " ".join([*self.random.sample(words, min(7, len(words))), self.passage().split()[0]])

    def edit(self, graph: NodeGraph, number: int) -> str:
        """Edit a document; return what was done."""
        kind = self.random.choice(_EDITS)
        old = graph.node(self.random.choice(graph.reader.document_ids()))
        lines = old.text.split("\n")
        at = self.random.randrange(len(lines))
        name, metadata = old.id, old.metadata
        if kind == "add":
            graph.add(self.document(f"new {number}"))
            return kind
        if kind == "weights":  # of a link, which the default search follows
            other = self.random.choice(graph.reader.document_ids())
            graph.link(old.id, other, weight=self.random.random())
            return kind
        if kind in ("remove", "rename"):
            graph.remove(old.id)
        if kind == "change":
            lines[at] = self.passage() if self.random.random() < 0.5 else f"{lines[at]} w77"
        elif kind == "move":
            lines.insert(0, lines.pop(at))
        elif kind == "rename":
            name = f"renamed {number}"
        elif kind == "metadata":
            metadata["year"] = self.random.randint(2000, 2030)
        if kind != "remove":
            graph.add(Document("\n".join(lines), metadata, id=name))
        return kind


def searches(graph: NodeGraph) -> Iterator[tuple[str, Callable[[], RetrieverProtocol]]]:
    """Yield the searches by name."""
    yield "words", lambda: Retriever(graph, "line", "bm25")
    yield "vectors", lambda: Retriever(graph, "line", "cosine")
    yield "words and vectors", lambda: Retriever(graph, "line", "auto")
    yield "default", lambda: QueryEngine(graph, no_model).retriever


def embedded(texts: list[str]) -> Any:
    """Return random projections of words: texts with the same words are near each other."""
    vectors = np.zeros((len(texts), _DIMENSION), np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        for word in text.split():
            vector += np.random.default_rng(sum(map(ord, word)) * 31 + len(word)).normal(
                size=_DIMENSION
            )
    return vectors


def stored(engine: QueryEngine, question: str, filters: Any = None) -> StoredAnswer:
    """Return an answer as an engine stores it."""
    if getattr(engine.retriever, "has_windows", False):
        answer = engine.query(question, filters=filters)
    else:  # the same results, without prompts
        results = engine.retriever.retrieve(question, filters=filters)
        sources = tuple(
            Source(number, result, str(result.node.content))
            for number, result in enumerate(results, 1)
        )
        answer = Answer("An answer.", question, sources, searched=question)
    return stored_answer(engine, answer, None, filters, 0, engine.conditions())


def run(
    name: str, questions: int, passages: int, edits: int, batch: int, seed: int, data: Path | None
) -> Figures:
    """Store answers, edit documents, and compare what is named with the oracle."""
    lines = None
    if data is not None:
        texts = [path.read_text("utf-8") for path in sorted(data.rglob("*.txt"))]
        lines = [line for text in texts for line in text.splitlines() if len(line) > 80]
    corpus = Corpus(seed, lines)
    graph = NodeGraph(embed=embedded if "vectors" in name else None)
    graph.create_node_group("line", str.splitlines)
    documents = max(2, passages // _PASSAGES_PER_DOCUMENT)
    graph.add([corpus.document(f"d{number}") for number in range(documents)])
    retriever = dict(searches(graph))[name]()
    engine = QueryEngine(retriever, lambda prompt: "An answer [1].")
    texts = [node.text for node in graph.nodes("line")]
    for number in range(questions):
        filters = {"year": {"gte": 2010}} if number % 10 == 0 else None
        graph.answers.put(stored(engine, corpus.question(texts), filters))
    graph.answers.stale(engine)
    answers = list(graph.answers)
    check = engine._bounded_check()
    before = check.retrievals if check else 0
    named = differing = others = looked = retrievals = 0
    changes = 0
    previous = [sorted(result.key for result in answer.results) for answer in answers]
    seconds = 0.0
    for start in range(0, edits, batch):
        for number in range(start, min(start + batch, edits)):
            corpus.edit(graph, number)
        retriever.retrieve("w1")  # builds and indexes what is new
        begin = time.process_time()
        stale = {item.answer.key for item in graph.answers.stale(engine)}
        seconds += time.process_time() - begin
        again = (stored(engine, answer.question, answer.filters) for answer in answers)
        fresh = [sorted(result.key for result in answer.results) for answer in again]
        truth = {
            answer.key
            for answer, keys in zip(answers, fresh, strict=True)
            if sorted(result.key for result in answer.results) != keys
        }
        changes += sum(keys != earlier for keys, earlier in zip(fresh, previous, strict=True))
        previous = fresh
        named += len(stale & truth)
        differing += len(truth)
        others += len(stale - truth)
        looked += len(answers)
        retrievals = check.retrievals - before if check else retrievals + len(answers)
    return Figures(named, differing, others, looked, retrievals, changes, seconds, edits)


SUPPORTED = {"its sentence": True, "its sentence, another answer in it": False,
             "the answer in other words": True, "another answer in other words": False}  # fmt: skip


class Planted(NamedTuple):
    """A statement on a passage.

    Attributes:
        kind: How it was made.
        passage: The passage.
        question: The question that it answers.
        statement: The statement.
    """

    kind: str
    passage: str
    question: str
    statement: str


def chinese(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield short passages with a question and its answer each."""
    seen = set()
    for question in cmrc_dev(data).questions:
        (gold,) = question.gold
        answer = question.answers[0].rstrip("。")
        if isinstance(gold, GoldPassage) and gold.text not in seen and len(gold.text) < 400:
            seen.add(gold.text)
            yield gold.text, question.text, answer


def english(data: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the passages of first hops that are questions in words."""
    rows = json.loads((data / "musique" / "musique_train.json").read_text(encoding="utf-8"))
    for row in rows:
        hop = row["question_decomposition"][0]
        if hop["question"].endswith("?"):
            passage = row["paragraphs"][hop["paragraph_support_idx"]]["paragraph_text"]
            if len(passage) < 600:
                yield passage, hop["question"], hop["answer"]


def planted(cases: list[tuple[str, str, str]], count: int, short: str) -> Iterator[Planted]:
    """Yield four statements on each of so many passages."""
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


def grounded(judge: Judge, one: Planted, *, gate: bool) -> float | None:
    """Return the groundedness of a statement, by the gate and the model or the model alone."""
    before = judges.MIN_QUOTED_TOKENS
    if not gate:
        judges.MIN_QUOTED_TOKENS = math.inf  # type: ignore[assignment]  # nothing is so long
    try:
        item = RetrievedItem("1", one.passage, 1.0)
        case = RetrievalCase(Question("1", one.question), (item,), Matching(), one.statement)
        return judge.metric("groundedness").judge(case).value
    finally:
        judges.MIN_QUOTED_TOKENS = before


def refuse(prompt: str) -> str:
    """Say no to any statement."""
    return json.dumps({"verdicts": [{"number": n, "quote": "", "verdict": "no"} for n in (1,)]})


def stored_answers(passed: list[str]) -> None:
    """Run the experiment as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search", default="words")
    for option, default in (
        *(("questions", 10_000), ("passages", 20_000), ("edits", 1_000)),
        *(("batch", 100), ("seed", 7)),
    ):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--data", type=Path)
    options = vars(parser.parse_args(passed))
    sys.stdout.write(f"{options['search']}: {run(options.pop('search'), **options)}\n")


def judged_answers(passed: list[str]) -> None:
    """Judge all, and print the shares that are right."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--llm", metavar="NAME", required=True, help="model that judges")
    parser.add_argument("--passages", type=int, default=5, help="in each language")
    options = parser.parse_args(passed)
    options.cache.mkdir(parents=True, exist_ok=True)
    chat = OpenAIChat(options.llm, timeout=1800)
    judge, gate = Judge(chat, store=options.cache / "judge.db"), Judge(refuse)
    sets = {"zh": (chinese, "答案是{}。"), "en": (english, "The answer is {}.")}
    rows = []
    for language, (read, short) in sets.items():
        said: dict[str, list[tuple[bool, ...]]] = {kind: [] for kind in SUPPORTED}
        for one in planted([*read(options.data)], options.passages, short):
            values = (
                grounded(gate, one, gate=True),
                grounded(judge, one, gate=False),
                grounded(judge, one, gate=True),
            )
            print(one.kind, one.statement, *values, sep="\t", flush=True)
            if None not in values:
                said[one.kind].append(tuple(value == 1 for value in values))
        for kind, supported in SUPPORTED.items():
            judged = said[kind]
            right = [
                sum(yes == supported for yes in column) for column in zip(*judged, strict=True)
            ]
            agree = sum(by_gate == by_model for by_gate, by_model, _ in judged)
            rows.append([f"{language}, {kind}", "yes" if supported else "no",
                         *(f"{n} of {len(judged)}" for n in (*right, agree))])  # fmt: skip
    columns = ["the gate is right", "the model is right", "`groundedness` is right"]
    header = ["statement", "supported", *columns, "gate and model agree"]
    show("What a model's judge is worth", header, rows)


def turns(passed: list[str]) -> None:
    """Print the longest turn of a loop for each call: the median of ``--rounds``."""
    logging.getLogger("nodekin").setLevel(logging.CRITICAL)  # that is no answer for all strategies
    parser = argparse.ArgumentParser(description=turns.__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args(passed).rounds
    corpus, graph = Corpus(7), NodeGraph(progress=False)
    graph.add(Document(corpus.passage(), id=str(number)) for number in range(400))
    graph.create_node_group("sentence", split_sentences)
    wide, question = Retriever(graph, "ROOT", top_k=400), "w1 w2 w3"
    queries = "\n".join(f"Where does tea number {n} grow?" for n in range(3_300))  # 100 kB
    settings, tools = AnswerSettings(context_window=10**6), CorpusTools(graph, max_tokens=50_000)
    engine = QueryEngine(wide, _Model("w1 [1]."), top_k=400, settings=settings)
    strategies = {name: make_strategy(name, wide, _Model(queries)) for name in simple_strategies()}
    two = FusionRetriever([wide, Retriever(graph, "sentence", top_k=400)], top_k=400)
    calls: dict[str, Callable[[], Any]] = {
        "an answer from 400 sources": lambda: engine.aquery(question),
        "the same as a stream, of 100 kB": lambda: _read(
            QueryEngine(wide, _Model(queries), top_k=400, settings=settings).astream(question)
        ),
        **{
            f"{name}, 100 kB of a model": lambda r=r: r.aretrieve(question, top_k=400)  # type: ignore[misc]
            for name, r in strategies.items()
        },
        "a fusion of two, 400 each": lambda: two.aretrieve(question),
        "an agent's search": lambda: tools.acall("search", {"query": question}),
        "an agent's grep": lambda: tools.acall("grep", {"pattern": "w1"}),
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


class _Model:
    """Says at once, without waiting, the same text."""

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
    """Return the seconds of the longest turn of a new loop, with or without collections."""
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


PARTS = {"stored": stored_answers, "judges": judged_answers, "turns": turns}


def main() -> None:
    """Run the part that the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS, help="PART --help has its options")
    PARTS[parser.parse_args(sys.argv[1:2]).part](sys.argv[2:])


if __name__ == "__main__":
    main()
