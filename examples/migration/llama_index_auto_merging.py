"""An auto-merging retriever, which replaces several small chunks with their common parent."""

from llama_index.core import StorageContext
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index_offline import Index, WordVectors, compare, documents, splitter

QUESTION = "Which tea keeps for a year, and is green tea steamed?"


def program(index_class: Index) -> list[str]:
    parser = HierarchicalNodeParser.from_defaults(
        node_parser_ids=["large", "small"],
        node_parser_map={"large": splitter(120), "small": splitter(60)},
    )
    nodes = parser.get_nodes_from_documents(documents())
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=docstore)
    leaves = get_leaf_nodes(nodes)
    index = index_class(leaves, storage_context=context, embed_model=WordVectors())
    retriever = AutoMergingRetriever(index.as_retriever(similarity_top_k=2), context)
    return [" ".join(result.text.split()) for result in retriever.retrieve(QUESTION)]


if __name__ == "__main__":
    compare(program)
