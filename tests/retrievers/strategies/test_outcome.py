"""Outcomes of strategies at any depth."""

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever, SubQuestionRetriever, trace
from nodekin.retrievers.strategies.outcome import OutcomeObserver, StrategyOutcome, SubResults
from nodekin.retrievers.tracing import observe, start_span


def test_outcome_joins_siblings_and_keeps_last_results() -> None:
    observer = OutcomeObserver()
    first, second = SubResults("a", ()), SubResults("a", (), "A.")
    with observe(observer):
        for part in (first, second):
            with start_span("own") as span:
                span.outcome = StrategyOutcome((part,), ((part.question, "gone"),))
        with start_span("outer") as span:
            with start_span("inner") as inner:
                inner.outcome = StrategyOutcome((SubResults("hidden", ()),), (("hidden", "gone"),))
            span.outcome = StrategyOutcome((SubResults("b", ()),), ended="answered")
    outcome = observer.outcome
    assert outcome is not None
    assert outcome.parts == (second, SubResults("b", ()))
    assert outcome.errors == (("a", "gone"), ("hidden", "gone"))
    assert outcome.ended == "answered"


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
