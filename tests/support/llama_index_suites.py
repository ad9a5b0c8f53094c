"""Tests of documented LlamaIndex behavior that run with LlamaIndex classes and nodekin classes.

LlamaIndex does not publish its own tests. Each file in ``tests/suites/llama_index`` tests what the
documentation promises for one type of class. Each test receives the fixture ``kind``, and must pass
with the LlamaIndex classes. If the behavior of a nodekin class is different, ``DIFFERENCES``
contains the reason, and the test must fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import (
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
)

from nodekin.adapters.llama_index import (
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphTransform,
)
from nodekin.nodegraph import SentenceSplitter as NodekinSplitter
from support.llama_index_models import ScriptedLLM, Words

DIFFERENCES = {
    "test_scores_are_cosines": "words and vectors are fused; similarity='cosine' gives cosines",
}
"""The reasons why tests fail with nodekin classes, keyed by the name of the test."""

OF_THE_OLDEST = {
    "test_nothing_was_found": "an index without nodes fails",
    "test_an_index_without_documents_has_no_results": "an index without nodes fails",
    "test_equal_texts_with_different_ids_are_kept": "results are merged by their texts",
}
"""The tests that fail with LlamaIndex classes before version 0.14, and the reasons."""

KINDS = {
    "LlamaIndex": SimpleNamespace(
        index=VectorStoreIndex,
        engine=RetrieverQueryEngine,
        sub_questions=SubQuestionQueryEngine,
        multi_step=MultiStepQueryEngine,
        splitter=SentenceSplitter(chunk_size=16, chunk_overlap=0),
    ),
    "nodekin": SimpleNamespace(
        index=NodeGraphIndex,
        engine=NodeGraphQueryEngine,
        sub_questions=NodeGraphQueryEngine,
        multi_step=NodeGraphQueryEngine,
        splitter=NodeGraphTransform(NodekinSplitter(16, 0)),
    ),
}

TEXTS = {
    "tea": "Green tea is steamed. Black tea is fermented. Tea keeps for a year.",
    "rivers": "The Nile is 6,650 km long. It runs to the Mediterranean sea.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange.",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that are expected to fail."""
    expected = {"nodekin": DIFFERENCES}
    if version("llama-index-core").startswith("0.13."):
        expected["LlamaIndex"] = OF_THE_OLDEST
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        reasons = expected.get(str(parameters.get("kind", "")), {})
        if reason := reasons.get(getattr(item, "originalname", "")):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> SimpleNamespace:
    """Return the LlamaIndex classes, and then the nodekin classes."""
    return KINDS[request.param]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the global models, as programs usually do once at the start."""
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM(answer="It is.", prompts=[]))
    monkeypatch.setattr(Settings, "_embed_model", Words())
    monkeypatch.setattr(Settings, "_transformations", None)
    monkeypatch.setattr(Settings, "_node_parser", SentenceSplitter(chunk_size=64, chunk_overlap=0))


@pytest.fixture
def documents() -> list[Document]:
    """Return three documents, as a document loader would create them."""
    years = dict(zip(TEXTS, (2001, 2002, 2003), strict=True))
    return [
        Document(text=text, id_=name, metadata={"topic": name, "year": years[name]})
        for name, text in TEXTS.items()
    ]


@pytest.fixture
def index(kind: SimpleNamespace, documents: list[Document]) -> Any:
    return kind.index.from_documents(documents)


@pytest.fixture
def llm() -> ScriptedLLM:
    return ScriptedLLM(answer="It is.", prompts=[])


class Recorder(BaseEventHandler):
    """An event handler that records the names of LlamaIndex events."""

    names: list[str] = []  # noqa: RUF012

    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event: Any, **settings: Any) -> None:
        self.names.append(event.class_name())


@pytest.fixture
def events() -> Iterator[list[str]]:
    """Return a list to which the names of all following events are added."""
    recorder = Recorder(names=[])
    get_dispatcher().add_event_handler(recorder)
    yield recorder.names
    get_dispatcher().event_handlers.remove(recorder)
