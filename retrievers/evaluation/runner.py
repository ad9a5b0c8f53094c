"""Run several systems on the questions of a data set, and judge their results."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial

from ...nodegraph.document import Document
from ...nodegraph.errors import check_integer
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.node import ROOT
from ...nodegraph.splitters.chunking import count_tokens
from ..foreign.foreign_retriever import ForeignRetriever, as_retriever
from ..group_failures import describe_failures, graphs_of, searched_failures
from ..protocols import RetrieverLike, RetrieverProtocol
from ..results import ScoredNode
from ..strategies.outcome import total_usage
from ..tracing import Span, trace
from .dataset import Dataset, GoldPassage, Question
from .gold_places import DocumentTexts, LocatedGold, locate_gold
from .metrics import Judgment, Matching, Metric, RetrievalCase, RetrievedItem, get_metric
from .records import Record, run_all
from .report import Evaluation

_logger = logging.getLogger("nodekin")

RANKING_METRICS = ("recall@1", "recall@5", "mrr@5", "ndcg@5")
"""The default metrics for questions with relevant passages."""

ANSWER_METRICS = ("answer_in_context@1", "answer_in_context@5")
"""The default metrics for questions with answers."""

# For metrics with a token budget: the assumed size of a result in tokens.
_RESULT_TOKENS = 20

_MAX_RESULTS = 200  # the maximum number of results, for metrics with a token budget


_WORDS_ALONE = "words alone were compared"  # the beginning of a note by DefaultRetriever


def default_metrics(dataset: Dataset) -> tuple[str, ...]:
    """Return the default metrics for a data set, based on its relevant passages and answers.

    Example:
        >>> default_metrics(Dataset([Question("1", "Which tea?", answers=("green",))]))
        ('answer_in_context@1', 'answer_in_context@5')
    """
    if not any(question.answers for question in dataset.questions):
        return RANKING_METRICS
    if not any(question.gold for question in dataset.questions):
        return ANSWER_METRICS
    return RANKING_METRICS + ANSWER_METRICS


def evaluate(
    retrievers: Mapping[str, RetrieverLike],
    dataset: Dataset,
    metrics: Sequence[Metric | str] | None = None,
    *,
    top_k: int | None = None,
    matching: Matching | None = None,
    documents: NodeGraph | Sequence[Document] | None = None,
    num_workers: int = 1,
    progress: bool | None = None,
) -> Evaluation:
    """Search for each question with each retriever, and measure the results.

    For a query engine, the sources of its answers are judged. If a retriever raises an error for a
    question, the error is reported and the question is not judged. If a retriever searches a group
    in which documents failed (for example, because a model was unreachable), the retriever is not
    judged at all. If no result has the id of a relevant or an existing document, ids cannot be
    compared, and items that are identified by an id are not judged.

    Args:
        retrievers: The retrievers by name, which may be objects of LangChain or LlamaIndex. See
            ``as_retriever``. All retrievers are compared with the first one.
        dataset: The questions.
        metrics: The metrics, or names such as ``"recall@5"``. See ``METRICS``. Defaults to all
            metrics that the data set allows.
        top_k: The number of results to request. Defaults to the largest number in the name of a
            metric, or to 10. For a metric with a token budget such as ``"recall@1000tokens"``, one
            result is requested per 20 tokens, up to 200.
        matching: The rule that decides whether a result is relevant. Defaults to ``Matching()``.
        documents: The documents, in which moved and edited passages and the results of other
            frameworks are located. Passages that no document contains are listed and not counted.
            Defaults to the documents of the data set.
        num_workers: The number of questions that are processed concurrently, in threads. Several
            threads are useful if the systems wait for models or servers, but they increase the
            duration of each question.
        progress: Whether to display a progress bar. If None, it is displayed only in a terminal.

    Raises:
        TypeError: If a retriever is not supported, or a metric is neither a name nor a ``Metric``.
        ValueError: If no retrievers are given, a metric is unknown or repeated, ``num_workers`` is
            below 1, or ``top_k`` is less than the number in the name of a metric.

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
    measures = _measures(default_metrics(dataset) if metrics is None else metrics)
    count = result_count(measures, top_k)
    check_integer(num_workers, "num_workers", 1)
    sources = _sources(retrievers)
    matching = matching or Matching()
    if documents is None:
        documents = dataset.documents
    texts = DocumentTexts(documents, matching.document_key)
    gold = _locate(dataset, texts, matching)
    asked = {question.id: digest(repr(question)) for question in dataset.questions}
    search = partial(_search, top_k=count, matching=matching, texts=texts)
    work = []
    for setup, source in sources.items():
        for question in gold.dataset.questions:
            work.append(partial(search, source, setup, question, asked=asked[question.id]))
    records: dict[str, dict[str, Record]] = {name: {} for name in sources}
    for record in run_all(work, "evaluate", num_workers, progress):
        records[record.setup][record.question_id] = record
    # The ids of relevant items count as known even if no document contains the items.
    known_ids = {*texts.documents, *_gold_ids(dataset), *_gold_ids(gold.dataset)}
    id_problems = _id_problems(sources, records, gold.dataset, known_ids, matching)
    judgments = _judge(
        gold.dataset, measures, records, matching, id_problems, num_workers, progress
    )
    return Evaluation(gold, measures, records, judgments, id_problems)


