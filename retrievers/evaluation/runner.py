"""Search for all questions of a data set with several retrievers, and judge what they return."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ...nodegraph.document import Document
from ...nodegraph.errors import check_integer
from ...nodegraph.graph import NodeGraph
from ..foreign.coercion import as_retriever
from ..foreign.foreign_retriever import ForeignRetriever
from ..protocols import RetrieverLike, RetrieverProtocol
from ..tracing import ASKS, Span
from .dataset import Dataset, Question
from .gold_places import DocumentTexts, LocatedGold, locate_gold
from .hidden_failures import hidden_failure
from .judges import model_tokens, run_all
from .matching import Matching, RetrievedItem
from .metrics import Metric, MetricLike, get_metric
from .records import Record, RecordFile
from .report import Evaluation

_logger = logging.getLogger("nodekin")

RANKING_METRICS = ("recall@1", "recall@5", "mrr@5", "ndcg@5")
"""What is measured of questions with gold unless told otherwise."""

ANSWER_METRICS = ("answer_in_context@1", "answer_in_context@5")
"""What is measured of questions with answers."""


MIN_RESULT_TOKENS = 20
"""For a metric within a number of tokens as many results are requested as if each had so many."""

MAX_RESULTS = 200
"""How many results are requested for a metric within a number of tokens at most."""


def default_metrics(dataset: Dataset) -> tuple[str, ...]:
    """Return what is measured unless told otherwise: what the questions have something for.

    Example:
        >>> default_metrics(Dataset([Question("1", "Which tea?", answers=("green",))]))
        ('answer_in_context@1', 'answer_in_context@5')
    """
    gold = any(question.gold for question in dataset.questions)
    answers = any(question.answers for question in dataset.questions)
    return (RANKING_METRICS if gold or not answers else ()) + (ANSWER_METRICS if answers else ())


def evaluate(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Dataset,
    metrics: Sequence[MetricLike] | None = None,
    *,
    top_k: int | None = None,
    matching: Matching | None = None,
    documents: NodeGraph | Sequence[Document] | None = None,
    path: str | Path | None = None,
    descriptions: Mapping[str, str] | None = None,
    max_workers: int = 1,
    progress: bool | None = None,
) -> Evaluation:
    """Search for every question with every retriever, and measure what comes back.

    Of a query engine its sources are judged. One that raises on a question is reported, the
    question is not judged for it, and all else goes on. If documents failed in a group that a
    retriever searches (an unreachable model, a raising transform), the retriever gets no figure.

    Args:
        retrievers: By name: what ``as_retriever`` takes, so also those of LangChain and
            LlamaIndex as they are. The first is what the others are compared with.
        dataset: The questions.
        metrics: Names like ``"recall@5"``, see ``METRICS``, or objects. None for what the
            questions have gold or answers for, see ``default_metrics``.
        top_k: How many results to request. None for the highest number in a metric's name, 10
            where none has one. For ``"recall@1000tokens"`` one for each 20 tokens, 200 at most.
        matching: When a result is gold. None for ``Matching()``.
        documents: What is searched, to find gold in it, also where it was moved or edited a
            little, and results of other frameworks. Gold that is in no document is listed and not
            counted. None for the data set's own, if it has any.
        path: A file of JSON lines to which results are written as they come. With the same file
            an evaluation that was interrupted goes on where it was. Other metrics cost nothing.
        descriptions: What a set-up is, by name, where its ``repr`` does not show it. A set-up that
            has changed since the file was written is known by it.
        max_workers: How many questions are searched, and judged by a model, at once. Threads help
            where a model or a server is waited for, and then make the seconds of a question longer.
        progress: True draws a bar in any case, False never, None where a person can see it.

    Raises:
        TypeError: If one is no retriever.
        ValueError: If there is none, a metric is unknown, ``top_k`` is less than a metric's
            number, or the file is of other set-ups.
        KeyboardInterrupt: When interrupted. What was searched is in the file.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers.evaluation import Dataset, GoldPassage, Question
        >>> graph = NodeGraph(progress=False)
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is."])
        >>> gold = GoldPassage("Green tea is not fermented.")
        >>> data = Dataset([Question("1", "Which tea is green?", (gold,))])
        >>> evaluate({"words": Retriever(graph, "ROOT")}, data, ["mrr@2"]).figure("words", "mrr@2")
        Figure(value=1.0, low=0.0, high=1.0, judged=1, not_judged=0)
    """
    if not isinstance(retrievers, Mapping) or not retrievers:
        raise ValueError(
            f"give retrievers by name, as {{'words': retriever}}, not {retrievers!r:.80}"
        )
    measures = _measures(default_metrics(dataset) if metrics is None else metrics)
    count = result_count(measures, top_k)
    check_integer(max_workers, "max_workers", 1)
    matching = matching or Matching()
    sources = {name: as_retriever(item, repr(name)) for name, item in retrievers.items()}
    texts = DocumentTexts(
        dataset.documents if documents is None else documents, matching.document_key
    )
    described = _described(sources, descriptions or {}, matching)
    gold = _located(dataset, texts, matching)
    missing = Counter(item.question_id for item in gold.missing)
    file = RecordFile(path, described, texts.hashes, missing)
    dataset = gold.dataset
    work = [
        partial(search, sources[name], name, question, count, matching, texts)
        for name in sources
        for question in dataset.questions
        if not file.done(name, question, count)
    ]
    run_all(work, "evaluate", max_workers, progress, file.add)
    records = {name: file.of(name, dataset.questions, count) for name in sources}
    evaluation = Evaluation(
        *(dataset, measures, records, matching, gold.missing),
        moved_gold=gold.moved,
        texts=texts,
        described=file.setups,
    )
    if any(measure.asks_model for measure in measures):
        evaluation.judge(max_workers, progress)
    return evaluation


def _measures(metrics: Sequence[MetricLike]) -> list[Metric]:
    measures = [get_metric(metric) for metric in metrics]
    if not measures:
        raise ValueError("there are no metrics; name one at least, like 'recall@5'")
    names = [measure.name for measure in measures]
    if len(set(names)) < len(names):
        raise ValueError(f"metrics have names of their own, not {', '.join(names)}")
    return measures


def result_count(measures: Sequence[Metric], top_k: int | None = None) -> int:
    """Return how many results to request."""
    counts = [measure.k for measure in measures if measure.k is not None]
    budgets = [measure.max_tokens for measure in measures if measure.max_tokens is not None]
    counts += [min(MAX_RESULTS, max(10, budget // MIN_RESULT_TOKENS)) for budget in budgets]
    needed = max(counts, default=None)
    if top_k is None:
        return needed or 10
    if check_integer(top_k, "top_k", 1) < (needed or 0):
        raise ValueError(
            f"top_k={top_k} is less than the {needed} results that a metric counts; leave it out"
        )
    return top_k


def _described(
    sources: Mapping[str, RetrieverProtocol], descriptions: Mapping[str, str], matching: Matching
) -> dict[str, str]:
    """Return what decides the results of each set-up, as a text."""
    kind = f", documents by {matching.document_key}" if matching.document_key else ""
    described = {}
    for name, retriever in sources.items():
        source = retriever.source if isinstance(retriever, ForeignRetriever) else retriever
        described[name] = f"{descriptions.get(name) or repr(source)}{kind}"
    return described


def _located(dataset: Dataset, texts: DocumentTexts, matching: Matching) -> LocatedGold:
    """Return the questions with gold as it is in the documents, and log what is missing."""
    if not texts.documents:
        return LocatedGold(dataset, (), ())
    gold = locate_gold(dataset, texts, as_spans=matching.passages == "place")
    if missing := gold.missing:
        is_single = len(missing) == 1
        _logger.warning(
            "%s of %s %s in no document and can't be retrieved; see missing_gold; the first: %s",
            "1 gold item" if is_single else f"{len(missing)} gold items",
            *(dataset.name, "is" if is_single else "are", missing[0]),
        )
    return gold


def search(
    retriever: RetrieverProtocol,
    name: str,
    question: Question,
    top_k: int,
    matching: Matching,
    texts: DocumentTexts | None = None,
) -> Record:
    """Return what a retriever returns for a question, or what it raises, as a record.

    With the texts of documents results of other frameworks are found in these.
    """
    answer: str | None = None
    items: tuple[RetrievedItem, ...] = ()
    error = ""
    model_spans: list[Span] = []
    token = ASKS.set(model_spans)
    start = time.perf_counter()
    try:
        if isinstance(retriever, ForeignRetriever):
            answer, results = retriever.retrieve_sources(question.text, top_k)
        else:
            results = retriever.retrieve(question.text, top_k=top_k)
        seconds = time.perf_counter() - start
        items = tuple([RetrievedItem.of(r, matching.document_key) for r in results[:top_k]])
        if texts is not None and texts.documents:
            items = tuple(map(texts.place, items))
        error = hidden_failure(retriever, results)
    except Exception as raised:
        seconds = time.perf_counter() - start
        error = f"{type(raised).__name__}: {raised}"
    finally:
        ASKS.reset(token)
    tokens = model_tokens(model_spans) if model_spans else 0
    return Record(
        name,
        question.id,
        question.text,
        top_k,
        items,
        answer,
        seconds,
        len(model_spans),
        error,
        tokens,
    )
