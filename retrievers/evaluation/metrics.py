"""Metrics for retrieval, which follow their published definitions.

A metric assigns a value to each question, or states why the question cannot be judged. Questions
that cannot be judged are counted separately and never treated as 0.

A relevant item counts at the first result that matches it; further matching results gain nothing.
If all results and relevant items are documents without duplicates, the values are equal to the
values of trec_eval (``ir-measures``).
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from rapidfuzz.distance import Levenshtein

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.output.answer_text import normalize
from ...nodegraph.models.output.free_text import is_unknown
from ...nodegraph.splitters.chunking import UNSPACED, count_tokens
from ...nodegraph.splitters.sentences import split_sentences
from ...nodegraph.text_forms import composed
from ..validation import choice
from .dataset import Gold, GoldDocument, GoldPassage, GoldSpan, Question

PassageMatch = Literal["edit", "contains", "place"]
"""The method that compares a result with a relevant passage."""


class NotJudgedError(ValueError):
    """An error that is raised if a metric cannot judge a question.

    Its message states the reason.
    """


@dataclass(frozen=True, slots=True)
class RetrievedItem:
    """A search result as plain values, which can be written to a file.

    Attributes:
        id: The id of the node.
        text: The text of the result.
        score: The score. A higher score is better.
        document_id: The id of the document.
        start: The start of the text in the document, in characters, or None if it is unknown.
        end: The end of the text in the document (exclusive), or None if it is unknown.
        explanation: An explanation of how the result was found. See ``ScoredNode.explain``.
    """

    id: str
    text: str
    score: float
    document_id: str = ""
    start: int | None = None
    end: int | None = None
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Matching:
    """A rule that decides whether a result matches a relevant item.

    Every result from a relevant document matches. For a relevant span, every result matches that
    overlaps the span by at least one token. For a relevant passage, the rule depends on
    ``passages``:

    - ``"edit"``: A result matches if the similarity is above 0.5. The similarity is 1 - edit
      distance / length of the longer text, in characters. Ragas and LazyLLM use this definition to
      compute context recall without a model. It requires results of about the same size as the
      passages.
    - ``"contains"``: A result matches if one text contains the other, ignoring white space.
    - ``"place"``: A result matches if it overlaps the passage in its document by at least one
      token. This rule works with all splitters, but it requires the documents.

    Args:
        passages: The method that compares results with relevant passages.
        document_key: The metadata field that contains the id of a result's document, such as
            ``"source"``. If None, the ``document_id`` of the node is used.

    Raises:
        ValueError: If the method is unknown.

    Example:
        >>> from nodekin.retrievers.evaluation.metrics import RetrievedItem
        >>> item = RetrievedItem("n1", "Tea. Green tea is not fermented. Rivers run.", 1.0)
        >>> gold = GoldPassage("Green tea is not fermented.")
        >>> Matching("contains").matches(gold, item)
        True
    """

    passages: PassageMatch = "edit"
    document_key: str | None = None

    def __post_init__(self) -> None:
        choice(self.passages, "passages", get_args(PassageMatch))

    def matches(self, gold: Gold, item: RetrievedItem) -> bool:
        """Return whether a result matches a relevant item.

        Raises:
            NotJudgedError: If the result has no document id or position, but the comparison
                requires it.
        """
        if isinstance(gold, GoldPassage):
            if self.passages == "edit":
                return is_similar(item.text, gold.text)
            text = " ".join(item.text.split())
            passage = " ".join(gold.text.split())
            return text != "" and (text in passage or passage in text)
        if not item.document_id:
            raise NotJudgedError(f"result {item.id!r} has no document id; set document_key")
        if composed(item.document_id) != composed(gold.document_id):
            return False
        return isinstance(gold, GoldDocument) or _overlaps(gold, item)


def is_similar(entry: str, other: str) -> bool:
    """Return whether the edit similarity of two texts is above 0.5.

    The edit similarity is 1 - edit distance (Levenshtein, 1966) / length of the longer text.

    Example:
        >>> is_similar("kitten", "sitting"), is_similar("kitten", "cat")
        (True, False)
    """
    return Levenshtein.normalized_similarity(entry, other, score_cutoff=0.5) > 0.5


def _overlaps(gold: GoldSpan, item: RetrievedItem) -> bool:
    """Return whether a result overlaps a span of its document by at least one token."""
    if item.start is None or item.end is None:
        raise NotJudgedError(f"result {item.id!r} has no position in document {item.document_id!r}")
    start = max(gold.start, item.start)
    end = min(gold.end, item.end)
    if start >= end:
        return False
    return not gold.text or count_tokens(gold.text[start - gold.start : end - gold.start]) > 0


@dataclass(frozen=True)
class RetrievalCase:
    """A question with its results, which is the input of a metric.

    Attributes:
        question: The question.
        items: The results, best first.
        matching: The rule that decides whether a result is relevant.
        answer: The answer of a query engine, or None for a retriever.
        answer_only: Whether the system returns answers without sources, such as a chain that
            returns a text. The results are then unknown.
        id_problem: The reason why the document ids of the results cannot be compared with the ids
            of the relevant items. It is empty if they can be compared.

    Example:
        >>> from nodekin.retrievers.evaluation.metrics import RetrievedItem, get_metric
        >>> question = Question("1", "Which tea?", (GoldDocument("tea"),))
        >>> items = [RetrievedItem(i, f"About {i}.", 1.0, document_id=i) for i in ("nile", "tea")]
        >>> case = RetrievalCase(question, tuple(items))
        >>> case.first_ranks(), get_metric("mrr").judge(case).value
        ([2], 0.5)
    """

    question: Question
    items: tuple[RetrievedItem, ...]
    matching: Matching = Matching()
    answer: str | None = None
    answer_only: bool = False
    id_problem: str = ""

    def check_sources(self) -> None:
        """Raise a NotJudgedError if the results of the system are unknown."""
        if self.answer_only:
            raise NotJudgedError(
                "the system returned an answer without sources; return both: "
                "{'answer': ..., 'context': documents}"
            )

    @cached_property
    def matched(self) -> list[frozenset[int]]:
        """For each result, the indexes of the items in ``question.gold`` that it matches.

        Raises:
            NotJudgedError: If the question has no relevant items, or a result cannot be compared.
        """
        if not self.question.gold:
            raise NotJudgedError("the question has no gold")
        self.check_sources()
        if self.id_problem and not all(isinstance(e, GoldPassage) for e in self.question.gold):
            raise NotJudgedError(self.id_problem)
        matched = []
        for item in self.items:
            matches = [self.matching.matches(gold, item) for gold in self.question.gold]
            matched.append(frozenset([at for at, is_match in enumerate(matches) if is_match]))
        return matched

    def first_ranks(self, k: int | None = None) -> list[int | None]:
        """Return the rank at which each relevant item is first found among the first ``k`` results.

        The rank is None if no result matches the item.
        """
        ranks: dict[int, int] = {}
        for rank, found in enumerate(self.matched[:k], 1):
            for gold in found:
                ranks.setdefault(gold, rank)
        return [ranks.get(gold) for gold in range(len(self.question.gold))]


@dataclass(frozen=True, slots=True)
class Judgment:
    """The value of a metric for one question, as returned by ``Metric.judge``.

    Attributes:
        value: The value, or None if the question was not judged.
        reason: The reason why the question was not judged.
        evidence: A short explanation of the value.

    Example:
        >>> from nodekin.retrievers.evaluation.metrics import get_metric
        >>> case = RetrievalCase(Question("1", "Which tea?"), ())
        >>> get_metric("recall@5").judge(case)
        Judgment(value=None, reason='the question has no gold', evidence='')
    """

    value: float | None
    reason: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric for retrieval or answers, identified by its name.

    Attributes:
        name: The name in reports, such as ``"recall@5"``.
        measure: A function that judges a case. If it raises an exception, the question is not
            judged.
        k: The number of results that are considered. If None, all results are considered.
        max_tokens: The total number of tokens of the results that are considered. If None, the
            number of tokens is not limited.
        higher_is_better: Whether a higher value is better. It is False for costs.
        bounded: Whether all values are between 0 and 1.
        asks_model: Whether the function calls a language model. Questions are then judged in
            several threads.

    Example:
        >>> count = Metric("results", lambda case: Judgment(len(case.items)), bounded=False)
        >>> count.judge(RetrievalCase(Question("1", "Which tea?"), ())).value
        0
    """

    name: str
    measure: Callable[[RetrievalCase], Judgment]
    k: int | None = None
    higher_is_better: bool = True
    bounded: bool = True
    asks_model: bool = False
    max_tokens: int | None = None

    def judge(self, case: RetrievalCase) -> Judgment:
        """Return the judgment of a case.

        If the function raises an error, or if its value is not finite, the case is not judged.
        """
        if self.max_tokens is not None:
            used = itertools.accumulate(count_tokens(item.text) for item in case.items)
            count = sum(total <= self.max_tokens for total in used)
            case = replace(case, items=case.items[:count])
        try:
            judgment = self.measure(case)
        except NotJudgedError as error:
            return Judgment(None, str(error))
        except Exception as error:  # a user-defined function may raise any error
            return Judgment(None, f"{type(error).__name__}: {error}")
        if judgment.value is not None and not math.isfinite(judgment.value):
            return Judgment(None, f"{self.name} must be a finite number, got {judgment.value!r}")
        return judgment


