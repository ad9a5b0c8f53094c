"""Export retrieval stages as OpenTelemetry spans, with the attributes of common viewers."""

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
"""Attributes that name components. Other texts may come from a query or a document."""

_DOCUMENTS = 50  # maximum number per span


@contextmanager
def telemetry_spans(tracer: Tracer | None = None, *, content: bool = False) -> Iterator[None]:
    """Create an OpenTelemetry span for each stage of the retrievals in the block.

    A retrieval's span contains ``gen_ai.operation.name`` (the conventions for generative AI),
    ``openinference.span.kind`` (OpenInference), and the ids and scores of its documents. Queries
    and document texts are exported only if ``content`` is set.

    Args:
        tracer: The tracer. Defaults to the tracer of the program's provider.
        content: Whether to export queries, results' texts and error messages.
    """
    with observe(TelemetryObserver(tracer or telemetry.get_tracer("nodekin"), content)):
        yield


class TelemetryObserver:
    """An observer that starts and ends a span for each stage. See ``telemetry_spans``."""

    def __init__(self, tracer: Tracer, content: bool = False) -> None:
        self._tracer = tracer
        self._content = content
        self._open: dict[int, telemetry.Span] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start a span below the parent's span, or below the program's current span."""
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
        """End the span of a stage, with its results and error."""
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
