"""Export retrieval stages as OpenTelemetry spans with the attributes that trace viewers expect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..retrievers.results import ScoredNode
from ..retrievers.tracing import Span, observe
from .extras import extra

with extra("telemetry", "opentelemetry"):
    from opentelemetry import trace as telemetry
    from opentelemetry.trace import SpanKind, Status, StatusCode

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

_KINDS = {"rerank": "RERANKER", "model": "RERANKER", "ask": "LLM"}

_MODEL_CALL = "ask"

_TOKENS = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "completion_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
}

_NAMES = ("group", "target", "similarity", "mode", "index", "via", "strategy")
"""Span attributes that name components, so they are always exported.

Other attributes may contain text from a query or a document.
"""

_DOCUMENTS = 50  # maximum number of exported documents per span


@contextmanager
def telemetry_spans(tracer: Tracer | None = None, *, content: bool = False) -> Iterator[None]:
    """Export each stage of the retrievals inside a ``with`` block as an OpenTelemetry span.

    The span of a retrieval contains ``gen_ai.operation.name`` (from OpenTelemetry's conventions for
    generative AI), ``openinference.span.kind`` (from OpenInference), and the ids and scores of the
    retrieved documents. Queries and document texts are exported only if ``content`` is True.

    Args:
        tracer: The tracer that creates the spans. Defaults to a tracer of the global provider.
        content: Whether to export queries, the texts of results, and error messages.
    """
    with observe(TelemetryObserver(tracer or telemetry.get_tracer("nodekin"), content)):
        yield


class TelemetryObserver:
    """An observer that exports each retrieval stage as a span. See ``telemetry_spans``."""

    def __init__(self, tracer: Tracer, content: bool = False) -> None:
        self._tracer = tracer
        self._content = content
        self._open: dict[int, telemetry.Span] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start a span as a child of the parent's span, or of the current span of the program."""
        above = None if parent is None else self._open.get(id(parent))
        context = None if above is None else telemetry.set_span_in_context(above)
        operation, name = None, span.name
        if span.queries:
            operation, name = "retrieval", f"retrieval {span.name}"
        elif span.name == _MODEL_CALL:
            operation, name = "chat", f"chat {span.attributes.get('model', '')}".strip()
        started = self._tracer.start_span(name, context, SpanKind.INTERNAL)
        kind = "RETRIEVER" if span.queries else "CHAIN"
        started.set_attribute("openinference.span.kind", _KINDS.get(span.name, kind))
        if operation is not None:
            started.set_attribute("gen_ai.operation.name", operation)
        if operation == "chat" and isinstance(model := span.attributes.get("model"), str):
            started.set_attribute("gen_ai.request.model", model)
            started.set_attribute("llm.model_name", model)
        if self._content and span.queries:
            query = "\n".join(span.queries)
            started.set_attribute("gen_ai.retrieval.query.text", query)
            started.set_attribute("input.value", query)
        self._open[id(span)] = started

    def end(self, span: Span) -> None:
        """End the span of a stage, and record its results and its error."""
        started = self._open.pop(id(span), None)
        if started is None:
            return
        for key, value in span.attributes.items():
            if isinstance(value, (bool, int, float)) or (key in _NAMES and isinstance(value, str)):
                started.set_attribute(f"nodekin.{key}", value)
        for key, names in _TOKENS.items():
            if key in span.attributes:
                for name in names:
                    started.set_attribute(name, span.attributes[key])
        if span.queries:
            documents = [self._document(result) for result in _first(span)]
            started.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
        for rank, result in enumerate(_first(span)):
            for key, value in self._document(result).items():
                started.set_attribute(f"retrieval.documents.{rank}.document.{key}", value)
        if span.error is not None:
            started.set_attribute("error.type", type(span.error).__qualname__)
            message = str(span.error) if self._content else type(span.error).__qualname__
            started.set_status(Status(StatusCode.ERROR, message))
        started.end()

    def _document(self, result: ScoredNode) -> dict[str, Any]:
        values: dict[str, Any] = {"id": result.node.id, "score": float(result.score)}
        return {**values, "content": result.text} if self._content else values


def _first(span: Span) -> list[ScoredNode]:
    return [result for results in span.results or () for result in results][:_DOCUMENTS]