Ranks = Sequence[int | None]
"""The rank at which each relevant item is first found, or None if no result matches it."""


def _average_precision(ranks: Ranks) -> float:
    """Return the mean precision at the ranks of all relevant items. Missing items count as 0.

    The precision at a rank is the share of results up to this rank that match a new item.
    """
    firsts = sorted(rank for rank in ranks if rank)
    order = sorted(set(firsts))
    return sum((order.index(rank) + 1) / rank for rank in firsts) / len(ranks)


_OF_RANKS: dict[str, Callable[[Ranks], float]] = {
    "recall": lambda ranks: (len(ranks) - ranks.count(None)) / len(ranks),
    "hit_rate": lambda ranks: float(any(ranks)),
    "all_gold": lambda ranks: float(all(ranks)),
    "mrr": lambda ranks: 1 / min([rank for rank in ranks if rank], default=math.inf),
    "map": _average_precision,
}
"""The metrics that are computed from the first ranks of relevant items.

Their definitions are from Manning et al. (2008, 8.3) for recall, trec_eval's success for the hit
rate, Voorhees (1999) for MRR and Harman (1993) for MAP. ``all_gold`` is intended for questions that
require several passages.
"""


def _precision(case: RetrievalCase, k: int | None) -> Judgment:
    """Return the share of relevant results among the first ``k`` (Manning et al., 2008, 8.4).

    As in trec_eval, missing results count as not relevant.
    """
    count = len(case.items) if k is None else k
    return _share(sum([len(found) > 0 for found in case.matched[:k]]), count)


