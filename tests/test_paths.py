"""The number of source files entered by a query."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import nodekin.nodegraph
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import MultiStepRetriever, QueryEngine, Retriever

PACKAGES = Path(nodekin.nodegraph.__file__).resolve().parent.parent
PREFIXES = tuple(f"{PACKAGES / name}/" for name in ("nodegraph", "retrievers", "adapters"))

STEPS = """Answer: unknown
Answered: no
Next question: Who wrote the play Brand?
---
Answer: Henrik Ibsen
Answered: no
Next question: Where was Henrik Ibsen born?
---
Answer: Skien
Answered: yes
Next question: none"""


def files_entered(call: Callable[[], object]) -> set[str]:
    """Call a function; return the files of the package whose functions it enters."""
    files: set[str] = set()

    def profile(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PREFIXES):
            files.add(str(Path(path).relative_to(PACKAGES)))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return files


@pytest.fixture
def retriever() -> Iterator[Retriever]:
    with NodeGraph(progress=False) as graph:
        graph.add(
            [
                "Brand is a play. It was written by Henrik Ibsen.",
                "Henrik Ibsen was born in Skien. It is a town.",
                "Rivers run to the sea. The Nile is long.",
            ]
        )
        graph.create_node_group("sentence", lambda text: text.split(". "))
        retriever = Retriever(graph, "sentence", target="ROOT", top_k=2)
        retriever.retrieve("the play Brand")
        yield retriever


def warm_query(retriever: Retriever) -> Callable[[], object]:
    return lambda: retriever.retrieve("Where was Ibsen born?")


def multi_step(retriever: Retriever) -> Callable[[], object]:
    replies = iter(STEPS.split("---\n") * 2)
    steps = MultiStepRetriever(retriever, lambda prompt: next(replies))
    question = "Where was the author of Brand born?"
    steps.retrieve(question)
    return lambda: steps.retrieve(question)


def answer(retriever: Retriever) -> Callable[[], object]:
    engine = QueryEngine(retriever, lambda prompt: "In Skien [1].")
    engine.query("Where was Ibsen born?")
    return lambda: engine.query("Where was Ibsen born?")


def langchain(retriever: Retriever) -> Callable[[], object]:
    from nodekin.adapters.langchain import NodeGraphRetriever

    adapter = NodeGraphRetriever(retriever=retriever)
    adapter.invoke("Where was Ibsen born?")
    return lambda: adapter.invoke("Where was Ibsen born?")


def llama_index(retriever: Retriever) -> Callable[[], object]:
    from nodekin.adapters.llama_index import NodeGraphRetriever

    adapter = NodeGraphRetriever(retriever)
    adapter.retrieve("Where was Ibsen born?")
    return lambda: adapter.retrieve("Where was Ibsen born?")


@pytest.mark.parametrize("path", [warm_query, multi_step, answer, langchain, llama_index])
def test_query_enters_few_source_files(retriever: Retriever, path, record_property) -> None:
    files = files_entered(path(retriever))
    assert "retrievers/search.py" in files
    record_property("files entered", len(files))  # a report: one file more fails nothing
