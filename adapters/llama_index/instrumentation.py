"""Tell LlamaIndex what a nodekin retriever does: a span and events for every stage."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any

from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
)
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.span import (  # type: ignore[attr-defined]
    SpanDropEvent,
)
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.tools import ToolMetadata

from ...retrievers import Span, observe

dispatcher = get_dispatcher(__name__)


class StageStartEvent(BaseEvent):
    """A stage of a nodekin retrieval begins: a search, a fusion, a reranking, a model's call.

    Attributes:
        stage: Its name: ``"search"``, ``"fuse"``, ``"rerank"``.
        attributes: What it is done with.
    """

    span: str
    attributes: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex knows it by."""
        return "StageStartEvent"


class StageEndEvent(BaseEvent):
    """A stage of a nodekin retrieval has ended.

    Attributes:
        stage: Its name.
        attributes: What it was done with, and what came of it.
        seconds: How long it took.
        error: What it failed of, None where it did not.
    """

    span: str
    attributes: dict[str, Any]
    seconds: float
    error: str | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex knows it by."""
        return "StageEndEvent"


@dataclass(frozen=True, slots=True)
class _Open:
    """A stage that has begun: its span, and what it stood in."""

    span_id: str
    bound: inspect.BoundArguments
    token: Token[str | None]
    event_id: str


class StageObserver:
    """Make of stages LlamaIndex spans and events, and events of its older callbacks.

    Give it to ``nodekin.retrievers.observe``; ``NodeGraphRetriever`` does so in every call. A
    stage's span has the name ``nodekin.search``, ``nodekin.fuse``, ... and is the child of what
    was active where the stage began, also in the threads of a fusion; what LlamaIndex models do
    within it is its child in turn. A stage that fails drops its span, even where another one
    bears the failure.

    Callback handlers see a stage as a ``FUNCTION_CALL`` with its name and attributes, and one that
    reranks as ``RERANKING``; not as ``RETRIEVE`` or ``LLM``, whose handlers count nodes and
    tokens that the retriever and LlamaIndex's own models report already.

    Args:
        callback_manager: Is told as well; None tells only the instrumentation.
        owner: What the spans belong to, as their ``instance``.
    """

    def __init__(self, callback_manager: CallbackManager | None = None, owner: Any = None) -> None:
        self._manager = callback_manager
        self._owner = owner
        self._open: dict[int, _Open] = {}  # by the stage's identity

    def begin(self, span: Span, parent: Span | None) -> None:
        """Enter a span in the context in which the stage is done."""
        attributes = dict(span.attributes)
        span_id = f"nodekin.{span.name}-{uuid.uuid4()}"
        bound = _SIGNATURE.bind(**attributes)
        above = active_span_id.get()
        token = active_span_id.set(span_id)
        dispatcher.span_enter(
            id_=span_id,
            bound_args=bound,
            instance=self._owner,
            parent_id=above,
            tags=active_instrument_tags.get(),
        )
        dispatcher.event(StageStartEvent(span=span.name, attributes=attributes, span_id=span_id))
        event_id = str(uuid.uuid4())
        self._open[id(span)] = _Open(span_id, bound, token, event_id)
        if self._manager is not None:
            self._manager.on_event_start(_kind(span), _asked(span), event_id)

    def end(self, span: Span) -> None:
        """Leave the stage's span, or drop it where the stage failed."""
        opened = self._open.pop(id(span))
        attributes, error = dict(span.attributes), span.error
        if self._manager is not None:
            self._manager.on_event_end(_kind(span), _answered(span), opened.event_id)
        told = None if error is None else f"{type(error).__name__}: {error}"
        took = span.seconds or 0.0
        dispatcher.event(
            StageEndEvent(
                span=span.name,
                attributes=attributes,
                seconds=took,
                error=told,
                span_id=opened.span_id,
            )
        )
        known: dict[str, Any] = {"id_": opened.span_id, "bound_args": opened.bound}
        if error is None:
            dispatcher.span_exit(instance=self._owner, result=attributes, **known)
        else:
            dispatcher.event(SpanDropEvent(span_id=opened.span_id, err_str=str(error)))
            dispatcher.span_drop(instance=self._owner, err=error, **known)
        with suppress(ValueError):  # a stream that is read on in another context
            active_span_id.reset(opened.token)


_telling: ContextVar[bool] = ContextVar("telling", default=False)


@contextmanager
def telling(callback_manager: CallbackManager | None, owner: Any) -> Iterator[None]:
    """Tell LlamaIndex of the stages in the block, once where such blocks stand in each other.

    A query engine tells of its answer, and its retriever within of the search.
    """
    if _telling.get():
        yield
        return
    token = _telling.set(True)
    try:
        with observe(StageObserver(callback_manager, owner)):
            yield
    finally:
        _telling.reset(token)


def _any_attributes(**attributes: Any) -> None: ...


_SIGNATURE = inspect.signature(_any_attributes)


def _kind(span: Span) -> CBEventType:
    return CBEventType.RERANKING if span.name == "rerank" else CBEventType.FUNCTION_CALL


def _asked(span: Span) -> dict[str, Any]:
    attributes = dict(span.attributes)
    if span.name == "rerank":
        return {
            EventPayload.QUERY_STR: str(attributes.get("query", "")),
            EventPayload.MODEL_NAME: str(attributes.get("reranker", "")),
            EventPayload.ADDITIONAL_KWARGS: attributes,
        }
    what = ToolMetadata(name=f"nodekin.{span.name}", description=f"nodekin stage {span.name}")
    return {EventPayload.FUNCTION_CALL: attributes, EventPayload.TOOL: what}


def _answered(span: Span) -> dict[str, Any]:
    if span.error is not None:
        return {EventPayload.EXCEPTION: span.error}
    attributes = dict(span.attributes)
    if span.name == "rerank":
        return {EventPayload.ADDITIONAL_KWARGS: attributes}
    return {EventPayload.FUNCTION_OUTPUT: attributes}
