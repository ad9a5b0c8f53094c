"""A recursive retriever that searches small chunks and returns the large chunks they refer to."""

from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode
from llama_index_offline import Index, WordVectors, compare, documents, splitter

QUESTION = "Which river runs to the Mediterranean?"


def program(index_class: Index) -> list[str]:
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


if __name__ == "__main__":
    compare(program)
