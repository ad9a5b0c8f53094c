"""Measures of a retrieval, each by its published definition.

A metric gives each question a ``Judgement``: a value, or the reason why there is none. What can't
be judged is counted, and is never a zero.

Ranks are those of results. Gold counts at the first result that is it. A result that is no gold,
or is gold that came before, gains nothing. Where results and gold are documents, each there once,
the figures are those of trec_eval (``ir-measures``).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.free_text import is_unknown
from ...nodegraph.splitters.chunking import count_tokens
from ...nodegraph.splitters.sentences import split_sentences
from .dataset import GoldPassage, GoldSpan
from .matching import NotJudgedError, RetrievalCase, check_threshold, covered_tokens, is_similar


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold what a metric says of a question.

    A figure over questions is the sum of numerators divided by the sum of denominators: the mean,
    where every denominator is 1.

    Attributes:
        numerator: The value times the denominator. None where the question is not judged.
        denominator: What the question weighs.
        reason: Why it is not judged.
        evidence: What the value is from, in words.
        model_calls: How many answers of a judge it is made of, also of those that were kept.
        tokens: How many tokens their prompts and answers have together, by ``count_tokens``.
    """

    numerator: float | None
    denominator: float = 1.0
    reason: str = ""
    evidence: str = ""
    model_calls: int = 0
    tokens: int = 0

    @property
    def judged(self) -> bool:
        """Whether there is a value."""
        return self.numerator is not None

    @property
    def value(self) -> float | None:
        """The value, None where there is none."""
        if self.numerator is None or not self.denominator:
            return None
        return self.numerator / self.denominator


@dataclass(frozen=True, slots=True)
class Metric:
    """Hold a measure and how its figures are read.

    Attributes:
        name: What reports call it: ``"recall@5"``.
        measure: Returns the judgement of a case. Raises what makes it impossible.
        k: How many results count, None for all.
        max_tokens: How many tokens the results that count have together, None for any number.
        higher_is_better: Whether more of it is better.
        bounded: Whether values are between 0 and 1.
        asks_model: Whether a model is waited for, so that questions are judged in threads.

    Example:
        >>> from nodekin.retrievers.evaluation import RetrievalCase
        >>> one = Metric("results", lambda case: Judgement(len(case.items)), bounded=False)
    """

    name: str
    measure: Callable[[RetrievalCase], Judgement]
    k: int | None = None
    higher_is_better: bool = True
    bounded: bool = True
    asks_model: bool = False
    max_tokens: int | None = None

    def judge(self, case: RetrievalCase) -> Judgement:
        """Return the judgement of a case, "not judged" where the measure raises or is no number."""
        if self.max_tokens is not None:
            case = within(case, self.max_tokens)
        try:
            judgement = self.measure(case)
        except NotJudgedError as error:
            return Judgement(None, reason=str(error))
        except Exception as error:  # a judge of a user's: its failure is counted
            return Judgement(None, reason=f"{type(error).__name__}: {error}")
        value = judgement.numerator
        if value is None or (math.isfinite(value) and math.isfinite(judgement.denominator)):
            return judgement
        return Judgement(None, reason=f"{self.name} gave {value!r}, which is no number")


MetricLike: TypeAlias = Metric | str
"""A metric, or the name of one: ``"mrr@5"``."""


def recall(case: RetrievalCase, k: int | None) -> Judgement:
    """Share of the gold that is among the first ``k`` results (Manning et al., 2008, 8.3)."""
    ranks = case.first_ranks(k)
    return _by_ranks((len(ranks) - ranks.count(None)) / len(ranks), ranks)


def precision(case: RetrievalCase, k: int | None) -> Judgement:
    """Share of the first ``k`` places with a result that is gold. Places left empty count.

    As trec_eval has it (Manning et al., 2008, 8.4). Without ``k`` of all results.
    """
    right = sum(map(bool, case.matched[:k]))
    positions = len(case.items) if k is None else k
    return Judgement(right / positions if positions else 0.0, evidence=f"{right} of {positions}")


def hit_rate(case: RetrievalCase, k: int | None) -> Judgement:
    """Whether any gold is among the first ``k`` results: trec_eval's success at ``k``."""
    ranks = case.first_ranks(k)
    return _by_ranks(float(any(ranks)), ranks)


