"""Hybrid search: vectors and words, fused by reciprocal ranks.

LlamaIndex's own BM25Retriever is in the package llama-index-retrievers-bm25.
"""

from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin.adapters.llama_index import NodeGraphIndex

QUESTION = "Which bridge is painted in orange?"
PARSER = SentenceSplitter(chunk_size=60, chunk_overlap=0, chunking_tokenizer_fn=with_spaces)


def before() -> list[str]:
    """Search by LlamaIndex alone."""
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = PARSER.get_nodes_from_documents(documents())
    index = VectorStoreIndex(nodes, embed_model=WordVectors())
    retriever = QueryFusionRetriever(
        [
            index.as_retriever(similarity_top_k=4),
            BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=4),
        ],
        llm=MockLLM(),  # wanted also where there is nothing to ask
        num_queries=1,
        mode="reciprocal_rerank",
        similarity_top_k=2,
        use_async=False,
    )
    return [result.text for result in retriever.retrieve(QUESTION)]


def after() -> list[str]:
    """Search with nodekin: an index of nodes fuses words and vectors by itself."""
    nodes = PARSER.get_nodes_from_documents(documents())
    index = NodeGraphIndex(nodes, embed_model=WordVectors())
    retriever = index.as_retriever(similarity_top_k=2)
    return [result.text for result in retriever.retrieve(QUESTION)]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
