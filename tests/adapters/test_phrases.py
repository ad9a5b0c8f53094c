"""Phrases in quotation marks, and names in other spellings, in programs of both frameworks."""

import pytest
from langchain_core.documents import Document
from llama_index.core import Document as LlamaIndexDocument

from nodekin.adapters.langchain import NodeGraphVectorStore
from nodekin.adapters.llama_index import NodeGraphIndex

TEXTS = [
    "Coding is dead. Be gentle with users, say coding teachers.",
    "We teach Gentle-Coding to beginners in long evening classes that last for a whole term.",
    "Pump E-105 runs version 3.1.0.",
    "Pump E-150 runs version 1.3.0. E 1 0 5 3 1 0.",
]


def found_by_langchain(query: str) -> list[str]:
    store = NodeGraphVectorStore()
    store.add_documents([Document(text) for text in TEXTS])
    return [document.page_content for document in store.as_retriever().invoke(query)]


def found_by_llama_index(query: str) -> list[str]:
    index = NodeGraphIndex.from_documents([LlamaIndexDocument(text=text) for text in TEXTS])
    return [result.text for result in index.as_retriever(similarity_top_k=4).retrieve(query)]


@pytest.mark.parametrize("found", [found_by_langchain, found_by_llama_index])
def test_passages_with_the_phrase_rank_first(found) -> None:
    texts = found('which teachers are "gentle coding" users?')
    assert texts[0] == TEXTS[1]
    assert TEXTS[0] in texts


@pytest.mark.parametrize("found", [found_by_langchain, found_by_llama_index])
@pytest.mark.parametrize("query", ["E105", "3.1.0", "e-105 pump"])
def test_name_ranks_its_passage_before_its_pieces(found, query: str) -> None:
    assert found(query)[0] == TEXTS[2]