def all_gold(case: RetrievalCase, k: int | None) -> Judgement:
    """Whether all gold is among the first ``k``: what a question in several steps needs."""
    ranks = case.first_ranks(k)
    return _by_ranks(float(all(ranks)), ranks)


def reciprocal_rank(case: RetrievalCase, k: int | None) -> Judgement:
    """One divided by the rank of the first gold, 0 where there is none (Voorhees, 1999)."""
    ranks = case.first_ranks(k)
    return _by_ranks(1 / min(filter(None, ranks), default=math.inf), ranks)


def average_precision(case: RetrievalCase, k: int | None) -> Judgement:
    """Mean over all gold of the precision at its rank, 0 for what is missing (Harman, 1993).

    The mean over questions is MAP. Precision at a rank is the share of results so far that are
    gold that had not come before, each result counted once.
    """
    ranks = case.first_ranks(k)
    firsts = sorted(rank for rank in ranks if rank)
    at = {rank: index for index, rank in enumerate(sorted(set(firsts)), 1)}
    total = sum(at[rank] / rank for rank in firsts)
    return _by_ranks(total / len(ranks), ranks)


def ndcg(case: RetrievalCase, k: int | None) -> Judgement:
    """Gain discounted by the logarithm of the rank, divided by that of the ideal ranking.

    Gains are grades, the discount is log2(rank + 1) (Järvelin and Kekäläinen, 2002, in the form
    of trec_eval). A result that is several gold at once gains the sum of their grades, and the
    ideal ranking then has these in one place, too, so that the value is 1 at most.
    """
    ranks = case.first_ranks()
    missing: list[float] = []
    gains: defaultdict[int, float] = defaultdict(float)
    for gold, rank in zip(case.question.gold, ranks, strict=True):
        if rank is None:
            missing.append(gold.grade)
        else:
            gains[rank] += gold.grade
    gained = sum(gain / math.log2(rank + 1) for rank, gain in gains.items() if rank <= (k or rank))
    ideal = sorted([*gains.values(), *missing], reverse=True)[:k]
    best = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, 1))
    return _by_ranks(gained / best, ranks)


def context_recall(
    case: RetrievalCase, k: int | None, *, threshold: float = 0.5, binary: bool = False
) -> Judgement:
    """Share of the gold passages that a result resembles, by edit distance.

    The non-model context recall of Ragas (``NonLLMContextRecall``), whose threshold is 0.5. With
    ``binary``, as in LazyLLM, whether any is resembled.
    """
    passages = _passages(case)
    texts = [item.text for item in case.items[:k]]
    right = [any(is_similar(text, entry, threshold) for text in texts) for entry in passages]
    value = float(any(right)) if binary else sum(right) / len(right)
    return Judgement(value, evidence=f"{sum(right)} of {len(right)} passages")


def context_relevance(case: RetrievalCase, k: int | None, *, of: str = "retrieved") -> Judgement:
    """Share of sentences that are both in the gold passages and in the results.

    LazyLLM's tutorial prints the formula over the sentences of the gold (``of="reference"``, a
    recall), and computes its example over those of the results (``of="retrieved"``, a precision).
    Sentences are compared without white space at their ends. Each counts once.
    """
    gold = _sentences(_passages(case))
    retrieved = _sentences(item.text for item in case.items[:k])
    common = len(gold & retrieved)
    total = len(retrieved if of == "retrieved" else gold)
    return Judgement(common / total if total else 0.0, evidence=f"{common} of {total} sentences")


def answer_in_context(case: RetrievalCase, k: int | None) -> Judgement:
    """Whether one of the answers is in the text of a result (DPR's accuracy: Karpukhin, 2020).

    Letter case, width and white space apart, and as whole words where words have spaces.
    """
    rank, answer = case.first_answer
    if rank is None or (k is not None and rank > k):
        return Judgement(0.0, evidence="in no result")
    return Judgement(1.0, evidence=f"{answer!r} at {rank}")


def abstention(case: RetrievalCase, k: int | None) -> Judgement:
    """Whether a question that the documents don't answer is answered by saying so, or not at all.

    The accuracy on unanswerable questions (SQuAD 2.0: Rajpurkar et al., 2018), by the reader of
    answers that strategies use.
    """
    if case.question.answerable:
        raise NotJudgedError("the question can be answered")
    if case.answer is None:
        raise NotJudgedError("the set-up gives no answers; give a query engine")
    answer = case.answer.strip()
    return Judgement(float(says_unknown(answer)), evidence=f"{answer:.120}" or NO_ANSWER)


