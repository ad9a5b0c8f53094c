"""Tests of documented behavior, run with LlamaIndex's classes and with nodekin's.

LlamaIndex ships no tests of its components. ``DIFFERENCES`` explains the tests that must fail with
nodekin's classes.
"""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import (
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
)
from support.llama_index_models import ScriptedLLM, Words, closed_memories  # noqa: F401

from nodekin.adapters.llama_index import (
    NodeGraphIndex,
    NodeGraphQueryEngine,
    NodeGraphTransform,
)
from nodekin.nodegraph import SentenceSplitter as NodekinSplitter

DIFFERENCES = {
    "test_scores_of_results_are_cosines": "words and vectors are fused by default",
    "test_mmr_query_mode_returns_two_results": "NearDuplicateFilter is a postprocessor",
}
"""Reasons by the names of tests."""

OF_THE_OLDEST = {
    "test_engine_without_results_answers_empty_response": "an index without nodes fails",
    "test_index_without_documents_returns_no_results": "an index without nodes fails",
}
"""Tests that fail with LlamaIndex's classes before 0.14."""

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
    """Expect the differences, and nothing else."""
    expected = {"nodekin": DIFFERENCES}
    if version("llama-index-core").startswith("0.13."):
        expected["LlamaIndex"] = OF_THE_OLDEST
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        reasons = expected.get(parameters.get("kind", ""), {})
        if reason := reasons.get(getattr(item, "originalname", "")):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> SimpleNamespace:
    """Return the classes of one package."""
    return KINDS[request.param]


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", ScriptedLLM(answer="It is.", prompts=[]))
    monkeypatch.setattr(Settings, "_embed_model", Words())
    monkeypatch.setattr(Settings, "_transformations", None)
    monkeypatch.setattr(Settings, "_node_parser", SentenceSplitter(chunk_size=64, chunk_overlap=0))


@pytest.fixture
def documents() -> list[Document]:
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
