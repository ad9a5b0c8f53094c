"""The declared options of engines and retrievers."""

import inspect

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine
from nodekin.adapters.llama_index.engine_options import EngineOptions, IndexEngineOptions


def _names(function: object) -> set[str]:
    return {*inspect.signature(function).parameters} - {"self"}  # type: ignore[arg-type]


def test_engine_options_are_arguments_of_engine() -> None:
    assert {*EngineOptions.__annotations__} == _names(NodeGraphQueryEngine) - {"source", "llm"}


def test_index_engine_options_are_arguments_of_retriever_and_engine() -> None:
    both = _names(NodeGraphIndex.as_retriever) | _names(NodeGraphQueryEngine)
    assert {*IndexEngineOptions.__annotations__} == both - {"source", "llm"}
