"""Auto-merging: several small chunks of one large chunk are replaced by it.

The program stays, its index is another one: the parents are read from its storage context.
"""

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin.adapters.llama_index import NodeGraphIndex

QUESTION = "Which tea keeps for a year, and is green tea steamed?"
SIZES = {"large": 120, "small": 60}


def splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=size,
        chunk_overlap=0,
        chunking_tokenizer_fn=with_spaces,
    )


def program(index_class: type[VectorStoreIndex] | type[NodeGraphIndex]) -> list[str]:
    """Search with an index of LlamaIndex or of nodekin."""
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=[*SIZES],
        node_parser_map={name: splitter(size) for name, size in SIZES.items()},
    )
    nodes = parser.get_nodes_from_documents(documents())
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    storage_context = StorageContext.from_defaults(docstore=docstore)
    leaves = get_leaf_nodes(nodes)
    index = index_class(leaves, storage_context=storage_context, embed_model=WordVectors())
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=2), storage_context)
    return [" ".join(result.text.split()) for result in retriever.retrieve(QUESTION)]


def before() -> list[str]:
    """Search by LlamaIndex alone."""
    return program(VectorStoreIndex)


def after() -> list[str]:
    """Search with nodekin's index in its place."""
    return program(NodeGraphIndex)


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
