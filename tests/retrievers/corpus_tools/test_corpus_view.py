"""The visible part of a graph: documents, passages, and the default search."""

import json
import unicodedata
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import CorpusTools, DefaultRetriever
from nodekin.retrievers.corpus_tools.corpus_view import CorpusView
from nodekin.retrievers.corpus_tools.tool_output import ToolError


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    for name in ("teas/green.md", "teas/black.md", "old/black.md", "teas.md"):
        text = f"# {name}\n\n" + "Tea is a drink. " * 400 + f"\n\n# End\n\nThe end of {name}."
        graph.add(Document(text, {"folder": name.partition("/")[0]}, id=name))
    DefaultRetriever(graph)  # declares the group of passages
    return graph


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("", ["teas/green.md", "teas/black.md", "old/black.md", "teas.md"]),
        ("teas", ["teas/green.md", "teas/black.md"]),
        ("teas/", ["teas/green.md", "teas/black.md"]),
        ("old/black.md", ["old/black.md"]),
        ("none", []),
    ],
)
def test_documents_are_listed_by_folder(folder: str, expected: list[str], graph: NodeGraph) -> None:
    view = CorpusView(graph, "passage")
    assert [document.id for document in view.documents(folder)] == expected


def test_document_is_found_by_id_or_end_of_path(graph: NodeGraph) -> None:
    view = CorpusView(graph, "passage")
    assert view.document("teas.md").id == "teas.md"
    assert view.document("green.md").id == "teas/green.md"
    with pytest.raises(ToolError, match="is several documents; give one of these"):
        view.document("black.md")
    with pytest.raises(ToolError, match=r"unknown document 'gren\.md'; known: .*green"):
        view.document("gren.md")


def test_documents_outside_the_conditions_are_invisible(graph: NodeGraph) -> None:
    view = CorpusView(graph, "passage", {"folder": "teas"})
    assert view.document("black.md").id == "teas/black.md"
    with pytest.raises(ToolError, match=r"unknown document 'old/black\.md'"):
        view.document("old/black.md")
    found = view.retriever.retrieve("The end of old/black.md", top_k=9)
    assert {result.node.document_id for result in found} == {"teas/green.md", "teas/black.md"}


def test_passage_at_contains_the_position(graph: NodeGraph) -> None:
    view = CorpusView(graph, "passage")
    document = view.document("teas.md")
    first, *_, last = view.passages(document)
    assert view.passage_at(document, 0) == first
    assert view.passage_at(document, len(document.text) - 1) == last
    assert view.passage_at(document, 10**9) == last


def test_outline_folds_records_of_a_file(tmp_path: Path) -> None:
    rows = [json.dumps({"id": f"k{n}", "text": f"Tea {n}."}) for n in range(30)]
    (tmp_path / "teas.jsonl").write_text("\n".join(rows))
    (tmp_path / "a.md").write_text("Tea.")
    tools = CorpusTools(NodeGraph(tmp_path, progress=False))
    folder = tmp_path.name
    outline = tools.call("outline", {})
    assert [entry["document"] for entry in outline.entries] == [
        f"{folder}/a.md",
        f"{folder}/teas.jsonl",
    ]
    assert outline.text.endswith("30 records)")
    records = tools.call("outline", {"document": f"{folder}/teas.jsonl"})
    assert [entry["document"] for entry in records.entries] == [
        f"{folder}/teas.jsonl#k{n}" for n in range(30)
    ]
    with pytest.raises(ToolError, match=r"has 30 records; give one: '.*/teas.jsonl#k0'"):
        tools.call("read", {"document": f"{folder}/teas.jsonl"})


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_tools_ignore_unicode_form(stored: str, asked: str) -> None:
    def old(text: str) -> str:
        return unicodedata.normalize(stored, text)  # type: ignore[arg-type]

    def new(text: str) -> str:
        return unicodedata.normalize(asked, text)  # type: ignore[arg-type]

    graph = NodeGraph(progress=False)
    text = old("# Über\n\nIn Köln: José García signed. 한국어도 있다.")
    graph.add([Document(text, id=old("Verträge/José.md")), Document("Bob.", id="b.md")])
    tools = CorpusTools(graph)
    for pattern in ("José García", "KÖLN", "한국"):
        (match,) = tools.call("grep", {"pattern": new(pattern)}).entries
        assert text[match["start"] : match["end"]].casefold() == old(pattern).casefold()
        assert match["text"].casefold() == old(pattern).casefold()
    assert not tools.call("grep", {"pattern": "Jose"}).entries
    for name in ("Verträge/José.md", "José.md"):
        assert tools.call("read", {"document": new(name)}).entries[0]["text"] == text
    (heading,) = tools.call("outline", {"document": new("Verträge/José.md")}).entries
    assert heading["heading"] == old("Über")
    (listed,) = tools.call("outline", {"document": new("Verträge/")}).entries
    assert listed["document"] == old("Verträge/José.md")
    (inside,) = tools.call("grep", {"pattern": "signed", "document": new("Verträge")}).entries
    assert inside["document"] == old("Verträge/José.md")
