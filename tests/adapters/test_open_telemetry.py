"""Stages as spans, read back from the SDK's exporter in memory."""

import json
import runpy
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from nodekin.adapters.open_telemetry import telemetry_spans
from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever

SECRET = "fermented secretly"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracer(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("tests")


@pytest.fixture
def retriever():
    graph = NodeGraph(progress=False)
    graph.add([f"Black tea is {SECRET}.", "Green tea is steamed."])
    graph.create_node_group("sentence", lambda text: text.split(". "))
    return FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "sentence", target="ROOT")])


def test_stages_are_spans_below_the_program_span(retriever, exporter, tracer) -> None:
    with tracer.start_as_current_span("request"), telemetry_spans(tracer):
        results = retriever("black tea")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    fuse = spans["retrieval fuse"]
    assert fuse.parent.span_id == spans["request"].context.span_id
    below = [s for s in spans.values() if s.parent and s.parent.span_id == fuse.context.span_id]
    assert below
    assert fuse.attributes["gen_ai.operation.name"] == "retrieval"
    assert fuse.attributes["openinference.span.kind"] == "RETRIEVER"
    ids = [fuse.attributes[f"retrieval.documents.{n}.document.id"] for n in range(len(results))]
    assert ids == [result.node.id for result in results]
    documents = json.loads(fuse.attributes["gen_ai.retrieval.documents"])
    assert documents == [{"id": r.node.id, "score": pytest.approx(r.score)} for r in results]


def test_spans_have_content_only_on_request(retriever, exporter, tracer) -> None:
    with telemetry_spans(tracer):
        retriever(SECRET)
    assert SECRET not in str([dict(s.attributes) for s in exporter.get_finished_spans()])
    exporter.clear()
    with telemetry_spans(tracer, content=True):
        retriever(SECRET)
    last = exporter.get_finished_spans()[-1]
    assert last.attributes["input.value"] == SECRET
    assert SECRET in last.attributes["retrieval.documents.0.document.content"]


def test_failure_sets_the_span_status(retriever, exporter, tracer) -> None:
    def failing(prompt):
        raise ConnectionError(SECRET)

    with telemetry_spans(tracer), pytest.raises(ModelError):
        QueryEngine(retriever, failing).query("Which tea is black?")
    failed = [s for s in exporter.get_finished_spans() if s.status.status_code is StatusCode.ERROR]
    assert failed[0].attributes["error.type"]
    assert SECRET not in str([(s.status.description, s.events) for s in failed])


def test_model_call_is_a_chat_span(retriever, exporter, tracer) -> None:
    with telemetry_spans(tracer):
        QueryEngine(retriever, lambda prompt: f"Black [1], {SECRET}.").query("Which tea is black?")
    spans = exporter.get_finished_spans()
    (chat,) = [s for s in spans if s.attributes["openinference.span.kind"] == "LLM"]
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.request.model"]
    assert chat.name.startswith("chat ")
    assert SECRET not in str([dict(s.attributes) for s in spans])


def test_example_prints_stages_as_a_tree(capsys, monkeypatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "traces.py"), run_name="__main__")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("|")]
    names = [line[:36].rstrip() for line in lines]
    assert names[0] == "answer"
    assert names[1] == "  retrieval retrieve"
    assert names.count("      retrieval search") == 2
    assert names[-1].startswith("  chat ")
    kinds = [line.split("|")[0].split()[-3] for line in lines]  # a long name moves the columns
    assert {kinds[0], kinds[1], kinds[-1]} == {"CHAIN", "RETRIEVER", "LLM"}
    assert all("#" in line.rsplit("|", 2)[1] for line in lines)
