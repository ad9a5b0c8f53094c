"""Codes in a question are found by their words, however near other passages are by vectors."""

import hashlib
from collections.abc import Sequence

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever


def noise(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors in which each text is near another text by chance."""
    return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()] for text in texts]


@pytest.mark.parametrize(
    ("texts", "question", "expected"),
    [
        (
            [f"Version {n}.{n % 7}.{n % 5} adds the large switch." for n in range(1, 60)],
            "what changed in version 31.3.1?",
            "Version 31.3.1 adds the large switch.",
        ),
        (
            [f"W-{n}: the brass gasket does not answer." for n in range(100, 160)],
            "how do I repair error W126?",
            "W-126: the brass gasket does not answer.",
        ),
        (
            [f"发票号 FP{n:04d} 已经付款。" for n in range(60)],
            "FP0042 是什么时候付的？",
            "发票号 FP0042 已经付款。",
        ),
    ],
)
def test_code_is_found_despite_near_vectors(texts: list[str], question: str, expected: str) -> None:
    graph = NodeGraph(embed=noise, progress=False)
    graph.add(texts)
    retriever = DefaultRetriever(graph)
    assert retriever.retrieve(question)[0].node.text == expected
