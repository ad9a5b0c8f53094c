"""Rerank documents with a cross-encoder. ``NodeGraphReranker`` accepts the same model."""

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_common import Letters, SharedWords, load, names, show
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.adapters.langchain import NodeGraphReranker
from nodekin.retrievers import Reranker

QUESTIONS = ["Who built an arch of stone?", "Which tea is fermented?", "Where do eels swim?"]


def compress(compressor):
    store = InMemoryVectorStore.from_documents(load(), Letters())
    retriever = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=store.as_retriever()
    )
    return [names(retriever.invoke(question)) for question in QUESTIONS]


def before():
    return compress(CrossEncoderReranker(model=SharedWords(), top_n=2))


def after():
    return compress(NodeGraphReranker(Reranker("ModuleReranker", model=SharedWords()), top_n=2))


if __name__ == "__main__":
    show(before, after)
