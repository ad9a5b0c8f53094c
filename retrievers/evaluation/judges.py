"""Metrics by a judge: a language model that decides what no formula can.

Each metric is made of yes-or-no decisions. Models agree on these more than on grades, and a reader
can check them. Decisions are cached by the judge's name and the prompt, so that set-ups which
retrieve the same passages are judged alike, for the price of one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ...nodegraph.concurrency import run_in_threads
from ...nodegraph.errors import ModelError, check_integer, nearest_names
from ...nodegraph.models.answer_cache import AnswerCache, answer_key
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.output.verdicts import Verdict, parse_verdicts
from ...nodegraph.models.templates import Language, json_instruction, language_of, schema_of
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.sentences import split_sentences
from ...nodegraph.storage.graph_store import GraphStore
from ..answers.quote_matching import QuoteIndex
from ..plans.plan import run
from ..plans.prompting import PromptMixin, ask_and_parse
from ..tracing import Span, trace
from .dataset import Dataset, Question
from .matching import Matching, NotJudgedError, RetrievalCase
from .metrics import JUDGED_METRICS, NO_ANSWER, Judgement, Metric, says_unknown, split_name
from .model_prompts import JUDGE_PROMPTS, VERDICT, VERDICTS
from .records import Record

T = TypeVar("T")

MIN_QUOTED_TOKENS = 6
"""A statement with so many tokens that stands in a result as it is needs no model."""

Judgements: TypeAlias = dict[str, dict[str, dict[str, Judgement]]]
"""What each metric says of each question, by metric, set-up and question id."""


def judge_records(
    dataset: Dataset,
    metrics: Sequence[Metric],
    records: Mapping[str, Mapping[str, Record]],
    matching: Matching,
    *,
    max_workers: int = 1,
    progress: bool | None = False,
) -> Judgements:
    """Return what each metric says of each record.

    Args:
        dataset: The questions.
        metrics: The metrics.
        records: What was returned, by set-up and question id.
        matching: When a result is gold.
        max_workers: How many questions are judged at once where a metric asks a model.
        progress: True draws a bar in any case, False never, None where a person can see it. Only
            where a metric asks a model.
    """
    slow = any(metric.asks_model for metric in metrics)
    answers_only = {
        setup: not any(record.items for record in of.values()) for setup, of in records.items()
    }
    work = [
        partial(_judged, metrics, setup, question, of[question.id], matching, answers_only[setup])
        for setup, of in records.items()
        for question in dataset.questions
    ]
    judged = dict(run_all(work, "judge", max_workers if slow else 1, progress if slow else False))
    return {
        metric.name: {
            setup: {q.id: judged[setup, q.id][metric.name] for q in dataset.questions}
            for setup in records
        }
        for metric in metrics
    }


def run_all(
    work: Sequence[Callable[[], T]],
    name: str,
    max_workers: int,
    progress: bool | None,
    keep: Callable[[T], object] = lambda result: None,
) -> list[T]:
    """Return what functions return, in threads, with a bar.

    When one raises, or all is interrupted, nothing more starts.

    Args:
        work: The functions.
        name: What the bar calls them.
        max_workers: How many run at once.
        progress: True draws a bar in any case, False never, None where a person can see it.
        keep: Called with each result as soon as it is there, one at a time.
    """
    from tqdm import tqdm

    hidden = None if progress is None else not progress
    lock = threading.Lock()
    with tqdm(desc=name, total=len(work), unit="question", disable=hidden) as bar:

        def run_one(task: Callable[[], T]) -> T:
            result = task()
            with lock:
                keep(result)
                bar.update()
            return result

        return run_in_threads([partial(run_one, task) for task in work], max_workers)


def model_cost(span: Span) -> tuple[int, int]:
    """Return how many answers a model gave within a span, and the tokens of them and prompts."""
    model_spans = [item for item in _spans(span) if item.name == "ask"]
    return len(model_spans), model_tokens(model_spans)


def model_tokens(model_spans: Sequence[Span]) -> int:
    """Return how many tokens the prompts and answers of model calls have together."""
    texts = (
        str(item.attributes.get(name, "")) for item in model_spans for name in ("prompt", "answer")
    )
    return sum(map(count_tokens, texts))


def _spans(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from _spans(child)


def _judged(
    metrics: Sequence[Metric],
    setup: str,
    question: Question,
    record: Record,
    matching: Matching,
    answers_only: bool,
) -> tuple[tuple[str, str], dict[str, Judgement]]:
    if record.error:
        failed = Judgement(None, reason=f"the set-up failed: {record.error}")
        return (setup, question.id), {metric.name: failed for metric in metrics}
    case = RetrievalCase(
        *(question, record.items, matching, record.answer),
        *(record.model_calls, record.model_tokens),
        answer_only=answers_only and bool(record.answer),
    )
    return (setup, question.id), {metric.name: metric.judge(case) for metric in metrics}


class Judge(PromptMixin):
    """Let a language model judge results and answers.

    ``metric`` and ``metrics`` return what ``evaluate`` takes. A judge that fails, or whose answer
    can't be read when it was asked twice, gives "not judged" with the reason. Passages are fenced:
    nothing in them closes the place they are quoted in.

    Args:
        llm: The model: a function, a model of LangChain or LlamaIndex, ``OpenAIChat``, an ``LLM``.
        store: Where decisions are kept: the path of a file, or a store. None for memory. With a
            file the same evaluation costs nothing the next time. Failures are not kept.
        max_characters: How many characters of passages one prompt takes. A question with more is
            not judged: a judge that sees a part of the passages would blame the retriever.
        timeout: Seconds to wait for an answer. None leaves it to the model's client.

    Attributes:
        calls: How many answers the model has given.
        tokens: How many tokens their prompts and answers had, by ``count_tokens``.
        reused: How many decisions were there already.

    Raises:
        TypeError: If it is no language model.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.evaluation import Dataset, Question, evaluate
        >>> graph = NodeGraph(progress=False)
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is."])
        >>> judge = Judge(lambda prompt: '{"quote": "not fermented", "verdict": "yes"}')
        >>> data = Dataset([Question("1", "Which tea is green?")])
        >>> name = "judged_context_relevance@1"
        >>> setups = {"words": Retriever(graph, "ROOT")}
        >>> evaluate(setups, data, [judge.metric(name)]).figure("words", name)
        Figure(value=1.0, low=0.0, high=1.0, judged=1, not_judged=0)
    """

    def __init__(
        self,
        llm: object,
        *,
        store: str | Path | GraphStore | None = None,
        max_characters: int = 24_000,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self.max_characters = check_integer(max_characters, "max_characters", 1)
        self.timeout = timeout
        self.calls = self.tokens = self.reused = 0
        self.answers = AnswerCache(store)
        self._lock = threading.Lock()
        self._prompts = JUDGE_PROMPTS

    def __repr__(self) -> str:
        spent = f"{self.calls} calls, {self.tokens} tokens, {self.reused} reused"
        return f"Judge({self.llm.name!r}, {spent})"

    def metrics(self, *names: str) -> list[Metric]:
        """Return metrics by their names. All of ``JUDGED_METRICS`` without.

        Raises:
            ValueError: If there is none of a name.
        """
        return [self.metric(name) for name in names or JUDGED_METRICS]

    def metric(self, name: str) -> Metric:
        """Return a metric by its name.

        - ``judged_context_recall``: the share of the statements of the right answer that the
          results support (context recall of Ragas: Es et al., 2024). Statements are sentences, of
          the first answer where a question has several.
        - ``judged_context_relevance``: the share of results that help to answer, each judged by
          itself (ARES: Saad-Falcon et al., 2024).
        - ``groundedness``: the share of the statements of the answer that its sources support
          (faithfulness of Es et al., 2024. Groundedness in TruLens' triad). An answer that says
          that the sources don't tell states nothing, and is not judged.
        - ``answer_relevance``: whether the answer is one to the question (ARES). Of an answer that
          says that it is unknown 0, as in Ragas, without a call.

        Without any results the first two are 0, without a call.

        Args:
            name: One of these, for those of results with ``@`` and how many count.

        Raises:
            ValueError: If there is none of this name, or the number is below 1.
        """
        base = name.partition("@")[0]
        if base not in _MEASURES:
            raise ValueError(
                f"there is no metric {base!r} by a judge; there are "
                f"{nearest_names(base, JUDGED_METRICS)}"
            )
        _, k = split_name(name, counts_results=base != "answer_relevance")
        return Metric(name, partial(_measured, self, _MEASURES[base], k), k, asks_model=True)

    def count(self, calls: int = 0, tokens: int = 0, reused: int = 0) -> None:
        """Add to what was asked and reused."""
        with self._lock:
            self.calls += calls
            self.tokens += tokens
            self.reused += reused

    def close(self) -> None:
        """Close the file of decisions, if there is one. The next use opens it again."""
        self.answers.close()


class _JudgedCase:
    """Put a case before a judge, and count what its decisions cost."""

    def __init__(self, judge: Judge, case: RetrievalCase, k: int | None) -> None:
        self.judge = judge
        self.check_sources = case.check_sources
        self.question = case.question
        self.answer = case.answer
        self.texts = [item.text for item in case.items[:k]]
        self.calls = self.tokens = 0

    def decide(self, kind: str, *, count: int | None = None, **values: str) -> list[Verdict]:
        """Return the verdicts on so many numbered items, or on the one thing of the prompt.

        They are those that the model gives now, or has given to the same prompt.

        Raises:
            NotJudgedError: If the model fails, or its answers can't be read.
        """
        parse = partial(parse_verdicts, count=count or 1)
        form = VERDICT if count is None else VERDICTS
        judge, query = self.judge, self.question.text
        language: Language = language_of(query)
        schema, timeout = schema_of(form), judge.timeout
        prompt = judge.prompts[kind].fill(language, query=query, **values)
        prompt += json_instruction(form, language)
        is_new = False

        def ask() -> dict[str, Any]:
            nonlocal is_new
            is_new = True
            failure: ModelError | None = None
            value: Any = None
            with trace() as span:
                plan = ask_and_parse(
                    judge.llm, prompt, parse, language, schema=schema, timeout=timeout
                )
                try:
                    value = run(plan)
                except ModelError as error:
                    failure = error
            calls, tokens = model_cost(span)
            judge.count(calls, tokens)
            if failure is not None:
                self.calls, self.tokens = self.calls + calls, self.tokens + tokens
                raise NotJudgedError(f"the judge failed: {failure}") from failure
            return {"value": value, "calls": calls, "tokens": tokens}

        entry = judge.answers.ask(answer_key(judge.llm.name, prompt, {"judged": kind}), ask)
        if not is_new:
            judge.count(reused=1)
        self.calls, self.tokens = self.calls + entry["calls"], self.tokens + entry["tokens"]
        return [Verdict(*verdict) for verdict in entry["value"]]

    def check_length(self, texts: Sequence[str], what: str, remedy: str = "") -> None:
        """Refuse a case that is too long for the judge.

        Raises:
            NotJudgedError: If the texts have more characters than a prompt takes.
        """
        length, limit = sum(map(len, texts)), self.judge.max_characters
        if length > limit:
            message = f"{what} {length:,} characters, and the judge takes {limit:,}"
            raise NotJudgedError(f"{message}; raise max_characters{remedy}")

    def answer_text(self) -> str:
        if self.answer is None:
            raise NotJudgedError("the set-up gives no answers; give a query engine")
        return self.answer.strip()

    def supported(self, answer: str) -> Judgement:
        """Judge the share of the statements of an answer that the results support.

        What stands in a result word for word needs no model.
        """
        self.check_sources()
        statements = list(dict.fromkeys(_lines(answer))) or [answer]
        total = len(statements)
        if not self.texts:
            return Judgement(0.0, evidence=f"0 of {total} statements; there are no results")
        index = QuoteIndex(self.texts)
        verdicts = {s: Verdict(True, s) for s in statements if _is_quoted(s, index)}
        undecided = [statement for statement in statements if statement not in verdicts]
        if undecided:
            self.check_length(self.texts, "the results have", ", or let fewer count, as by '@3'")
            passages = "\n\n".join(f"[{n}] {text.strip()}" for n, text in enumerate(self.texts, 1))
            decided = self.decide(
                "support",
                count=len(undecided),
                passages=passages,
                statements=_numbered(undecided),
            )
            verdicts.update(zip(undecided, decided, strict=True))
        return self.share([verdicts[statement] for statement in statements], "statements")

    def share(self, verdicts: Sequence[Verdict], what: str) -> Judgement:
        """Judge by the share of verdicts that are a yes."""
        right, total = sum(verdict.yes for verdict in verdicts), len(verdicts)
        words = (f"; {n} {_in_words(verdict)}" for n, verdict in enumerate(verdicts, 1))
        return Judgement(right / total, evidence=f"{right} of {total} {what}{''.join(words)}")


def _measured(
    judge: Judge, measure: Callable[[_JudgedCase], Judgement], k: int | None, case: RetrievalCase
) -> Judgement:
    """Return a judgement with what it cost, also where it failed."""
    judged = _JudgedCase(judge, case, k)
    try:
        judgement = measure(judged)
    except NotJudgedError as error:
        judgement = Judgement(None, reason=str(error))
    return replace(judgement, model_calls=judged.calls, tokens=judged.tokens)


def _context_recall(case: _JudgedCase) -> Judgement:
    answers = [answer.strip() for answer in case.question.answers if answer.strip()]
    if not answers:
        raise NotJudgedError("the question has no answers")
    return case.supported(answers[0])


def _groundedness(case: _JudgedCase) -> Judgement:
    answer = case.answer_text()
    if says_unknown(answer):
        raise NotJudgedError("the answer says that it is unknown, and states nothing")
    return case.supported(answer)


def _context_relevance(case: _JudgedCase) -> Judgement:
    case.check_sources()
    verdicts = []
    for text in case.texts:
        case.check_length([text], "a result has")
        verdicts += case.decide("relevance", passage=text)
    if not verdicts:
        return Judgement(0.0, evidence="there are no results")
    return case.share(verdicts, "results")


def _answer_relevance(case: _JudgedCase) -> Judgement:
    answer = case.answer_text()
    if not says_unknown(answer):
        (verdict,) = case.decide("answer_relevance", answer=answer)
        return Judgement(float(verdict.yes), evidence=_in_words(verdict))
    if not case.question.answerable:
        raise NotJudgedError("the question can't be answered, and the answer says so")
    said = f"the answer says that it is unknown: {answer:.120}" if answer else NO_ANSWER
    return Judgement(0.0, evidence=said)


_MEASURES: Mapping[str, Callable[[_JudgedCase], Judgement]] = {
    "judged_context_recall": _context_recall,
    "judged_context_relevance": _context_relevance,
    "groundedness": _groundedness,
    "answer_relevance": _answer_relevance,
}


def _lines(text: str) -> list[str]:
    """Return the sentences of a text that have a word."""
    lines = (line.strip() for line in split_sentences(text))
    return [line for line in lines if re.search(r"\w", line)]


def _is_quoted(statement: str, index: QuoteIndex) -> bool:
    """Return whether a statement, its citations apart, stands in a text in one piece.

    A word or two that stand somewhere are no statement.
    """
    plain = re.sub(r"\s*\[\d+(?:,\s*\d+)*\]", "", statement)
    match = index.find(plain) if count_tokens(plain) >= MIN_QUOTED_TOKENS else None
    return match is not None and len(match.spans) == 1


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, 1))


def _in_words(verdict: Verdict) -> str:
    decision = "yes" if verdict.yes else "no"
    return f"{decision}: {verdict.words}" if verdict.words else decision
