"""Retry a failing retriever, and then fall back to a word search that does not need a model."""

from langchain_common import Letters, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever

QUESTION = "Which tea is fermented?"


class Unreliable(Letters):
    """An embedding model whose server is down. It counts the calls."""

    calls = 0

    def embed_query(self, text):
        self.calls += 1
        raise ConnectionError("no route")


def safe(retriever, fallback, model):
    retried = retriever.with_retry(stop_after_attempt=3, wait_exponential_jitter=False)
    return names(retried.with_fallbacks([fallback]).invoke(QUESTION))[:1], model.calls >= 3


def before():
    model, working = Unreliable(), InMemoryVectorStore.from_documents(load(), Letters())
    store = InMemoryVectorStore(model)
    return safe(store.as_retriever(), working.as_retriever(), model)


def after():
    model, words = Unreliable(), NodeGraphRetriever.from_documents(load())
    meaning = NodeGraphRetriever.from_documents(load(), model, similarity="cosine")
    return safe(meaning, words, model)


if __name__ == "__main__":
    show(before, after)
