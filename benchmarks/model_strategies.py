"""Compare query strategies that use a language model with the strategies of other frameworks.

The model is a real language model or a scripted oracle. ``strategies.py --only model`` runs this
module. The questions are asked one after another, and each question is passed to all systems before
the next. If a run ends early, all systems have therefore been compared on the same questions. The
model's replies are cached in ``--cache``, so that the next run continues where the last run ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
import urllib.request
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from harness import cmrc, every, graph_of, musique

from nodekin.nodegraph import ROOT, count_tokens
from nodekin.retrievers import DefaultRetriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, GoldPassage, Question
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES, make_strategy

TOP_K = 5
QUESTIONS = 60
ORACLE = "scripted oracle"


# Models


class Reply(NamedTuple):
    """The reply of a model, with the number of tokens in the prompt and in the reply."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class Usage(NamedTuple):
    """The number of model calls and tokens since the last reset."""

    calls: int = 0
    tokens: int = 0


class CountedModel:
    """A language model that counts its calls and tokens, and caches its replies.

    Args:
        ask: A function that returns the reply to a prompt.
        cache: The path of the cache file. If None, replies are not cached.
        name: The name of the model in the cache.
    """

    def __init__(self, ask: Callable[[str], Reply], cache: Path | None, name: str) -> None:
        self._ask = ask
        self._name = name
        self._lock = threading.Lock()
        self._usage = Usage()
        self._file: sqlite3.Connection | None = None
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(cache / "replies.db", timeout=600, check_same_thread=False)
            weakref.finalize(self, self._file.close)
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply)")

    def __call__(self, prompt: str) -> str:
        """Return the reply to a prompt.

        If the prompt was sent before, the cached reply is returned.
        """
        with self._lock:
            reply = self._cached(prompt)
            calls = self._usage.calls + 1
            tokens = self._usage.tokens + reply.prompt_tokens + reply.completion_tokens
            self._usage = Usage(calls, tokens)
        return reply.text

    def taken(self) -> Usage:
        """Return the number of calls and tokens since the last call of this method."""
        with self._lock:
            usage = self._usage
            self._usage = Usage()
        return usage

    def _cached(self, prompt: str) -> Reply:
        if self._file is None:
            return self._ask(prompt)
        key = hashlib.blake2b(f"{self._name}\0{prompt}".encode(), digest_size=16).digest()
        row = self._file.execute("SELECT reply FROM replies WHERE key = ?", [key]).fetchone()
        if row is not None:
            return Reply(*json.loads(row[0]))
        reply = self._ask(prompt)
        with self._file:
            self._file.execute("INSERT INTO replies VALUES (?, ?)", [key, json.dumps(reply)])
        return reply


def served(name: str) -> Callable[[str], Reply]:
    """Return a function that sends prompts to a model on the server at OPENAI_BASE_URL."""
    url = os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions"

    def ask(prompt: str) -> Reply:
        body = {
            "model": name,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": 200,
        }
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '-')}",
        }
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=1800) as response:
            said = json.load(response)
        usage = said["usage"]
        text = said["choices"][0]["message"]["content"] or ""
        return Reply(text, usage["prompt_tokens"], usage["completion_tokens"])

    return ask


# The scripted oracle


class Gold(NamedTuple):
    """The correct decomposition of a question, which is given to the scripted oracle.

    Attributes:
        parts: The correct sub-questions, which do not contain the answers to earlier sub-questions.
        steps: The correct sub-questions, in which the answers to earlier sub-questions are filled
            in.
        answers: The answer to each step. For a simple question, this is its only answer.
    """

    parts: Sequence[str]
    steps: Sequence[str]
    answers: Sequence[str]


