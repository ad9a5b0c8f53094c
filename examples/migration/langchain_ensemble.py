"""Combine a search by words and a search by meaning with weights.

Both retrievers are replaced with nodekin retrievers. Each of them returns its best page, and
``FusionRetriever`` queries both in parallel.
"""

from langchain_classic.retrievers import EnsembleRetriever
from langchain_common import Letters, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import FusionRetriever

QUESTIONS = ["black tea fermented", "Nile rivers", "arch of stone"]


def lower(text):
    return text.lower().replace(".", "").split()


def before():
    from langchain_community.retrievers import BM25Retriever  # this package is no longer maintained

    words = BM25Retriever.from_documents(load(), k=4, preprocess_func=lower)
    vectors = InMemoryVectorStore.from_documents(load(), Letters())
    ensemble = EnsembleRetriever(retrievers=[words, vectors.as_retriever()], weights=[0.7, 0.3])
    return [names(ensemble.invoke(question))[:1] for question in QUESTIONS]


def after():
    words = NodeGraphRetriever.from_documents(load(), k=4)
    vectors = NodeGraphRetriever.from_documents(load(), Letters(), similarity="cosine")
    fusion = NodeGraphRetriever(FusionRetriever([words, vectors], weights=[0.7, 0.3]))
    return [names(fusion.invoke(question))[:1] for question in QUESTIONS]


if __name__ == "__main__":
    show(before, after)
