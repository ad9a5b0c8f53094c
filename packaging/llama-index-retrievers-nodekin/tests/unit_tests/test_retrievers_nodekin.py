"""Run LlamaIndex's checks for integration packages, and check the names in the package."""

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import BaseQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import TransformComponent
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.retrievers import nodekin

BASES = {
    "FileReader": BaseReader,
    "LiftPostprocessor": BaseNodePostprocessor,
    "NodeGraphIndex": BaseIndex,
    "NodeGraphQueryEngine": BaseQueryEngine,
    "NodeGraphReranker": BaseNodePostprocessor,
    "NodeGraphRetriever": BaseRetriever,
    "NodeGraphTransform": TransformComponent,
    "NodeGraphVectorStore": BasePydanticVectorStore,
}

OTHERS = [
    "NodeGraphQueryTransform",
    "NodeGraphQuestionGenerator",
    "as_index",
    "as_transform",
    "corpus_toolkit",
    "export_nodes",
]


@pytest.mark.parametrize("name", BASES)
def test_class_has_base_of_llama_index(name: str) -> None:
    names_of_base_classes = [base.__name__ for base in getattr(nodekin, name).__mro__]
    assert BASES[name].__name__ in names_of_base_classes


def test_package_has_expected_names() -> None:
    assert sorted(nodekin.__all__) == sorted([*BASES, *OTHERS])
    assert [getattr(nodekin, name) for name in nodekin.__all__]


def test_class_name_is_the_name_of_the_class() -> None:
    for name in ("NodeGraphReranker", "LiftPostprocessor", "NodeGraphTransform"):
        assert getattr(nodekin, name).class_name() == name
