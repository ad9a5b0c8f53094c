"""Order what a search found by a cross-encoder, and return the best.

After: a reranking around the same search, with the same cross-encoder.
"""

import re

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_common import Letters, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import RerankRetriever

QUESTIONS = ["Who built an arch of stone?", "Which tea is fermented?", "Where do eels swim?"]


class SharedWords(BaseCrossEncoder):
    """Count shared words, in place of a model like BAAI/bge-reranker-v2-m3."""

    def score(self, text_pairs):
        """Return a number for each pair of a question and a text."""
        pairs = [({*words(query)}, {*words(text)}) for query, text in text_pairs]
        return [len(query & text) / len(text) for query, text in pairs]


def words(text):
    return re.findall(r"\w+", text.lower())


def existing():
    store = InMemoryVectorStore.from_documents(load(), Letters())
    return store.as_retriever(search_kwargs={"k": 4})


def before():
    retriever = ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=SharedWords(), top_n=2),
        base_retriever=existing(),
    )
    return [names(retriever.invoke(question)) for question in QUESTIONS]


def after():
    search = RerankRetriever(existing(), "ModuleReranker", model=SharedWords(), top_k=2)
    retriever = NodeGraphRetriever(retriever=search)
    return [names(retriever.invoke(question)) for question in QUESTIONS]


if __name__ == "__main__":
    show(before, after)
