"""Arguments that take models and splitters of several frameworks."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_text_splitters import CharacterTextSplitter
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import split_sentences

TEXTS = ["Green tea is steamed. Black tea is fermented.", "Coffee is roasted."]


class Encoder:
    def encode(self, texts):
        return [[len(text), 1.0] for text in texts]


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


@pytest.mark.parametrize(
    "embedding", [DeterministicFakeEmbedding(size=8), MockEmbedding(8), Encoder(), lengths]
)
def test_embedding_of_each_framework_is_taken(embedding):
    retriever = NodeGraphRetriever.from_texts(TEXTS, embedding, similarity="cosine", k=1)
    assert len(retriever.invoke("tea")) == 1


@pytest.mark.parametrize(
    "splitter",
    [
        CharacterTextSplitter(separator=". ", chunk_size=25, chunk_overlap=0),
        SentenceSplitter(),
        split_sentences,
    ],
)
def test_splitter_of_each_framework_is_taken(splitter):
    retriever = NodeGraphRetriever.from_texts(TEXTS, child_splitter=splitter, k=1)
    assert retriever.invoke("Which tea is steamed?")[0].page_content == TEXTS[0]


@pytest.mark.parametrize(
    "llm", [FakeListChatModel(responses=["green tea"]), MockLLM(), lambda prompt: "green tea"]
)
def test_language_model_of_each_framework_is_taken(llm):
    retriever = NodeGraphRetriever.from_texts(TEXTS, strategy="rewrite", llm=llm, k=1)
    assert retriever.invoke("Which tea is steamed?")[0].page_content == TEXTS[0]
