"""Compare LlamaIndex's AutoMergingRetriever with nodekin's default retriever.

    cd examples/evaluation
    nodekin eval llama_index_auto_merging:auto_merging default --docs ../data/zh \
        --data ../data/zh_questions.jsonl --field answers=answer
"""

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from small_embeddings import LlamaIndexEmbeddings


def auto_merging(documents) -> AutoMergingRetriever:
    """Search chunks of 128 tokens, and return their parents if most of the children match."""
    whole = [Document(text=d.text, doc_id=d.id) for d in documents]
    nodes = HierarchicalNodeParser.from_defaults(
        chunk_sizes=[1024, 512, 128]
    ).get_nodes_from_documents(whole)
    stored = SimpleDocumentStore()
    stored.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=stored)
    leaves = VectorStoreIndex(
        get_leaf_nodes(nodes), storage_context=context, embed_model=LlamaIndexEmbeddings()
    )
    return AutoMergingRetriever(leaves.as_retriever(similarity_top_k=6), context)