def _sources(retrievers: Mapping[str, RetrieverLike]) -> dict[str, RetrieverProtocol]:
    if not isinstance(retrievers, Mapping) or not retrievers:
        raise ValueError(
            f"retrievers must be a mapping, as {{'words': retriever}}, got {retrievers!r:.80}"
        )
    return {name: as_retriever(item, repr(name)) for name, item in retrievers.items()}


def _measures(metrics: Sequence[Metric | str]) -> list[Metric]:
    """Return the metrics with the given names.

    Raises:
        ValueError: If a metric is repeated, or no metric is given.
    """
    measures = [get_metric(metric) for metric in metrics]
    if not measures or len({measure.name for measure in measures}) < len(measures):
        raise ValueError(f"metrics must be different, at least one, got {metrics!r}")
    return measures


def _locate(dataset: Dataset, texts: DocumentTexts, matching: Matching) -> LocatedGold:
    """Locate the relevant items in the documents, and log a warning if items are missing."""
    if not texts.documents:
        return LocatedGold(dataset)
    gold = locate_gold(dataset, texts, as_spans=matching.passages == "place")
    if gold.missing:
        _logger.warning(
            "gold of %s that is in no document and does not count: %d; the first: %s",
            dataset.name,
            len(gold.missing),
            gold.missing[0],
        )
    return gold


def _gold_ids(dataset: Dataset) -> set[str]:
    """Return the ids of all documents that are relevant or contain relevant spans."""
    ids: set[str] = set()
    for question in dataset.questions:
        ids.update(gold.document_id for gold in question.gold if not isinstance(gold, GoldPassage))
    return ids


def _id_problems(
    sources: Mapping[str, RetrieverProtocol],
    records: Mapping[str, Mapping[str, Record]],
    dataset: Dataset,
    known_ids: Set[str],
    matching: Matching,
) -> dict[str, str]:
    """Return the result of ``_id_problem`` for each system that has a problem."""
    problems = {}
    for setup, source in sources.items():
        problem = _id_problem(source, records[setup], dataset, known_ids, matching)
        if problem:
            problems[setup] = problem
    return problems


def _id_problem(
    retriever: RetrieverProtocol,
    records: Mapping[str, Record],
    dataset: Dataset,
    known_ids: Set[str],
    matching: Matching,
) -> str:
    """Return the reason why document ids of results and relevant items cannot be compared.

    The reason is empty if they can be compared. This is the case if at least one result has the id
    of a relevant or an existing document, or if the retriever searches a graph that contains a
    relevant document. Other results then count as misses.
    """
    gold_ids = _gold_ids(dataset)
    result_ids: set[str] = set()
    for record in records.values():
        result_ids.update(item.document_id for item in record.items)
    result_ids.discard("")  # missing ids are reported by each metric
    if not gold_ids or not result_ids or result_ids & known_ids:
        return ""
    if matching.document_key is None:
        for graph in graphs_of(retriever):
            if any(node.group == ROOT for node in graph.reader.existing_nodes([*gold_ids])):
                return ""
    result_id = min(result_ids)
    gold_id = min(gold_ids)
    return (
        f"no result has the id of any gold or document: {result_id!r:.40} is not like "
        f"{gold_id!r:.40}; give the documents (documents=, --docs), or "
        "Matching(document_key='source')"
    )


