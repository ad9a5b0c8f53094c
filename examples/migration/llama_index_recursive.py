"""Recursive retrieval over chunk references: search small chunks, answer with large ones.

The program stays, its index is another one, which returns the references as they were given. A
graph whose groups are the sizes needs no references: see ``examples/llama_index_recursive.py``.
"""

from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin.adapters.llama_index import NodeGraphIndex

QUESTION = "Which river runs to the Mediterranean?"


def splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=size,
        chunk_overlap=0,
        chunking_tokenizer_fn=with_spaces,
    )


def program(index_class: type[VectorStoreIndex] | type[NodeGraphIndex]) -> list[str]:
    """Search with an index of LlamaIndex or of nodekin."""
    base_nodes = splitter(120).get_nodes_from_documents(documents())
    for number, node in enumerate(base_nodes):
        node.id_ = f"node-{number}"
    all_nodes = []
    for base_node in base_nodes:
        for size in (60, 80):
            for sub_node in splitter(size).get_nodes_from_documents([base_node]):
                all_nodes.append(IndexNode.from_text_node(sub_node, base_node.node_id))
        all_nodes.append(IndexNode.from_text_node(base_node, base_node.node_id))
    index = index_class(all_nodes, embed_model=WordVectors())
    retriever = RecursiveRetriever(
        "vector",
        retriever_dict={"vector": index.as_retriever(similarity_top_k=2)},
        node_dict={node.node_id: node for node in all_nodes + base_nodes},
    )
    return [result.text for result in retriever.retrieve(QUESTION)]


def before() -> list[str]:
    """Search by LlamaIndex alone."""
    return program(VectorStoreIndex)


def after() -> list[str]:
    """Search with nodekin's index in its place."""
    return program(NodeGraphIndex)


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
