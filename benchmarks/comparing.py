"""Compare set-ups on a data set by ``nodekin.retrievers.evaluation``, and print the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.evaluation import Dataset, Evaluation, Matching, evaluate
from nodekin.retrievers.evaluation.metrics import MetricLike
from nodekin.retrievers.protocols import RetrieverLike

Setups = Mapping[str, RetrieverLike]
Families = Mapping[str, Callable[[], Iterable[tuple[str, RetrieverLike]]]]
"""Functions that yield set-ups by name, and raise ImportError where a package is missing."""


class Ranking:
    """A retriever that is a function from a query to the ids of documents, best first.

    Args:
        dataset: Has the documents.
        rank: The function.
    """

    def __init__(self, dataset: Dataset, rank: Callable[[str], Sequence[str]]) -> None:
        self.documents = {document.id: document.text for document in dataset.documents}
        self.rank = rank

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[ScoredNode]:
        """Return the documents, with scores that say their order."""
        ids = self.rank(query)[:top_k]
        nodes = [Node(self.documents[i], id=i, document_id=i) for i in ids]
        return [ScoredNode(node, 1 / rank) for rank, node in enumerate(nodes, 1)]

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: object = None
    ) -> list[ScoredNode]:
        """Return the same."""
        return self.retrieve(query, top_k=top_k)


def compare(
    dataset: Dataset,
    setups: Setups,
    metrics: Sequence[MetricLike],
    *,
    top_k: int | None = None,
    matching: Matching | None = None,
) -> Evaluation:
    """Evaluate set-ups; what failed or is not judged is printed."""
    evaluation = evaluate(
        setups, dataset, metrics, top_k=top_k, matching=matching, progress=False, documents=()
    )
    for note in evaluation.notes():
        if "have no text" not in note:  # CMRC has two, which count in the published figures, too
            print(f"\n{note}", flush=True)
    return evaluation


def rows_of(
    dataset: Dataset,
    families: Families,
    metrics: Sequence[MetricLike],
    *,
    digits: int = 3,
    top_k: int | None = None,
    matching: Matching | None = None,
    time: bool = False,
) -> Iterator[list[str]]:
    """Yield a row for each set-up, as it is done: its figures, and milliseconds a query.

    A family whose package or file is missing is named in a row.
    """
    for family, setups in families.items():
        try:
            for name, retriever in setups():
                evaluation = compare(
                    dataset, {name: retriever}, metrics, top_k=top_k, matching=matching
                )
                yield [name, *cells(evaluation, name, digits), *([ms(evaluation, name)] * time)]
        except (ImportError, FileNotFoundError) as error:
            missing = getattr(error, "name", None) or getattr(error, "filename", None)
            yield [f"{family}: skipped, no {missing}", *[""] * (len(metrics) + time)]


def cells(evaluation: Evaluation, setup: str, digits: int = 3) -> list[str]:
    """Return the figures of a set-up; of MRR with a digit more."""
    figures = evaluation.figures[setup]
    return [
        "not judged"
        if figure.value is None
        else f"{figure.value:.{digits + name.startswith('mrr')}f}"
        for name, figure in figures.items()
    ]


def ms(evaluation: Evaluation, setup: str) -> str:
    """Return the milliseconds of a query, in the median."""
    return f"{1000 * evaluation.costs(setup)['median_seconds']:.2f}"


def graph_of(dataset: Dataset, **options: Any) -> NodeGraph:
    """Return the graph of a data set's documents."""
    graph = NodeGraph(progress=False, **options)
    graph.add(dataset.documents)
    return graph
