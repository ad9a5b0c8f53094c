"""LangChain's own models and splitters, given to the core as they are."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.nodegraph import LLMExtractor, NodeGraph
from nodekin.retrievers import Retriever

TEXTS = ["Green tea is steamed.\n\nBlack tea is fermented.", "绿茶是蒸青的。\n\n红茶是发酵的。"]


async def test_embeddings():
    """Random ones: a text is like itself alone."""
    model = DeterministicFakeEmbedding(size=64)
    graph = NodeGraph(embed=model, progress=False)
    graph.add(TEXTS)
    graph.create_node_group("line", lambda text: text.split("\n\n"))
    retriever = Retriever(graph, "line", "cosine", top_k=1)
    for text in ("Black tea is fermented.", "绿茶是蒸青的。"):
        (found,) = retriever.retrieve(text)
        assert (found.node.text, found.score) == (text, 1.0)
        assert await retriever.aretrieve(text) == [found]
    node = graph.nodes("line")[0]
    expected = model.embed_query(node.text)
    assert graph.embedding(node).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        FakeListChatModel(responses=["1. 茶\n2. tea"]),
        FakeListLLM(responses=["茶, tea"]),
        FakeListChatModel(responses=["茶、tea"]) | (lambda message: AIMessage(message.content)),
    ],
)
def test_language_models(model):
    graph = NodeGraph(progress=False)
    graph.add(TEXTS[1])
    graph.create_node_group("keyword", LLMExtractor(model, task="keywords"))
    assert [node.text for node in graph.nodes("keyword")] == ["茶", "tea"]


def test_splitters():
    splitter = RecursiveCharacterTextSplitter(chunk_size=25, chunk_overlap=0)
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    graph.create_node_group("piece", splitter)
    assert [node.text for node in graph.nodes("piece")] == [
        piece for text in TEXTS for piece in splitter.split_text(text)
    ]
    assert all(n.root.text[n.start : n.end] == n.text for n in graph.nodes("piece"))
