"""Documents, models and components for comparing LangChain's own classes with nodekin classes."""

from itertools import pairwise

import numpy as np
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import Field

from nodekin.adapters.langchain import NodeGraphRetriever, as_transform
from nodekin.nodegraph import NodeGraph
from support.letters import Letters

DOCUMENTS = [
    Document(
        "Green tea is steamed. Black tea is fermented. Tea comes from leaves.",
        metadata={"source": "docs/tea.md", "topic": "tea", "year": 1999}, id="tea",
    ),
    Document(
        "Rivers run to the sea. The sea is salty. Fish live in both.",
        metadata={"source": "docs/river.md", "topic": "water", "year": 2005}, id="river",
    ),
    Document(
        "绿茶是蒸青的。红茶是发酵的。茶来自云南的大树。",
        metadata={"source": "docs/茶.md", "topic": "tea", "year": 2010}, id="茶",
    ),
    Document(
        "Coffee is roasted. Coffee comes from beans. It is drunk hot.",
        metadata={"source": "docs/coffee.md", "topic": "coffee", "year": 2015}, id="coffee",
    ),
]  # fmt: skip
QUESTIONS = ["Which tea is fermented?", "Where do rivers run?", "红茶: hot or salty?", "hot beans"]


LOADED = [
    Document("Green tea is steamed.", metadata={"source": "docs/tea.md", "page": 1}, id="1"),
    Document("Black tea is fermented.", metadata={"source": "docs/tea.md"}, id="2"),
    Document("红茶是发酵的。", metadata={"source": "docs/zh.md", "tags": ["茶"]}, id="3"),
    Document("Coffee is roasted.", metadata={"source": "docs/coffee.md", "score": 7}, id="4"),
]

QUERIES = ["What is tea?", "tea, black or green", "fermented leaves"]


class Pairs(Embeddings):
    """An embedding model that counts pairs of characters, so that cosines are rarely equal."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        counts = np.full(1024, 0.001)
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts.tolist()


class Recording(FakeListChatModel):
    """A chat model that records the messages it receives."""

    sent: list = Field(default_factory=list)

    def _call(self, messages, *args, **kwargs):
        self.sent.append([(message.type, message.content) for message in messages])
        return super()._call(messages, *args, **kwargs)

    def _stream(self, messages, *args, **kwargs):
        self.sent.append([(message.type, message.content) for message in messages])
        yield from super()._stream(messages, *args, **kwargs)

    async def _astream(self, messages, *args, **kwargs):
        for chunk in self._stream(messages, *args, **kwargs):
            yield chunk


TEMPLATES = [
    "Search for: {question}",
    "Search for: {query}",
    PromptTemplate.from_template("Search for: {question}"),
    ChatPromptTemplate.from_template("Search for: {question}"),
    ChatPromptTemplate([("system", "You search."), ("human", "Search for: {question}")]),
]


class Listed(BaseRetriever):
    """A retriever that returns the same documents for every query."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


class SharedLetters(BaseCrossEncoder):
    """A cross-encoder that scores a pair of texts by the characters that they have in common."""

    def score(self, text_pairs):
        return [float(len({*query} & {*text}) / len({*text})) for query, text in text_pairs]


def splitter(size=26):
    """Return a LangChain splitter that splits texts of both languages into sentences."""
    return RecursiveCharacterTextSplitter(
        separators=[". ", "。", ""], chunk_size=size, chunk_overlap=0, keep_separator="end"
    )


def theirs(documents=DOCUMENTS):
    """Return a LangChain vector store that contains the documents."""
    store = InMemoryVectorStore(Pairs())
    store.add_documents(documents)
    return store


def ids(documents):
    return [document.id for document in documents]


def texts(documents):
    return [document.page_content for document in documents]


def plain_retriever(retriever, **settings):
    """Return a LangChain retriever whose documents do not contain scores."""
    return NodeGraphRetriever(retriever, **{"score_key": None, **settings})


def peer_graph():
    """Return a graph that contains the documents and their child nodes."""
    graph = NodeGraph(embed=Pairs(), progress=False)
    graph.add(DOCUMENTS)
    graph.create_node_group("child", as_transform(splitter()))
    return graph


def loaded_graph():
    """Return a graph with documents as they are created by loaders."""
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(LOADED)
    return graph