def _ndcg(case: RetrievalCase, k: int | None) -> Judgment:
    """Return the discounted cumulative gain, divided by the gain of the ideal ranking.

    The gains are the grades, and the discount is log2(rank + 1) (Järvelin and Kekäläinen, 2002, as
    implemented in trec_eval). A result that matches several relevant items gains the sum of their
    grades. This also applies to the ideal ranking, so the value is at most 1.
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


def _context_recall(case: RetrievalCase, k: int | None) -> Judgment:
    """Return the share of relevant passages for which a similar result exists, by edit distance.

    This metric corresponds to ``NonLLMContextRecall`` of Ragas.
    """
    passages = _passages(case)
    texts = [item.text for item in case.items[:k]]
    right = 0
    for passage in passages:
        right += any(is_similar(text, passage) for text in texts)
    return _share(right, len(passages), " passages")


def _context_relevance(case: RetrievalCase, k: int | None) -> Judgment:
    """Return the share of sentences in the results that also occur in the relevant passages.

    The definition follows the tutorial of LazyLLM. Repeated sentences are counted once.
    """
    gold = _sentences(_passages(case))
    retrieved = _sentences(item.text for item in case.items[:k])
    return _share(len(gold & retrieved), len(retrieved), " sentences")


def _answer_in_context(case: RetrievalCase, k: int | None) -> Judgment:
    """Return 1 if a result contains a correct answer, otherwise 0 (Karpukhin et al., 2020).

    Differences in case, width and white space are ignored. In languages that separate words by
    spaces, only whole words match.
    """
    answers = [(normalize(entry), entry) for entry in case.question.answers if entry.strip()]
    if not answers:
        raise NotJudgedError("the question has no answers")
    case.check_sources()
    for rank, item in enumerate(case.items[:k], 1):
        text = normalize(item.text)
        for normalized, answer in answers:
            if _has_words(text, normalized):
                return Judgment(1.0, evidence=f"{answer!r} at {rank}")
    return Judgment(0.0, evidence="in no result")


def _abstention(case: RetrievalCase, k: int | None) -> Judgment:
    """Return 1 if an unanswerable question got no answer, otherwise 0 (Rajpurkar et al., 2018)."""
    if case.question.answerable:
        raise NotJudgedError("the question is answerable")
    answer = answer_of(case)
    return Judgment(float(says_unknown(answer)), evidence=f"{answer:.120}" or "no answer")


def _tokens(case: RetrievalCase, k: int | None) -> Judgment:
    """Return the number of tokens of the first ``k`` results. See ``count_tokens``."""
    if not (case.question.gold or case.question.answers):
        raise NotJudgedError("the question has no gold")
    case.check_sources()
    return Judgment(sum(count_tokens(item.text) for item in case.items[:k]))


_MEASURES: dict[str, Callable[[RetrievalCase, int | None], Judgment]] = {
    "abstention": _abstention,
    "answer_in_context": _answer_in_context,
    "context_recall": _context_recall,
    "context_relevance": _context_relevance,
    "ndcg": _ndcg,
    "precision": _precision,
    "tokens": _tokens,
}

METRICS = tuple(sorted([*_OF_RANKS, *_MEASURES]))
"""The names of the metrics.

