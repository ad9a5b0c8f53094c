"""Report the spans of a nodekin retrieval to LlamaIndex: as spans, and as events."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
)
from llama_index.core.instrumentation.event_handlers import NullEventHandler
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.span import (  # type: ignore[attr-defined]
    SpanDropEvent,
)
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.instrumentation.span_handlers import NullSpanHandler
from llama_index.core.query_engine.sub_question_query_engine import SubQuestionAnswerPair
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.tools import ToolMetadata

from ...retrievers.strategies.outcome import SUB_QUESTION, SubResults
from ...retrievers.tracing import Span
from ..frameworks import observe_once
from .nodes import NamedByClass, to_nodes_with_scores

dispatcher = get_dispatcher(__name__)


TOOL_NAME = "nodekin"
"""The tool of all sub-questions, for callback handlers that show it."""

_EVENT_TYPES = {"rerank": CBEventType.RERANKING, SUB_QUESTION: CBEventType.SUB_QUESTION}


class _SpanEvent(NamedByClass, BaseEvent):
    span: str
    attributes: dict[str, Any]


class SpanStartEvent(_SpanEvent):
    """A span of a nodekin retrieval starts: a search, a fusion, a reranking, a model call.

    Attributes:
        span: Its name: ``"search"``, ``"fuse"``, ``"rerank"``.
        attributes: Its inputs.
    """


class SpanEndEvent(_SpanEvent):
    """A span of a nodekin retrieval has ended.

    Attributes:
        span: Its name.
        attributes: Its inputs and outputs.
        seconds: Its duration.
        error: Why it failed, None if it did not.
    """

    seconds: float
    error: str | None = None


class SpanObserver:
    """Create LlamaIndex spans and events from nodekin's spans, and events of the older callbacks.

    Give it to ``nodekin.retrievers.observe``; ``NodeGraphRetriever`` does so in every call. In
    LlamaIndex a span has the name ``nodekin.search``, ``nodekin.fuse``, ... Its parent is the span
    that was active when it started, also in the threads of a fusion; calls of LlamaIndex models in
    it are its children. A span that fails is dropped, even if the retrieval continues without it.

    Callback handlers get a ``FUNCTION_CALL`` with its name and attributes, ``RERANKING``, or
    ``SUB_QUESTION`` with a question, then its answer and sources; not ``RETRIEVE`` or ``LLM``,
    whose handlers count nodes and tokens that the retriever and LlamaIndex's own models report
    already. Spans have no ``instance``: exporters would show each as another retriever.

    Args:
        callback_manager: Gets events too. None for instrumentation only.
    """

    def __init__(self, callback_manager: CallbackManager | None = None) -> None:
        self._manager = callback_manager
        self._open: dict[int, Iterator[None]] = {}  # by the span's identity

    def begin(self, span: Span, parent: Span | None) -> None:
        """Enter a LlamaIndex span in the context of the work."""
        self._open[id(span)] = self._report(span)
        next(self._open[id(span)])

    def end(self, span: Span) -> None:
        """Exit the LlamaIndex span, or drop it if the work failed."""
        next(self._open.pop(id(span)), None)

    def _report(self, span: Span) -> Iterator[None]:
        """Report the beginning of a span and, when resumed, its end."""
        attributes = dict(span.attributes)
        span_id, event_id = f"nodekin.{span.name}-{uuid.uuid4()}", str(uuid.uuid4())
        arguments: dict[str, Any] = {
            "id_": span_id,
            "bound_args": _SIGNATURE.bind(**attributes),
            "instance": None,
        }
        parent_id = active_span_id.get()
        token = active_span_id.set(span_id)
        dispatcher.span_enter(parent_id=parent_id, tags=active_instrument_tags.get(), **arguments)
        dispatcher.event(SpanStartEvent(span=span.name, attributes=attributes, span_id=span_id))
        event_type = _EVENT_TYPES.get(span.name, CBEventType.FUNCTION_CALL)
        if self._manager is not None:
            self._manager.on_event_start(event_type, _start_payload(span), event_id)
        yield
        attributes, error = dict(span.attributes), span.error
        if self._manager is not None:
            self._manager.on_event_end(event_type, _end_payload(span), event_id)
        message = None if error is None else f"{type(error).__name__}: {error}"
        end: dict[str, Any] = {"seconds": span.seconds or 0.0, "error": message}
        dispatcher.event(
            SpanEndEvent(span=span.name, attributes=attributes, span_id=span_id, **end)
        )
        if error is None:
            dispatcher.span_exit(result=attributes, **arguments)
        else:
            dispatcher.event(SpanDropEvent(span_id=span_id, err_str=str(error)))
            dispatcher.span_drop(err=error, **arguments)
        with suppress(ValueError):  # a stream that is read on in another context
            active_span_id.reset(token)


_observer: ContextVar[SpanObserver | None] = ContextVar("span observer", default=None)


def report_spans(callback_manager: CallbackManager | None) -> AbstractContextManager[Any]:
    """Report the spans of the block to LlamaIndex, unless an outer block already does.

    Without a handler no spans and events are made. They cost more than a search.
    """
    if not (callback_manager is not None and callback_manager.handlers) and not _has_handlers():
        return nullcontext()
    return observe_once(_observer, lambda: SpanObserver(callback_manager))


def _has_handlers() -> bool:
    """Return whether the dispatcher of this module, or one above it, has a handler."""
    level: Any = dispatcher
    while True:
        for handler in (*level.span_handlers, *level.event_handlers):
            if type(handler) not in _NULL_HANDLERS:
                return True
        if not level.propagate:
            return False
        level = level.parent


_NULL_HANDLERS = (NullSpanHandler, NullEventHandler)


_SIGNATURE = inspect.signature(lambda **attributes: None)


def _start_payload(span: Span) -> dict[str, Any]:
    attributes = dict(span.attributes)
    if span.name == "rerank":
        return {
            EventPayload.QUERY_STR: str(attributes.get("query", "")),
            EventPayload.MODEL_NAME: str(attributes.get("reranker", "")),
            EventPayload.ADDITIONAL_KWARGS: attributes,
        }
    if span.name == SUB_QUESTION:
        question = SubQuestion(sub_question=str(attributes.get("question")), tool_name=TOOL_NAME)
        return {EventPayload.SUB_QUESTION: SubQuestionAnswerPair(sub_q=question)}
    tool = ToolMetadata(name=f"nodekin.{span.name}", description=f"nodekin span {span.name}")
    return {EventPayload.FUNCTION_CALL: attributes, EventPayload.TOOL: tool}


def _end_payload(span: Span) -> dict[str, Any]:
    if span.error is not None:
        return {EventPayload.EXCEPTION: span.error}
    if isinstance(part := span.outcome, SubResults):
        question = SubQuestion(sub_question=part.question, tool_name=TOOL_NAME)
        sources = to_nodes_with_scores(part.results)
        pair = SubQuestionAnswerPair(sub_q=question, answer=part.answer, sources=[*sources])
        return {EventPayload.SUB_QUESTION: pair}
    rerank = span.name == "rerank"
    key = EventPayload.ADDITIONAL_KWARGS if rerank else EventPayload.FUNCTION_OUTPUT
    return {key: dict(span.attributes)}
