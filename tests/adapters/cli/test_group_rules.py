import pytest

from nodekin.adapters.cli.workspace import GroupRule
from nodekin.nodegraph import Document, NodeGraph


def _passages(text: str, file_name: str, size: int | None = None) -> list[str]:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, {"file_name": file_name}, id=file_name)])
    GroupRule("passage", "passages", size).declare(graph)
    return [node.text for node in graph.nodes("passage")]


def test_code_stays_with_the_sentence_that_introduces_it():
    text = "Boil it so:\n\n    boil(water)\n\n" + "Filling words here. " * 12
    (first, *_) = _passages(text, "tea.md", 20)
    assert first == "Boil it so:\n\n    boil(water)"


@pytest.mark.parametrize(("file_name", "number"), [("tea.md", 2), ("tea.py", 1)])
def test_comments_of_programs_are_no_headings(file_name, number):
    text = "# one\n" + "a b c d e f g\n\n" * 4 + "# two\n" + "a b c d e f g\n"
    parts = _passages(text, file_name, 24)
    assert sum(part.startswith("#") for part in parts) == number
