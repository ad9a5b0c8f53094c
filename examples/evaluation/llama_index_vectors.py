"""Compare LlamaIndex's VectorStoreIndex with nodekin's default retriever.

    cd examples/evaluation
    nodekin eval llama_index_vectors:vector_index default --docs ../data/zh \
        --data ../data/zh_questions.jsonl --field answers=answer
"""

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import BaseRetriever
from small_embeddings import LlamaIndexEmbeddings


def vector_index(documents) -> BaseRetriever:
    """Return a retriever that searches a vector index of the documents."""
    whole = [Document(text=d.text, doc_id=d.id) for d in documents]
    splitter = SentenceSplitter(chunk_size=256, chunk_overlap=20)
    index = VectorStoreIndex.from_documents(
        whole, transformations=[splitter], embed_model=LlamaIndexEmbeddings()
    )
    return index.as_retriever()