class Oracle:
    """A fake language model that always replies with the correct sub-questions and answers.

    It replies in the format that the prompts of nodekin, LangChain and LlamaIndex request.

    Args:
        known: The correct decompositions, keyed by question.
        tool: The name of the only tool that LlamaIndex can use.
    """

    def __init__(self, known: Mapping[str, Gold], tool: str) -> None:
        self._known = known
        self._tool = tool
        self._answers = {
            step: answer
            for gold in known.values()
            for step, answer in zip(gold.steps, gold.answers, strict=False)
        }

    def __call__(self, prompt: str) -> Reply:
        """Return the reply to a prompt, with estimated token counts."""
        text = self._text(prompt)
        return Reply(text, count_tokens(prompt), count_tokens(text))

    def _text(self, prompt: str) -> str:
        question = max((q for q in self._known if q in prompt), key=len, default="")
        if "Context information is below" in prompt:  # the format of LlamaIndex for answers
            asked = max((q for q in self._answers if q in prompt), key=len, default="")
            return self._answers.get(asked, "unknown")
        gold = self._known[question]
        if "The five lines" in prompt or "五行" in prompt:
            return self._step(prompt, gold)
        if '"sub_question"' in prompt:  # the format of LlamaIndex
            parts = gold.parts or (question,)
            items = [{"sub_question": part, "tool_name": self._tool} for part in parts]
            return f"```json\n{json.dumps({'items': items}, ensure_ascii=False)}\n```"
        if "The original question is as follows" in prompt:  # the format of LlamaIndex
            steps = gold.steps or (question,)
            reasoning = prompt.rpartition("The original question is as follows")[2]
            done = sum(f"- {step}" in reasoning for step in steps)
            return steps[done] if done < len(steps) else "None"
        if "Simpler questions" in prompt or "子问题" in prompt:
            return json.dumps({"questions": [*gold.parts]}, ensure_ascii=False)
        if "<fields>" in prompt:
            return json.dumps({"query": question, "filters": {}}, ensure_ascii=False)
        # For a simple question, the correct phrasing is a polite version of the question.
        return "\n".join(gold.parts or (f"请问，{question}",))

    def _step(self, prompt: str, gold: Gold) -> str:
        steps = gold.steps
        done = sum(f". {step} -> " in prompt for step in steps)
        answer = gold.answers[done - 1] if done or not steps else "unknown"
        if done == len(steps):
            return f"Answer: {answer}\nAnswered: yes\nNext question: NONE"
        return f"Answer: {answer}\nAnswered: no\nNext question: {steps[done]}"


# Systems


class Found(NamedTuple):
    """The ids of the first documents found, and whether the model's reply was unusable."""

    ids: Sequence[str]
    is_degraded: bool = False


Search = Callable[[str], Found]


def nodekin_search(retriever: Any) -> Search:
    """Return a search function for a nodekin retriever.

    If the retriever reports a failure, the model's reply counts as unusable.
    """

    def search(question: str) -> Found:
        results = retriever.retrieve(question, top_k=TOP_K)
        variants = [v for result in results for match in result.evidence for v in match.variants]
        is_degraded = any("failed" in (variant.note or "") for variant in variants)
        return Found([result.node.document_id for result in results], is_degraded)

    return search


def langchain_search(plain: DefaultRetriever, model: Callable[[str], str]) -> Search:
    """Return a search function for LangChain's MultiQueryRetriever around the same retriever."""
    from langchain_classic.retrievers import MultiQueryRetriever
    from langchain_core.runnables import RunnableLambda

    from nodekin.adapters.langchain import NodeGraphRetriever

    chain: Any = RunnableLambda(lambda prompt: model(prompt.to_string()))
    retriever = MultiQueryRetriever.from_llm(NodeGraphRetriever(plain, k=TOP_K), chain)

    def search(question: str) -> Found:
        documents = retriever.invoke(question)
        return Found([str(document.id) for document in documents])

    return search


def llama_index_searches(
    plain: DefaultRetriever, model: Callable[[str], str], tool: str
) -> Iterator[tuple[str, Search]]:
    """Yield search functions for LlamaIndex's engines for sub-questions and for steps."""
    from llama_index.core.indices.query.query_transform import StepDecomposeQueryTransform
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.query_engine import (
        MultiStepQueryEngine,
        RetrieverQueryEngine,
        SubQuestionQueryEngine,
    )
    from llama_index.core.question_gen import LLMQuestionGenerator
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.tools import QueryEngineTool

    from nodekin.adapters.llama_index import NodeGraphRetriever

    class Counted(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata()

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
            return CompletionResponse(text=model(prompt))

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> Any:
            yield self.complete(prompt)

    llm = Counted()
    retriever = NodeGraphRetriever(plain, similarity_top_k=TOP_K)
    synthesizer = get_response_synthesizer(llm=llm)
    engine = RetrieverQueryEngine(retriever, synthesizer)
    parts = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(engine, name=tool, description="All passages")],
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        response_synthesizer=synthesizer,
        use_async=False,
        verbose=False,
    )
    steps = MultiStepQueryEngine(
        engine, StepDecomposeQueryTransform(llm), response_synthesizer=synthesizer, num_steps=4
    )
    known = {document.id for document in plain.graph.nodes(ROOT)}
    for name, outer in (("SubQuestionQueryEngine", parts), ("MultiStepQueryEngine", steps)):

        def search(question: str, outer: Any = outer) -> Found:
            nodes = outer.query(question).source_nodes
            return Found([node.node_id for node in nodes if node.node_id in known])

        yield f"LlamaIndex {name}", search


def systems(
    plain: DefaultRetriever, model: Callable[[str], str], is_oracle: bool
) -> dict[str, Search]:
    """Return the search functions of all systems around one retriever, keyed by name."""
    found: dict[str, Search] = {"plain": nodekin_search(plain)}
    for name in STRATEGIES:
        if is_oracle and name in ("rewrite", "hyde"):
            continue  # No correct rewrites and passages are available.
        found[name] = nodekin_search(make_strategy(name, plain, model))
    found["LangChain MultiQueryRetriever"] = langchain_search(plain, model)
    found.update(llama_index_searches(plain, model, "passages"))
    return found


