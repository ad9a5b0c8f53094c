"""Graphs of lines and words, for testing windows and merging."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from hypothesis import strategies as st

from nodekin.nodegraph import Document, Node, NodeGraph

DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3)
"""Random documents, each represented by the number of words in each line."""


def words(*documents: str, store: Path | None = None) -> NodeGraph:
    """Return a graph of documents that are split into lines and words."""
    graph = NodeGraph(progress=False, store=store)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add([Document(text, {"number": i}, id=f"d{i}") for i, text in enumerate(documents)])
    return graph


def numbered(shape: Sequence[Sequence[int]]) -> NodeGraph:
    """Return a graph of documents with the given shape, in which all words are different."""
    number = count()
    return words(
        *(
            "\n".join(" ".join(f"w{next(number)}" for _ in range(size)) for size in lines)
            for lines in shape
        )
    )


def pick(graph: NodeGraph, texts: str) -> list[Node]:
    """Return the word nodes with the given texts, which are separated by commas."""
    nodes = graph.nodes("word")
    return [next(node for node in nodes if node.text == text) for text in texts.split(",")]
