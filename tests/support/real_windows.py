"""Windows for real questions, which are used to compare the adapters with the native search."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import as_retriever
from support import rankings

COUNT = 100

Windows = dict[str, list[str]]
"""The texts of the windows for each question."""


def native_windows(data: Path, name: str, max_tokens: int) -> tuple[list[str], Windows]:
    """Return the texts of a data set, and the windows for 100 of its questions.

    Args:
        data: The folder that contains the data sets.
        name: The name of the data set in ``rankings.DATA_SETS``.
        max_tokens: The maximum total number of tokens for each question.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rankings, "QUESTIONS", COUNT)
        documents, questions, _ = rankings.DATA_SETS[name](data)
    texts = [document.text for document in documents]
    graph = NodeGraph(progress=False)
    graph.add(texts)
    search = as_retriever(graph)
    windows = {
        question: [result.text for result in search.retrieve(question, max_tokens=max_tokens)]
        for question in questions
    }
    assert len(questions) == COUNT
    return texts, windows
