"""Print the stages of an answer as a tree of OpenTelemetry spans with their durations.

If OTEL_EXPORTER_OTLP_ENDPOINT is set, the spans are also sent to a viewer, such as Jaeger at
http://127.0.0.1:4318 or Phoenix at http://127.0.0.1:6006 (pip install arize-phoenix; phoenix
serve). This requires opentelemetry-exporter-otlp-proto-http. The program itself requires
opentelemetry-sdk.
"""

import os
from pathlib import Path

try:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
except ImportError:
    raise SystemExit("This example needs: pip install opentelemetry-sdk") from None

from nodekin.adapters.open_telemetry import telemetry_spans
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever, QueryEngine

memory, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("example")

graph = NodeGraph(Path(__file__).parent / "data" / "zh", progress=False)
engine = QueryEngine(DefaultRetriever(graph), lambda prompt: "陆羽 [1]。", top_k=3)
engine.query("谁写了《茶经》？")  # the first query also builds groups and indexes

with telemetry_spans(tracer, content=True):
    engine.query("谁写了《茶经》？")
provider.shutdown()

spans = sorted(memory.get_finished_spans(), key=lambda span: span.start_time)
(root,) = [span for span in spans if span.parent is None]
whole = root.end_time - root.start_time


def show(span, depth: int = 0) -> None:
    """Print a span with its results, its duration as a bar, and its child spans."""
    begin = 20 * (span.start_time - root.start_time) // whole
    length = max(1, 20 * (span.end_time - span.start_time) // whole)
    bar = (" " * begin + "#" * length)[:20]
    kind = span.attributes.get("openinference.span.kind", "")
    milliseconds = (span.end_time - span.start_time) / 1e6
    name = f"{'  ' * depth}{span.name}"
    print(f"{name:<36} {kind:<9} {milliseconds:7.1f} ms |{bar:<20}|")
    first = span.attributes.get("retrieval.documents.0.document.content")
    if first and not depth:
        print(f"{'  ' * depth}  {first[:40]!r}")
    for child in spans:
        if child.parent and child.parent.span_id == span.context.span_id:
            show(child, depth + 1)


show(root)