def says_unknown(answer: str) -> bool:
    """Return whether an answer says that it is unknown, or is none.

    What a query engine says instead of an answer is none, see ``Answer.answered``.
    """
    return not answer or is_unknown(answer)


NO_ANSWER = "the set-up gave no answer"
"""What is the evidence where there is no answer to show."""


def within(case: RetrievalCase, max_tokens: int) -> RetrievalCase:
    """Return a case with the first results that have so many tokens together at most."""
    count = total = 0
    for item in case.items:
        total += item.tokens
        if total > max_tokens:
            break
        count += 1
    return replace(case, items=case.items[:count])


def tokens(case: RetrievalCase, k: int | None) -> Judgement:
    """Tokens of the first ``k`` results, by ``count_tokens``: what they cost in a prompt."""
    if not (case.question.gold or case.question.answers):
        raise NotJudgedError("the question has no gold")
    case.check_sources()
    total = sum(item.tokens for item in case.items[:k])
    return Judgement(total, evidence=f"{total} tokens")


def model_cost(case: RetrievalCase, k: int | None, unit: Literal["calls", "tokens"]) -> Judgement:
    """Calls of language models for a question, or the tokens of their prompts and answers."""
    if not (case.question.gold or case.question.answers):
        raise NotJudgedError("the question has no gold")
    return Judgement(case.model_calls if unit == "calls" else case.model_tokens)


def tokens_to_first_hit(case: RetrievalCase, k: int | None) -> Judgement:
    """Tokens that are read until the first gold, by ``count_tokens``: less is better.

    Over all questions: all tokens that are read, divided by the questions with a hit. Of a question
    without one all results are read for nothing (as the expected running time of Hansen et al.,
    2009, counts runs that fail). Of a question without gold the first answer is the hit.
    """
    ranks_of_gold = case.first_ranks() if case.question.gold else [case.first_answer[0]]
    ranks = [rank for rank in ranks_of_gold if rank is not None and rank <= (k or rank)]
    read = sum(item.tokens for item in case.items[: min(ranks) if ranks else k])
    return Judgement(read, float(bool(ranks)), evidence=f"{read} tokens, {len(ranks)} gold")


def tokens_per_gold(case: RetrievalCase, k: int | None) -> Judgement:
    """Tokens of the first ``k`` results for each gold among them, by ``count_tokens``.

    Over all questions: all tokens divided by all gold that was retrieved, so that a question
    without a hit costs what it costs.
    """
    right = sum(rank is not None for rank in case.first_ranks(k))
    tokens = sum(item.tokens for item in case.items[:k])
    return Judgement(tokens, right, evidence=f"{tokens} tokens, {right} gold")


def token_recall(case: RetrievalCase, k: int | None) -> Judgement:
    """Share of the tokens of gold spans that the results cover (Smith and Troynikov, 2024)."""
    spans = _spans(case)
    covered = sum(covered_tokens(span, case.items[:k]) for span in spans)
    total = sum(count_tokens(span.text) for span in spans)
    return _share(covered, total)


def token_precision(case: RetrievalCase, k: int | None) -> Judgement:
    """Share of the tokens of results that are in gold spans (Smith and Troynikov, 2024)."""
    spans = _spans(case)
    covered = sum(covered_tokens(span, case.items[:k]) for span in spans)
    total = sum(item.tokens for item in case.items[:k])
    return _share(min(covered, total), total)


_LESS = {"higher_is_better": False, "bounded": False}

