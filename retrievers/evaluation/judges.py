"""Metrics by a judge: a language model that decides what no formula can.

Each is made of yes-or-no decisions, which models agree on more than on grades, and which can be
read. What a judge decides is kept by its name and the prompt, so that set-ups which retrieve the
same passages are judged alike, and for the price of one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...nodegraph import (
    LLM,
    ModelError,
    NodeStore,
    nearest_names,
    split_sentences,
)
from ...nodegraph.models import AnswerCache, Language, answer_key, as_llm, language_of
from ...nodegraph.models.output import Verdict, is_unknown, parse_numbers, parse_verdicts
from ..plans import PromptMixin, ask_and_parse, json_instruction, run
from ..tracing import trace
from ..validation import whole
from .judge_prompts import (
    NUMBERS_FORM,
    NUMBERS_SCHEMA,
    PROMPTS,
    VERDICT_FORM,
    VERDICT_SCHEMA,
    VERDICTS_FORM,
    VERDICTS_SCHEMA,
)
from .judging import model_cost
from .matching import NotJudgedError, RetrievalCase
from .metrics import Judgement, Metric


class Judge(PromptMixin):
    """Let a language model judge results and answers.

    ``metric`` and ``metrics`` return what ``evaluate`` takes. A judge that fails, or whose answer
    can't be read when it was asked twice, gives "not judged" with the reason. Passages are fenced:
    nothing in them closes the place they are quoted in.

    Args:
        llm: The model: a function, a model of LangChain or LlamaIndex, ``OpenAIChat``, an ``LLM``.
        store: Where decisions are kept: the path of a file, or a store; None for memory. With a
            file the same evaluation costs nothing the next time. Failures are not kept.
        max_characters: How many characters of passages one prompt takes. A question with more is
            not judged: a judge that sees a part of the passages would blame the retriever.
        timeout: Seconds to wait for an answer; None leaves it to the model's client.

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
        store: str | Path | NodeStore | None = None,
        max_characters: int = 24_000,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self.max_characters = whole(max_characters, "max_characters", 1)
        self.timeout = timeout
        self.calls = self.tokens = self.reused = 0
        self._answers = AnswerCache(store)
        self._lock = threading.Lock()
        self._prompts = PROMPTS

    def __repr__(self) -> str:
        spent = f"{self.calls} calls, {self.tokens} tokens, {self.reused} reused"
        return f"Judge({self.llm.name!r}, {spent})"

    def metrics(self, *names: str) -> list[Metric]:
        """Return metrics by their names; all of ``JUDGED_METRICS`` without.

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
        - ``judged_sentence_relevance``: the share of the sentences of the results that are needed
          to answer (context relevance of Es et al., 2024).
        - ``groundedness``: the share of the statements of the answer that its sources support
          (faithfulness of Es et al., 2024; groundedness in TruLens' triad). An answer that says
          that the sources don't tell states nothing, and is not judged.
        - ``answer_relevance``: whether the answer is one to the question (ARES); of an answer that
          says that it is unknown 0, as in Ragas, without a call.
        - ``answer_correctness``: whether the answer says what one of the right answers says.

        Without any results the first three are 0, without a call.

        Args:
            name: One of these, for those of results with ``@`` and how many count.

        Raises:
            ValueError: If there is none of this name, or the number is below 1.
        """
        base, at, number = name.partition("@")
        if base not in _METRICS:
            raise ValueError(
                f"there is no metric {base!r} by a judge; there are "
                f"{nearest_names(base, JUDGED_METRICS)}"
            )
        measure, of_results = _METRICS[base]
        if at and not (of_results and number.isascii() and number.isdigit() and int(number)):
            ways = f"as in '{base}@5'" if of_results else f"it is {base!r} without"
            raise ValueError(f"{name!r} lets no number of results count; {ways}")
        k = int(number) if at else None
        return Metric(name, partial(measure, self, k=k), k, asks_model=True)

    def close(self) -> None:
        """Close the file of decisions, if there is one; the next use opens it again."""
        self._answers.close()

    def decide(
        self, kind: str, query: str, count: int | None = None, **values: str
    ) -> tuple[list[Verdict], int, int]:
        """Return the verdicts on a filled prompt, and what calls and tokens they took when made.

        Args:
            kind: The name of the prompt.
            query: The question, which decides the language.
            count: How many numbered items there are; None for the one thing asked.
            **values: What else the prompt takes.

        Raises:
            _FailedJudgeError: If the model fails, or its answers can't be read.
        """
        form, schema = (
            (VERDICT_FORM, VERDICT_SCHEMA) if count is None else (VERDICTS_FORM, VERDICTS_SCHEMA)
        )
        parse = partial(parse_verdicts, count=count or 1)
        entry = self._decided(_Request(kind, form, schema, parse), query, values)
        return [Verdict(*verdict) for verdict in entry["value"]], entry["calls"], entry["tokens"]

    def select(self, query: str, sentences: Sequence[str]) -> tuple[list[int], int, int]:
        """Return which numbered sentences are needed, and the calls and tokens.

        Raises:
            _FailedJudgeError: If the model fails, or its answers can't be read.
        """
        parse = partial(parse_numbers, count=len(sentences))
        request = _Request("sentences", NUMBERS_FORM, NUMBERS_SCHEMA, parse)
        entry = self._decided(request, query, {"sentences": _numbered(sentences)})
        return entry["value"], entry["calls"], entry["tokens"]

    def _decided(self, request: _Request, query: str, values: Mapping[str, str]) -> dict[str, Any]:
        language: Language = language_of(query)
        prompt = self._prompts[request.kind].fill(language, query=query, **values)
        prompt += json_instruction(request.form, language)
        new = []

        def ask() -> dict[str, Any]:
            new.append(True)
            failure: ModelError | None = None
            value: Any = None
            with trace() as span:
                try:
                    value = run(
                        ask_and_parse(
                            self.llm,
                            prompt,
                            request.parse,
                            language,
                            schema=request.schema,
                            timeout=self.timeout,
                        )
                    )
                except ModelError as error:
                    failure = error
            calls, tokens = model_cost(span)
            with self._lock:
                self.calls += calls
                self.tokens += tokens
            if failure is not None:
                raise _FailedJudgeError(failure, calls, tokens) from failure
            return {"value": value, "calls": calls, "tokens": tokens}

        key = answer_key(self.llm.name, prompt, {"judged": request.kind})
        entry: dict[str, Any] = self._answers.ask(key, ask)
        if not new:
            with self._lock:
                self.reused += 1
        return entry


