"""Outcomes of strategies at any depth."""

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever, SubQuestionRetriever, trace
from nodekin.retrievers.strategies.outcome import OutcomeObserver
from nodekin.retrievers.tracing import observe


def test_outcome_covers_batches_and_branches() -> None:
    graph = NodeGraph()
    graph.add(["Green tea.", "Black tea."])
    search = Retriever(graph, "ROOT")
    parts = SubQuestionRetriever(search, lambda prompt: "Is green tea good?\nIs black tea good?")
    observer = OutcomeObserver()
    with observe(observer), trace() as traced:
        FusionRetriever([search, parts]).batch(["Which tea?", "What tea is good?"])
    assert observer.outcome is not None
    assert {part.question for part in observer.outcome.parts} == {
        "Is green tea good?",
        "Is black tea good?",
    }
    assert str(traced).count("sub-question question=") == 4
