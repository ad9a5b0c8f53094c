"""What a judge is asked for each metric, and what its decisions come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from ...nodegraph.errors import ModelError
from ...nodegraph.models.output.verdicts import Verdict
from ...nodegraph.splitters.sentences import split_sentences
from .matching import NotJudgedError, RetrievalCase
from .metrics import NO_ANSWER, Judgement, says_unknown


class DecidingJudge(Protocol):
    """What measures need of a judge."""

    max_characters: int

    def decide(
        self, kind: str, query: str, count: int | None = None, **values: str
    ) -> tuple[list[Verdict], int, int]:
        """Return the verdicts on a filled prompt, the calls and the tokens."""
        ...

    def select(self, query: str, sentences: Sequence[str]) -> tuple[list[int], int, int]:
        """Return which numbered sentences are needed, the calls and the tokens."""
        ...


class FailedJudgeError(Exception):
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


def _judging(
    measure: Callable[[DecidingJudge, RetrievalCase, int | None, _Tally], Judgement],
) -> _Measure:
    """Return a measure whose failed judge is a judgement, with what it cost."""

    def measured(judge: DecidingJudge, case: RetrievalCase, *, k: int | None) -> Judgement:
        tally = _Tally()
        try:
            return measure(judge, case, k, tally)
        except FailedJudgeError as error:
            tally.add(error.calls, error.tokens)
            return Judgement(None, reason=str(error), model_calls=tally.calls, tokens=tally.tokens)

    return measured


def _context_recall(
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    statements = _statements(_right_answers(case)[0])
    return _supported(judge, case, k, tally, statements)


def _groundedness(
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    answer = _answer(case)
    if says_unknown(answer):
        raise NotJudgedError("the answer says that it is unknown, and states nothing")
    return _supported(judge, case, k, tally, _statements(answer))


def _supported(
    judge: DecidingJudge,
    case: RetrievalCase,
    k: int | None,
    tally: _Tally,
    statements: Sequence[str],
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
        statements=numbered(statements),
    )
    tally.add(calls, tokens)
    return tally.share(
        sum(verdict.yes for verdict in verdicts), len(statements), "statements", _words(verdicts)
    )


def _context_relevance(
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
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
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
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


def _answer_relevance(
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    answer = _answer(case)
    if says_unknown(answer):
        if not case.question.answerable:
            raise NotJudgedError("the question can't be answered, and the answer says so")
        return _unknown(answer)
    return _one(judge.decide("answer_relevance", case.question.text, answer=answer), tally)


def _answer_correctness(
    judge: DecidingJudge, case: RetrievalCase, k: int | None, tally: _Tally
) -> Judgement:
    right, answer = _right_answers(case), _answer(case)
    if says_unknown(answer):
        return _unknown(answer)
    decided = judge.decide(
        "answer_correctness", case.question.text, right=numbered(right), answer=answer
    )
    return _one(decided, tally)


def _one(decided: tuple[list[Verdict], int, int], tally: _Tally) -> Judgement:
    (verdict,), calls, tokens = decided
    evidence = "yes" if verdict.yes else "no"
    if verdict.words:
        evidence += f": {verdict.words}"
    return Judgement(float(verdict.yes), evidence=evidence, model_calls=calls, tokens=tokens)


JUDGED_MEASURES: dict[str, tuple[_Measure, bool]] = {
    "judged_context_recall": (_judging(_context_recall), True),
    "judged_context_relevance": (_judging(_context_relevance), True),
    "judged_sentence_relevance": (_judging(_sentence_relevance), True),
    "groundedness": (_judging(_groundedness), True),
    "answer_relevance": (_judging(_answer_relevance), False),
    "answer_correctness": (_judging(_answer_correctness), False),
}


def _right_answers(case: RetrievalCase) -> list[str]:
    answers = [answer.strip() for answer in case.question.answers if answer.strip()]
    if not answers:
        raise NotJudgedError("the question has no answers")
    return answers


def _answer(case: RetrievalCase) -> str:
    if case.answer is None:
        raise NotJudgedError("the set-up gives no answers; give a query engine")
    return case.answer.strip()


def _unknown(answer: str) -> Judgement:
    said = f"the answer says that it is unknown: {answer:.120}" if answer else NO_ANSWER
    return Judgement(0.0, evidence=said)


def _statements(answer: str) -> list[str]:
    lines = (line.strip() for line in split_sentences(answer))
    return list(dict.fromkeys(line for line in lines if re.search(r"\w", line))) or [answer]


def _fitting(judge: DecidingJudge, text: str) -> str:
    if len(text) > judge.max_characters:
        raise NotJudgedError(
            f"a result has {len(text):,} characters, and the judge takes "
            f"{judge.max_characters:,}; raise max_characters"
        )
    return text


def numbered(texts: Sequence[str]) -> str:
    """Return texts as a numbered list."""
    return "\n".join(f"{n}. {' '.join(text.split())}" for n, text in enumerate(texts, 1))


def _words(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what a judge said of each, with its number."""
    with_words = (f": {verdict.words}" if verdict.words else "" for verdict in verdicts)
    return [
        f"{number} {'yes' if verdict.yes else 'no'}{words}"
        for number, (verdict, words) in enumerate(zip(verdicts, with_words, strict=True), 1)
    ]
