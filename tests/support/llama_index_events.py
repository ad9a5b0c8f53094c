"""Record the LlamaIndex callbacks, spans and events of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

_OURS = {
    "NodeGraphIndex": "VectorStoreIndex",
    "NodeGraphRetriever": "VectorIndexRetriever",
    "NodeGraphQueryEngine": "RetrieverQueryEngine",
}


def their_name(name: str) -> str:
    """Replace the name of a nodekin class with the name of the corresponding LlamaIndex class."""
    for ours, theirs in _OURS.items():
        name = name.replace(ours, theirs)
    return name


class Callbacks(BaseCallbackHandler):
    """A callback handler that records events together with their parents and payload keys."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.types: dict[str, str] = {"root": "root"}
        self.seen: Counter[str] = Counter()

    def on_event_start(
        self,
        event_type: Any,
        payload: Any = None,
        event_id: str = "",
        parent_id: str = "",
        **_: Any,
    ) -> str:
        self.types[event_id] = event_type.value
        self._note("start", event_type, payload, self.types.get(parent_id, "another manager"))
        return event_id

    def on_event_end(
        self, event_type: Any, payload: Any = None, event_id: str = "", **_: Any
    ) -> None:
        self._note("end", event_type, payload, "")

    def _note(self, what: str, event_type: Any, payload: Any, parent: str) -> None:
        keys = sorted(str(getattr(key, "value", key)) for key in payload or {})
        self.seen[f"{what} {event_type.value} in {parent} with {keys}"] += 1

    def start_trace(self, trace_id: str | None = None) -> None:
        self.seen[f"trace {trace_id}"] += 1

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None:
        self.seen[f"end of trace {trace_id}"] += 1


class Events(BaseEventHandler):
    """An event handler that counts instrumentation events."""

    seen: Counter[str] = Counter()  # noqa: RUF012

    @classmethod
    def class_name(cls) -> str:
        return "Events"

    def handle(self, event: Any, **kwargs: Any) -> None:
        span = their_name((event.span_id or "").partition("-")[0])
        fields = sorted(type(event).model_fields)
        self.seen[f"{type(event).__name__} in {span} with {fields}"] += 1


class Spans(BaseSpanHandler[Any]):
    """A span handler that records the names of spans and of their parents."""

    seen: Counter[str] = Counter()  # noqa: RUF012

    @classmethod
    def class_name(cls) -> str:
        return "Spans"

    def new_span(
        self, id_: str, bound_args: Any, instance: Any = None, parent_span_id: Any = None, **_: Any
    ) -> None:
        name = their_name(id_.partition("-")[0])
        parent = their_name((parent_span_id or "").partition("-")[0])
        self.seen[f"span {name} in {parent}"] += 1

    def prepare_to_exit_span(self, id_: str, bound_args: Any, **_: Any) -> None:
        self.seen[f"end of span {their_name(id_.partition('-')[0])}"] += 1

    def prepare_to_drop_span(self, id_: str, bound_args: Any, **_: Any) -> None:
        self.seen[f"drop of span {their_name(id_.partition('-')[0])}"] += 1


@contextmanager
def recorded() -> Iterator[tuple[Callbacks, Counter[str]]]:
    """Yield a callback handler, and a counter for spans and events inside the ``with`` block."""
    seen: Counter[str] = Counter()
    events = Events()
    spans = Spans()
    events.seen = seen
    spans.seen = seen
    root = get_dispatcher()
    root.add_event_handler(events)
    root.add_span_handler(spans)
    try:
        yield Callbacks(), seen
    finally:
        root.event_handlers.remove(events)
        root.span_handlers.remove(spans)