def _judge(
    dataset: Dataset,
    metrics: Sequence[Metric],
    records: Mapping[str, Mapping[str, Record]],
    matching: Matching,
    id_problems: Mapping[str, str],
    num_workers: int,
    progress: bool | None,
) -> dict[str, dict[str, dict[str, Judgment]]]:
    """Return the judgments by metric, system and question id."""
    if not any(metric.asks_model for metric in metrics):
        num_workers = 1
        progress = False

    def judge(question: Question, record: Record, answer_only: bool) -> list[Judgment]:
        if record.error:
            return [Judgment(None, f"the system failed: {record.error}")] * len(metrics)
        case = RetrievalCase(
            question,
            record.items,
            matching,
            record.answer,
            answer_only,
            id_problems.get(record.setup, ""),
        )
        return [metric.judge(case) for metric in metrics]

    judgments: dict[str, dict[str, dict[str, Judgment]]] = {m.name: {} for m in metrics}
    for setup, found in records.items():
        no_items = not any(record.items for record in found.values())
        work = [
            partial(judge, question, record, no_items and bool(record.answer))
            for question, record in zip(dataset.questions, found.values(), strict=True)
        ]
        rows = run_all(work, "judge", num_workers, progress)
        for metric, column in zip(metrics, zip(*rows, strict=True), strict=True):
            judgments[metric.name][setup] = dict(zip(found, column, strict=True))
    return judgments


def result_count(measures: Sequence[Metric], top_k: int | None) -> int:
    """Return the number of results to request from each system."""
    needed = 0
    for measure in measures:
        budget = measure.max_tokens and max(10, measure.max_tokens // _RESULT_TOKENS)
        needed = max(needed, measure.k or 0, min(_MAX_RESULTS, budget or 0))
    if top_k is None:
        return needed or 10
    if check_integer(top_k, "top_k", 1) < needed:
        raise ValueError(f"top_k must be at least {needed}, the number of a metric, got {top_k}")
    return top_k


def _search(
    retriever: RetrieverProtocol,
    setup: str,
    question: Question,
    *,
    asked: str,
    top_k: int,
    matching: Matching,
    texts: DocumentTexts,
) -> Record:
    """Search for a question, and return a record with the results or the error of the retriever."""
    answer: str | None = None
    items: list[RetrievedItem] = []
    error = ""
    with trace() as span:
        start = time.perf_counter()
        try:
            if isinstance(retriever, ForeignRetriever):
                answer, results = retriever.retrieve_sources(question.text, top_k)
            else:
                results = retriever.retrieve(question.text, top_k=top_k)
            seconds = time.perf_counter() - start
            items = [_item(result, matching.document_key) for result in results[:top_k]]
            if texts.documents:
                items = [texts.place(item) for item in items]
            error = hidden_failure(retriever, results)
        except Exception as raised:
            seconds = time.perf_counter() - start
            error = f"{type(raised).__name__}: {raised}"
    usage = total_usage(_all_spans(span))
    return Record(
        setup,
        question.id,
        question.text,
        asked,
        tuple(items),
        answer,
        seconds,
        error,
        tokens=sum([count_tokens(item.text) for item in items]),
        model_calls=usage.calls,
        cached_calls=usage.cached_calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )


def _all_spans(span: Span) -> Iterator[Span]:
    """Yield a trace span and all spans nested in it."""
    yield span
    for child in span.children:
        yield from _all_spans(child)


def _item(result: ScoredNode, document_key: str | None) -> RetrievedItem:
    """Convert a search result to plain values.

    If ``document_key`` is given, it is the metadata field that contains the id of the document.
    """
    node = result.node
    text = node.content if isinstance(node.content, str) else node.text
    start = node.start
    end = node.end
    index = node.metadata.get("start_index")  # this field is written by the splitters of LangChain
    if start is None and isinstance(index, int):
        start = index
        end = index + len(node.text)
    document = node.document_id or node.id
    if document_key is not None:
        document = str(node.metadata.get(document_key, ""))
    explanation = result.explain()
    return RetrievedItem(node.id, text, float(result.score), document, start, end, explanation)


def hidden_failure(retriever: object, results: Sequence[ScoredNode]) -> str:
    """Return a sentence about failures that the retriever did not raise.

    The sentence is empty if nothing failed. Failed groups that the retriever does not search are
    ignored.

    Args:
        retriever: The retriever that was used.
        results: The results of a query.
    """
    failures = searched_failures(retriever)
    if failures:
        return describe_failures(failures)
    for result in results:
        for match in result.evidence:
            notes = [variant.note or "" for variant in match.variants]
            alone = [note for note in notes if note.startswith(_WORDS_ALONE)]
            if alone:
                return alone[0]
    return ""
