"""Auto-merging: several small chunks of one large chunk are replaced by it."""

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    get_leaf_nodes,
    get_root_nodes,
)
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin.adapters.llama_index import NodeGraphRetriever, as_transform
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import AutoMergeRetriever, Retriever

QUESTION = "Which tea keeps for a year, and is green tea steamed?"
SIZES = {"large": 120, "small": 60}


def splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=size,
        chunk_overlap=0,
        chunking_tokenizer_fn=with_spaces,
    )


def before() -> list[str]:
    """Search by LlamaIndex alone."""
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=[*SIZES],
        node_parser_map={name: splitter(size) for name, size in SIZES.items()},
    )
    nodes = parser.get_nodes_from_documents(documents())
    assert get_root_nodes(nodes)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    storage_context = StorageContext.from_defaults(docstore=docstore)
    leaves = get_leaf_nodes(nodes)
    index = VectorStoreIndex(leaves, storage_context=storage_context, embed_model=WordVectors())
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=3), storage_context)
    return [" ".join(result.text.split()) for result in retriever.retrieve(QUESTION)]


def after() -> list[str]:
    """Search with nodekin: the graph knows the parents, there is no second docstore."""
    graph = NodeGraph(embed=WordVectors())
    graph.add(documents())
    graph.create_node_group("large", as_transform(splitter(SIZES["large"])))
    graph.create_node_group("small", as_transform(splitter(SIZES["small"])), parent="large")
    merging = AutoMergeRetriever(Retriever(graph, "small", "cosine", top_k=3))
    results = NodeGraphRetriever(merging).retrieve(QUESTION)
    return [" ".join(result.text.split()) for result in results]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
