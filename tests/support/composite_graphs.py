"""Graphs of lines of words, for tests of windows and merging."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from hypothesis import strategies as st

from nodekin.nodegraph import Document, Node, NodeGraph

DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3)
"""Documents as the numbers of words of their lines."""


def words(*documents: str, store: Path | None = None) -> NodeGraph:
    """Return a graph of documents of lines of words."""
    graph = NodeGraph(progress=False, store=store)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add([Document(text, {"number": i}, id=f"d{i}") for i, text in enumerate(documents)])
    return graph


def numbered(shape: Sequence[Sequence[int]]) -> NodeGraph:
    """Return a graph of documents of this shape; all words differ."""
    number = count()
    return words(
        *(
            "\n".join(" ".join(f"w{next(number)}" for _ in range(size)) for size in lines)
            for lines in shape
        )
    )


def pick(graph: NodeGraph, texts: str) -> list[Node]:
    """Return the words with these texts, which are separated by commas."""
    nodes = graph.nodes("word")
    return [next(node for node in nodes if node.text == text) for text in texts.split(",")]
