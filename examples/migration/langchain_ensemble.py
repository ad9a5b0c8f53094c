"""Fuse a search by words with one by meaning, with weights; the number of results is configurable.

After: the two lines of the retrievers are nodekin's; LangChain's ensemble stays, or becomes a
``FusionRetriever``, whose branches run at once. The best of each question is compared:
``BM25Retriever`` also returns what has no word of the question, until it has its k.
"""

from langchain_classic.retrievers import EnsembleRetriever
from langchain_common import Letters, load, names, show
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import FusionRetriever

QUESTIONS = ["black tea fermented", "Nile rivers", "arch of stone"]
FIELD = ConfigurableField(id="k")


def lower(text):
    return text.lower().replace(".", "").split()


def before():
    from langchain_community.retrievers import BM25Retriever  # is no longer maintained

    words = BM25Retriever.from_documents(load(), k=4, preprocess_func=lower)
    vectors = InMemoryVectorStore.from_documents(load(), Letters())
    ensemble = EnsembleRetriever(retrievers=[words, vectors.as_retriever()], weights=[0.7, 0.3])
    return [names(ensemble.invoke(question))[:1] for question in QUESTIONS]


def after():
    words = NodeGraphRetriever.from_documents(load(), group="ROOT")
    vectors = NodeGraphRetriever.from_documents(load(), Letters(), group="ROOT")
    fusion = FusionRetriever([words, vectors], weights=[0.7, 0.3])
    retriever = NodeGraphRetriever(retriever=fusion).configurable_fields(k=FIELD)
    best = {"configurable": {"k": 1}}
    return [names(retriever.invoke(question, best)) for question in QUESTIONS]


if __name__ == "__main__":
    show(before, after)