With a suffix such as ``"@5"``, only the first five results are considered. With ``"@500tokens"``,
as many results are considered as have at most 500 tokens in total.
"""

JUDGED_METRICS = (
    "judged_context_recall",
    "judged_context_relevance",
    "groundedness",
    "answer_relevance",
)
"""The names of the metrics that require a ``Judge``. The last two also require a query engine."""


def get_metric(name: Metric | str) -> Metric:
    """Return the metric with the given name, such as ``"recall@5"`` or ``"recall@1000tokens"``.

    Raises:
        ValueError: If the name is unknown or the number is below 1.
        TypeError: If the argument is neither a name nor a metric.

    Example:
        >>> get_metric("ndcg@10").k
        10
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a metric must be a name like 'recall@5' or a Metric, got {name!r:.80}")
    base, k, max_tokens = split_name(name)
    if base in JUDGED_METRICS:
        raise ValueError(f"{name!r} needs a judge: Judge(llm).metric({name!r})")
    if base not in METRICS:
        raise ValueError(f"a metric must be {nearest_names(base, METRICS)}, got {base!r}")

    def measure(case: RetrievalCase) -> Judgment:
        if base in _MEASURES:
            return _MEASURES[base](case, k)
        ranks = case.first_ranks(k)
        return _by_ranks(_OF_RANKS[base](ranks), ranks)

    is_share = base != "tokens"
    return Metric(name, measure, k, is_share, is_share, max_tokens=max_tokens)


def split_name(name: str) -> tuple[str, int | None, int | None]:
    """Split the name of a metric into its base name, a number of results and a number of tokens.

    Raises:
        ValueError: If the number is below 1.

    Example:
        >>> split_name("mrr"), split_name("mrr@5"), split_name("recall@500tokens")
        (('mrr', None, None), ('mrr', 5, None), ('recall', None, 500))
    """
    base, at, limit = name.partition("@")
    if not at:
        return base, None, None
    number = limit.removesuffix("tokens")
    if not re.fullmatch("0*[1-9][0-9]*", number):
        raise ValueError(f"{name!r} must have a number of results, as in '{base}@5'")
    count = int(number)
    if number == limit:
        return base, count, None
    return base, None, count


def says_unknown(answer: str) -> bool:
    """Return whether an answer is empty or states that the answer is unknown."""
    return not answer or is_unknown(answer)


def answer_of(case: RetrievalCase) -> str:
    """Return the answer of a query engine.

    Raises:
        NotJudgedError: If the system did not return an answer.
    """
    if case.answer is None:
        raise NotJudgedError("the system gives no answers; give a query engine")
    return case.answer.strip()


def _share(part: int, total: int, unit: str = "") -> Judgment:
    return Judgment(part / total if total else 0.0, evidence=f"{part} of {total}{unit}")


def _by_ranks(value: float, ranks: Ranks) -> Judgment:
    positions = ", ".join("-" if rank is None else str(rank) for rank in ranks)
    return Judgment(value, evidence=f"gold at {positions}")


def _passages(case: RetrievalCase) -> list[str]:
    """Return the texts of the relevant items of a question."""
    case.check_sources()
    gold = case.question.gold
    if not gold:
        raise NotJudgedError("it has no gold")
    texts = [e.text for e in gold if isinstance(e, GoldPassage | GoldSpan) and e.text]
    if len(texts) < len(gold):
        raise NotJudgedError("the question has gold without text")
    return texts


def _sentences(texts: Iterable[str]) -> set[str]:
    lines: set[str] = set()
    for text in texts:
        lines.update(line.strip() for line in split_sentences(text))
    return lines - {""}


_SPACED = rf"[^\W{UNSPACED}]"  # a letter in a script that separates words by spaces


def _has_words(text: str, answer: str) -> bool:
    """Return whether a text contains an answer.

    Words that are separated by spaces must match as whole words.
    """
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, answer) else ""
    behind = rf"(?!{_SPACED})" if re.match(_SPACED, answer[-1]) else ""
    return re.search(f"{before}{re.escape(answer)}{behind}", text) is not None
