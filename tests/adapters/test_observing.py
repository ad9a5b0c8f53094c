from contextvars import ContextVar

import pytest

from nodekin.adapters.observing import observe_once
from nodekin.retrievers.tracing import start_span


class Names:
    """Collects the names of the spans that start."""

    def __init__(self):
        self.names = []

    def begin(self, span, parent):
        self.names.append(span.name)

    def end(self, span):
        pass


@pytest.fixture
def current():
    return ContextVar("current", default=None)


def test_nested_blocks_report_a_span_once(current):
    with observe_once(current, Names) as outer:
        with observe_once(current, Names) as inner, start_span("search"):
            pass
        with start_span("rerank"):
            pass
    assert inner is outer
    assert outer.names == ["search", "rerank"]


def test_a_block_after_an_error_has_a_new_observer(current):
    with pytest.raises(ValueError, match="broken"), observe_once(current, Names) as first:
        raise ValueError("broken")
    assert current.get() is None
    with observe_once(current, Names) as second, start_span("search"):
        pass
    assert (first.names, second.names) == ([], ["search"])