class _Request(NamedTuple):
    """What a judge is asked, by the name of the prompt, and how its answer is read."""

    kind: str
    form: str
    schema: Mapping[str, Any]
    parse: Callable[[str], Any]


class _FailedJudgeError(Exception):
    """A judge failed; the message says why."""

    def __init__(self, error: ModelError, calls: int, tokens: int) -> None:
        super().__init__(f"the judge failed: {error}")
        self.calls = calls
        self.tokens = tokens


class _Tally:
    """Collect what a judgement is made of."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0

    def add(self, calls: int, tokens: int) -> None:
        self.calls += calls
        self.tokens += tokens

    def share(self, right: float, total: int, what: str, words: Sequence[str]) -> Judgement:
        evidence = "; ".join([f"{right:g} of {total} {what}", *words])
        return Judgement(
            right / total, evidence=evidence, model_calls=self.calls, tokens=self.tokens
        )


_Measure = Callable[..., Judgement]


def _judging(measure: Callable[[Judge, RetrievalCase, int | None, _Tally], Judgement]) -> _Measure:
    """Return a measure whose failed judge is a judgement, with what it cost."""

    def measured(judge: Judge, case: RetrievalCase, *, k: int | None) -> Judgement:
        tally = _Tally()
        try:
            return measure(judge, case, k, tally)
        except _FailedJudgeError as error:
            tally.add(error.calls, error.tokens)
            return Judgement(None, reason=str(error), model_calls=tally.calls, tokens=tally.tokens)

    return measured


def _context_recall(judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally) -> Judgement:
    statements = _statements(_right_answers(case)[0])
    return _supported(judge, case, k, tally, statements)


def _groundedness(judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally) -> Judgement:
    answer = _answer(case)
    if is_unknown(answer):
        raise NotJudgedError("the answer says that it is unknown, and states nothing")
    return _supported(judge, case, k, tally, _statements(answer))


def _supported(
    judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally, statements: Sequence[str]
) -> Judgement:
    texts = [item.text for item in case.items[:k]]
    if not texts:
        return tally.share(0, len(statements), "statements", ["there are no results"])
    length = sum(map(len, texts))
    if length > judge.max_characters:
        raise NotJudgedError(
            f"the results have {length:,} characters, and the judge takes "
            f"{judge.max_characters:,}; raise max_characters, or let fewer count, as by '@3'"
        )
    verdicts, calls, tokens = judge.decide(
        "support",
        case.question.text,
        len(statements),
        passages="\n\n".join(f"[{n}] {text.strip()}" for n, text in enumerate(texts, 1)),
        statements=_numbered(statements),
    )
    tally.add(calls, tokens)
    return tally.share(
        sum(verdict.yes for verdict in verdicts), len(statements), "statements", _words(verdicts)
    )


def _context_relevance(
    judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    items = case.items[:k]
    verdicts = []
    for item in items:
        (verdict,), calls, tokens = judge.decide(
            "relevance", case.question.text, passage=_fitting(judge, item.text)
        )
        tally.add(calls, tokens)
        verdicts.append(verdict)
    if not items:
        return Judgement(0.0, evidence="there are no results")
    return tally.share(sum(v.yes for v in verdicts), len(items), "results", _words(verdicts))


def _sentence_relevance(
    judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    total = needed = 0
    words = []
    for rank, item in enumerate(case.items[:k], 1):
        sentences = [line.strip() for line in split_sentences(_fitting(judge, item.text))]
        sentences = [line for line in sentences if re.search(r"\w", line)]
        if not sentences:
            continue
        numbers, calls, tokens = judge.select(case.question.text, sentences)
        tally.add(calls, tokens)
        total += len(sentences)
        needed += len(numbers)
        words += [f"{rank}: {sentences[number - 1]:.120}" for number in numbers]
    if not total:
        return Judgement(0.0, evidence="there are no sentences")
    return tally.share(needed, total, "sentences", words)


def _answer_relevance(judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally) -> Judgement:
    answer = _answer(case)
    if is_unknown(answer):
        if not case.question.answerable:
            raise NotJudgedError("the question can't be answered, and the answer says so")
        return Judgement(0.0, evidence=f"the answer says that it is unknown: {answer:.120}")
    return _one(judge.decide("answer_relevance", case.question.text, answer=answer), tally)


def _answer_correctness(
    judge: Judge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    right, answer = _right_answers(case), _answer(case)
    if is_unknown(answer):
        return Judgement(0.0, evidence=f"the answer says that it is unknown: {answer:.120}")
    decided = judge.decide(
        "answer_correctness", case.question.text, right=_numbered(right), answer=answer
    )
    return _one(decided, tally)


def _one(decided: tuple[list[Verdict], int, int], tally: _Tally) -> Judgement:
    (verdict,), calls, tokens = decided
    evidence = "yes" if verdict.yes else "no"
    if verdict.words:
        evidence += f": {verdict.words}"
    return Judgement(float(verdict.yes), evidence=evidence, model_calls=calls, tokens=tokens)


_METRICS: dict[str, tuple[_Measure, bool]] = {
    "judged_context_recall": (_judging(_context_recall), True),
    "judged_context_relevance": (_judging(_context_relevance), True),
    "judged_sentence_relevance": (_judging(_sentence_relevance), True),
    "groundedness": (_judging(_groundedness), True),
    "answer_relevance": (_judging(_answer_relevance), False),
    "answer_correctness": (_judging(_answer_correctness), False),
}

JUDGED_METRICS = tuple(_METRICS)
"""The names of the metrics of a ``Judge``; the last three are of answers of query engines."""


def _right_answers(case: RetrievalCase) -> list[str]:
    answers = [answer.strip() for answer in case.question.answers if answer.strip()]
    if not answers:
        raise NotJudgedError("the question has no answers")
    return answers


def _answer(case: RetrievalCase) -> str:
    if case.answer is None:
        raise NotJudgedError("the set-up gives no answers; give a query engine")
    if not case.answer.strip():
        raise NotJudgedError("the answer is empty")
    return case.answer.strip()


def _statements(answer: str) -> list[str]:
    lines = (line.strip() for line in split_sentences(answer))
    return list(dict.fromkeys(line for line in lines if re.search(r"\w", line))) or [answer]


def _fitting(judge: Judge, text: str) -> str:
    if len(text) > judge.max_characters:
        raise NotJudgedError(
            f"a result has {len(text):,} characters, and the judge takes "
            f"{judge.max_characters:,}; raise max_characters"
        )
    return text


def _numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, 1))


def _words(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what a judge said of each, with its number."""
    with_words = (f": {verdict.words}" if verdict.words else "" for verdict in verdicts)
    return [
        f"{number} {'yes' if verdict.yes else 'no'}{words}"
        for number, (verdict, words) in enumerate(zip(verdicts, with_words, strict=True), 1)
    ]