_MEASURES: dict[str, tuple[Callable[[RetrievalCase, int | None], Judgement], dict[str, Any]]] = {
    "abstention": (abstention, {}),
    "all_gold": (all_gold, {}),
    "answer_in_context": (answer_in_context, {}),
    "context_recall": (context_recall, {}),
    "context_recall_binary": (partial(context_recall, binary=True), {}),
    "context_relevance": (context_relevance, {}),
    "context_relevance_of_reference": (partial(context_relevance, of="reference"), {}),
    "hit_rate": (hit_rate, {}),
    "map": (average_precision, {}),
    "model_calls": (partial(model_cost, unit="calls"), _LESS),
    "model_tokens": (partial(model_cost, unit="tokens"), _LESS),
    "mrr": (reciprocal_rank, {}),
    "ndcg": (ndcg, {}),
    "precision": (precision, {}),
    "recall": (recall, {}),
    "token_precision": (token_precision, {}),
    "token_recall": (token_recall, {}),
    "tokens": (tokens, _LESS),
    "tokens_per_gold": (tokens_per_gold, _LESS),
    "tokens_to_first_hit": (tokens_to_first_hit, _LESS),
}

JUDGED_METRICS = (
    *("judged_context_recall", "judged_context_relevance"),
    *("groundedness", "answer_relevance"),
)
"""The names of the metrics of a ``Judge``. The last two are of answers of query engines."""

METRICS = tuple(_MEASURES)
"""The names of all metrics. ``"@5"`` behind one lets the first five results count,
``"@500tokens"`` the first that have 500 tokens together."""


def get_metric(name: MetricLike, *, threshold: float = 0.5) -> Metric:
    """Return a metric by its name, ``"recall@5"``. A ``Metric`` as it is.

    Args:
        name: One of ``METRICS``, with ``@`` and how many results count, or how many tokens they
            have together (``"recall@1000tokens"``), or without for all.
        threshold: The least similarity of a passage, exclusive, for ``context_recall``.

    Raises:
        ValueError: If there is none of this name, or the number is below 1.
        TypeError: If it is neither a name nor a metric.

    Example:
        >>> get_metric("ndcg@10").k
        10
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a metric is a name like 'recall@5' or a Metric, not {name!r:.80}")
    base = name.partition("@")[0]
    if base in JUDGED_METRICS:
        raise ValueError(
            f"{base!r} is a metric by a judge: give Judge(llm).metric({name!r}) in its place"
        )
    if base not in _MEASURES:
        raise ValueError(f"there is no metric {base!r}; there are {nearest_names(base, METRICS)}")
    limit = name.removesuffix("tokens") if "@" in name else name
    base, k = split_name(limit)
    measure, options = _MEASURES[base]
    if limit != name:
        options, k = {**options, "max_tokens": k}, None
    keywords: dict[str, Any] = {"k": k}
    if base.startswith("context_recall"):
        keywords["threshold"] = check_threshold(threshold)
    return Metric(name, partial(measure, **keywords), k, **options)


def split_name(name: str, *, counts_results: bool = True) -> tuple[str, int | None]:
    """Return what a metric measures and how many results count: ``"mrr@5"`` is "mrr" and 5.

    Raises:
        ValueError: If the number is below 1, or the metric does not count results.
    """
    base, at, index = name.partition("@")
    if at and not (counts_results and index.isascii() and index.isdigit() and int(index)):
        ways = f"write one, as in '{base}@5'" if counts_results else f"it is {base!r} without"
        raise ValueError(f"{name!r} lets no number of results count; {ways}")
    return base, int(index) if at else None


def _share(part: int, total: int) -> Judgement:
    return Judgement(part / total if total else 0.0, evidence=f"{part} of {total} tokens")


def _by_ranks(value: float, ranks: tuple[int | None, ...]) -> Judgement:
    positions = ", ".join("-" if rank is None else str(rank) for rank in ranks)
    return Judgement(value, evidence=f"gold at {positions}")


def _passages(case: RetrievalCase) -> list[str]:
    """Return the texts of the gold."""
    case.check_sources()
    gold = case.question.gold
    texts = [e.text for e in gold if isinstance(e, GoldPassage | GoldSpan) and e.text]
    if not texts or len(texts) < len(gold):
        raise NotJudgedError("the question has gold without text" if gold else "it has no gold")
    return texts


def _spans(case: RetrievalCase) -> list[GoldSpan]:
    case.check_sources()
    gold = case.question.gold
    spans = [entry for entry in gold if isinstance(entry, GoldSpan)]
    if not spans or len(spans) < len(gold):
        raise NotJudgedError("the question has gold that is no span" if gold else "it has no gold")
    return spans


def _sentences(texts: Iterable[str]) -> set[str]:
    lines = (line.strip() for text in texts for line in split_sentences(text))
    return {line for line in lines if line}
