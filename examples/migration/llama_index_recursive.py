"""Recursive retrieval over chunk references: search small chunks, answer with large ones."""

from llama_index.core import VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode
from llama_index_offline import WordVectors, documents, with_spaces

from nodekin import retrievers
from nodekin.adapters.llama_index import NodeGraphRetriever, as_transform
from nodekin.nodegraph import NodeGraph

QUESTION = "Which river runs to the Mediterranean?"


def splitter(size: int) -> SentenceSplitter:
    return SentenceSplitter(
        chunk_size=size,
        chunk_overlap=0,
        chunking_tokenizer_fn=with_spaces,
    )


def before() -> list[str]:
    """Search by LlamaIndex alone."""
    base_nodes = splitter(120).get_nodes_from_documents(documents())
    for number, node in enumerate(base_nodes):
        node.id_ = f"node-{number}"
    all_nodes = []
    for base_node in base_nodes:
        for size in (60, 80):
            for sub_node in splitter(size).get_nodes_from_documents([base_node]):
                all_nodes.append(IndexNode.from_text_node(sub_node, base_node.node_id))
        all_nodes.append(IndexNode.from_text_node(base_node, base_node.node_id))
    index = VectorStoreIndex(all_nodes, embed_model=WordVectors())
    retriever = RecursiveRetriever(
        "vector",
        retriever_dict={"vector": index.as_retriever(similarity_top_k=2)},
        node_dict={node.node_id: node for node in all_nodes + base_nodes},
    )
    return [result.text for result in retriever.retrieve(QUESTION)]


def after() -> list[str]:
    """Search with nodekin: each size is a group, the references are the graph's own."""
    graph = NodeGraph(embed=WordVectors())
    graph.add(documents())
    graph.create_node_group("base", as_transform(splitter(120)))
    graph.create_node_group("chunk 60", as_transform(splitter(60)), parent="base")
    graph.create_node_group("chunk 80", as_transform(splitter(80)), parent="base")
    groups = ["chunk 60", "chunk 80", "base"]
    search = retrievers.RecursiveRetriever(graph, groups, "base", "cosine", top_k=2)
    return [result.text for result in NodeGraphRetriever(search).retrieve(QUESTION)]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
