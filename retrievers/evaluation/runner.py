"""Search the questions of a data set with several systems, and judge the results."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ...nodegraph.builder import Failure
from ...nodegraph.document import Document
from ...nodegraph.errors import check_integer
from ...nodegraph.graph import NodeGraph
from ..base_retriever import with_all_inner
from ..foreign.coercion import as_retriever
from ..foreign.foreign_retriever import ForeignRetriever
from ..group_failures import describe_failures, group_failures
from ..protocols import RetrieverLike, RetrieverProtocol
from ..results import ScoredNode
from ..tracing import observe
from .dataset import Dataset, Question
from .gold_places import DocumentTexts, LocatedGold, locate_gold
from .matching import Matching, RetrievedItem
from .metrics import Metric, MetricLike, get_metric
from .records import Record, RecordFile
from .report import Evaluation
from .running import ModelCalls, model_tokens, run_all

_logger = logging.getLogger("nodekin")

RANKING_METRICS = ("recall@1", "recall@5", "mrr@5", "ndcg@5")
"""The default metrics of questions with gold."""

ANSWER_METRICS = ("answer_in_context@1", "answer_in_context@5")
"""The default metrics of questions with answers."""

_RESULT_TOKENS = 20  # the assumed size of a result for metrics with a token budget

_MAX_RESULTS = 200  # for metrics with a token budget


_GROUP_ATTRIBUTES = ("group", "target", "groups", "via")

_WORDS_ALONE = "words alone were compared"  # the note of a DefaultRetriever


def default_metrics(dataset: Dataset) -> tuple[str, ...]:
    """Return the default metrics: of gold, of answers, or of both.

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
    num_workers: int = 1,
    progress: bool | None = None,
) -> Evaluation:
    """Search each question with each retriever, and measure the results.

    The sources of query engines are judged. If a retriever raises on a question, the question is
    reported and not judged. If documents failed in a group that a retriever searches (an
    unreachable model, a raising transform), the retriever has no figure.

    Args:
        retrievers: Retrievers by name, including LangChain's and LlamaIndex's, see
            ``as_retriever``. Each is compared with the first.
        dataset: The questions.
        metrics: Metrics, or names such as ``"recall@5"``, see ``METRICS``. Defaults to
            ``default_metrics``.
        top_k: Number of requested results. Defaults to the largest number in a metric's name, else
            10. For ``"recall@1000tokens"`` one per 20 tokens, 200 at most.
        matching: Decides whether a result is gold. Defaults to ``Matching()``.
        documents: The documents, to find moved and edited gold, and results of other frameworks.
            Gold that is in no document is listed and not counted. Defaults to the data set's own.
        path: A file of JSON lines for the results. An interrupted evaluation resumes from the
            file, and other metrics need no search.
        descriptions: Descriptions of systems by name, if their ``repr`` is not sufficient. A file
            with results of another description is rejected.
        num_workers: Number of concurrent questions, in threads. Useful if systems wait for models
            or servers. Increases the seconds of a question.
        progress: Whether to draw a bar. None: only in a terminal.

    Raises:
        TypeError: If a retriever is not supported.
        ValueError: If retrievers are missing, a metric is unknown, ``top_k`` is less than the
            number of a metric, or the file is of other systems.

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
            f"retrievers must be a mapping, as {{'words': retriever}}, got {retrievers!r:.80}"
        )
    names = default_metrics(dataset) if metrics is None else metrics
    measures = [get_metric(metric) for metric in names]
    if not measures or len({measure.name for measure in measures}) < len(measures):
        raise ValueError(f"metrics must be different, at least one, got {names!r}")
    count = result_count(measures, top_k)
    check_integer(num_workers, "num_workers", 1)
    matching = matching or Matching()
    sources = {name: as_retriever(item, repr(name)) for name, item in retrievers.items()}
    documents = dataset.documents if documents is None else documents
    texts = DocumentTexts(documents, matching.document_key)
    gold = _located(dataset, texts, matching)
    missing = Counter(item.question_id for item in gold.missing)
    described = {
        name: (descriptions or {}).get(name) or repr(getattr(source, "source", source))
        for name, source in sources.items()
    }
    if key := matching.document_key:
        described = {name: f"{text}, documents by {key}" for name, text in described.items()}
    file = RecordFile(path, described, texts.hashes, missing)
    questions = gold.dataset.questions
    work = [
        partial(search, source, name, question, count, matching, texts)
        for name, source in sources.items()
        for question in questions
        if not file.is_done(name, question, count)
    ]
    run_all(work, "evaluate", num_workers, progress, file.add)
    records = {name: file.of(name, questions, count) for name in sources}
    return Evaluation(
        *(gold, measures, records, matching, texts, file.setups),
        num_workers=num_workers,
        progress=progress,
    )


def result_count(measures: Sequence[Metric], top_k: int | None = None) -> int:
    """Return the number of results to request."""
    counts = [measure.k for measure in measures if measure.k is not None]
    budgets = [measure.max_tokens for measure in measures if measure.max_tokens is not None]
    counts += [min(_MAX_RESULTS, max(10, budget // _RESULT_TOKENS)) for budget in budgets]
    needed = max(counts, default=None)
    if top_k is None:
        return needed or 10
    if check_integer(top_k, "top_k", 1) < (needed or 0):
        raise ValueError(f"top_k must be at least {needed}, the number of a metric, got {top_k}")
    return top_k


def _located(dataset: Dataset, texts: DocumentTexts, matching: Matching) -> LocatedGold:
    """Return the questions with the gold of the current documents. Log missing gold."""
    if not texts.documents:
        return LocatedGold(dataset)
    gold = locate_gold(dataset, texts, as_spans=matching.passages == "place")
    if gold.missing:
        _logger.warning(
            "gold of %s that is in no document and does not count: %d; the first: %s",
            *(dataset.name, len(gold.missing), gold.missing[0]),
        )
    return gold


def search(
    retriever: RetrieverProtocol,
    name: str,
    question: Question,
    top_k: int,
    matching: Matching,
    texts: DocumentTexts,
) -> Record:
    """Return the results of a retriever for a question, or its error, as a record."""
    answer: str | None = None
    items: tuple[RetrievedItem, ...] = ()
    error = ""
    calls = ModelCalls()
    with observe(calls):
        start = time.perf_counter()
        try:
            if isinstance(retriever, ForeignRetriever):
                answer, results = retriever.retrieve_sources(question.text, top_k)
            else:
                results = retriever.retrieve(question.text, top_k=top_k)
            seconds = time.perf_counter() - start
            items = tuple([RetrievedItem.of(r, matching.document_key) for r in results[:top_k]])
            if texts.documents:
                items = tuple(map(texts.place, items))
            error = hidden_failure(retriever, results)
        except Exception as raised:
            seconds = time.perf_counter() - start
            error = f"{type(raised).__name__}: {raised}"
    return Record(
        *(name, question.id, question.text, top_k, items, answer, seconds, len(calls), error),
        model_tokens=model_tokens(calls),
    )


def hidden_failure(retriever: object, results: Sequence[ScoredNode]) -> str:
    """Return the hidden failures of a retriever as a sentence. Empty if nothing failed.

    Args:
        retriever: The retriever that was used.
        results: The results of a query.
    """
    failures = [f for graph in graphs_of(retriever) for f in _failures(graph, retriever)]
    if failures:
        return describe_failures(failures)
    notes = (v.note for r in results for match in r.evidence for v in match.variants)
    return next((note for note in notes if note and note.startswith(_WORDS_ALONE)), "")


def graphs_of(retriever: object) -> Iterator[NodeGraph]:
    """Yield the graphs of a retriever and of its inner retrievers."""
    graphs: dict[int, NodeGraph] = {}
    for item in _parts(retriever):
        for graph in (*getattr(item, "graphs", ()), getattr(item, "graph", None), item):
            if isinstance(graph, NodeGraph):
                graphs[id(graph)] = graph
    yield from graphs.values()


def _parts(retriever: object) -> Iterator[object]:
    """Yield a retriever and its inner retrievers, or the retrievers of a query engine."""
    if isinstance(retriever, ForeignRetriever):
        retriever = getattr(retriever.source, "retriever", retriever.source)
    return with_all_inner(retriever)


def _failures(graph: NodeGraph, retriever: object) -> list[Failure]:
    """Return the failures of the groups that a retriever searches, and of their ancestors."""
    failures = group_failures(graph)
    if not failures:
        return []
    summaries = graph.groups
    searched: set[str] = set()
    for item in _parts(retriever):
        values = [getattr(item, name, None) or () for name in _GROUP_ATTRIBUTES]
        names = [n for value in values for n in ([value] if isinstance(value, str) else value)]
        for name in filter(summaries.__contains__, names):
            searched.update(group.name for group in graph.reader.lineage(name))
    return [failure for failure in failures if failure.group in searched]