# Measuring


@dataclass
class Figures:
    """The accumulated measurements of one system."""

    recalls: list[float] = field(default_factory=list)
    recalls_of_all: list[float] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0
    degraded: int = 0

    def row(self) -> list[str]:
        """Format the measurements as the end of a row."""
        count = max(1, len(self.recalls))
        return [
            f"{sum(self.recalls) / count:.3f}",
            f"{sum(self.recalls_of_all) / count:.3f}",
            f"{self.calls / count:.1f}",
            f"{self.tokens / count:,.0f}",
            f"{self.degraded}",
        ]


def gold_ids(question: Question, by_text: Mapping[str, str]) -> set[str]:
    """Return the ids of the documents that are needed to answer a question."""
    found: set[str] = set()
    for gold in question.gold:
        if isinstance(gold, GoldDocument):
            found.add(gold.document_id)
        elif isinstance(gold, GoldPassage):
            found.add(by_text[gold.text.strip()])
    return found


def known_gold(data: Path, dataset: Dataset, steps: Mapping[str, Sequence[Any]]) -> dict[str, Gold]:
    """Return the correct decomposition of each question, for the scripted oracle.

    Args:
        data: The folder of the data.
        dataset: The data set with the questions.
        steps: The correct steps of each question, in which earlier answers are filled in.
    """
    from strategies import parts_of

    parts = parts_of(data) if steps else {}
    known = {}
    for question in dataset.questions:
        golds = steps.get(question.text, ())
        answers = [gold.answer for gold in golds] or [*question.answers[:1]]
        asked = [gold.question for gold in golds]
        known[question.text] = Gold(parts.get(question.text, ()), asked, answers)
    return known


def rows(
    dataset: Dataset,
    known: Mapping[str, Gold],
    name: str,
    cache: Path,
    seconds: float | None,
    only: Sequence[str],
) -> Iterator[list[str]]:
    """Measure the systems, and yield a row for each of them.

    The measurement ends after all questions or after the time limit. If ``only`` is not empty, only
    the systems with these names are measured.
    """
    is_oracle = name == ORACLE
    ask = Oracle(known, "passages") if is_oracle else served(name)
    model = CountedModel(ask, None if is_oracle else cache, name)
    plain = DefaultRetriever(graph_of(dataset), ROOT, top_k=TOP_K)
    plain.build()
    by_text = {document.text.strip(): document.id for document in dataset.documents}
    searches = systems(plain, model, is_oracle)
    if only:
        searches = {system: search for system, search in searches.items() if system in only}
    figures = {system: Figures() for system in searches}
    end = None if seconds is None else time.monotonic() + seconds
    for question in dataset.questions:
        if end is not None and time.monotonic() > end:
            break
        gold = gold_ids(question, by_text)
        for system, search in searches.items():
            measure(figures[system], search, question.text, gold, model)
    for system, measured in figures.items():
        yield [dataset.name, name, system, str(len(measured.recalls)), *measured.row()]


def measure(
    figures: Figures, search: Search, question: str, gold: set[str], model: CountedModel
) -> None:
    """Ask a system one question, and add the result to its measurements.

    If the system raises an error, the reply counts as unusable.
    """
    model.taken()
    found = Found((), True)
    with suppress(Exception):
        found = search(question)
    usage = model.taken()
    ids = list(dict.fromkeys(found.ids))
    figures.recalls.append(len(gold & set(ids[:TOP_K])) / len(gold))
    figures.recalls_of_all.append(len(gold & set(ids)) / len(gold))
    figures.calls += usage.calls
    figures.tokens += usage.tokens
    figures.degraded += found.is_degraded


def tables(
    data: Path,
    models: Sequence[str],
    cache: Path,
    count: int,
    seconds: float | None,
    only: Sequence[str] = (),
) -> Iterator[list[str]]:
    """Yield the rows of both data sets for each model."""
    from strategies import musique_steps

    chains = musique(data)
    simple = every(cmrc(data), max(count, QUESTIONS))
    for whole, steps in ((chains, musique_steps(data)), (simple, {})):
        dataset = Dataset(whole.questions[:count], whole.documents, whole.name)
        known = known_gold(data, dataset, steps)
        for name in models:
            yield from rows(dataset, known, name, cache, seconds, only)


def by_system(found: Iterable[Sequence[str]]) -> list[list[str]]:
    """Arrange the rows of ``tables`` by system, with a column for each data set and model.

    The first row is the header.
    """
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for dataset, model, system, count, recall, recall_of_all, calls, tokens, degraded in found:
        column = f"{dataset}, {model}"
        columns[column] = None
        cell = f"{count}; {recall} / {recall_of_all}; {calls}; {tokens}; {degraded}"
        cells.setdefault(system, {})[column] = cell
    header = ["system", *columns]
    return [header, *([name, *(row.get(c, "") for c in columns)] for name, row in cells.items())]
