"""What the page shows of a graph."""

from nodekin.adapters.serve.corpus_pages import place_in
from nodekin.nodegraph import Document, NodeGraph


def test_documents_are_paged_and_filtered(client, graph) -> None:
    graph.add([f"Text {number}." for number in range(120)])
    first = client.get("/api/documents").json()
    assert (first["total"], len(first["documents"])) == (125, 50)
    last = client.get("/api/documents", skip=100).json()
    assert len(last["documents"]) == 25
    assert [d["id"] for d in client.get("/api/documents", like="TEA/").json()["documents"]] == [
        *("tea/green.md", "tea/black.md")
    ]


def test_passage_has_surrounding_text_of_its_document(client, graph) -> None:
    for node in graph.nodes("sentence"):
        record = client.get("/api/passage", node=node.id, reach=7).json()
        assert record["text"] == node.text
        whole = node.root.text
        assert whole[node.start - len(record["before"]) : node.start] == record["before"]
        assert record["more_before"] == node.start - len(record["before"])
        assert record["more_after"] == len(whole) - node.end - len(record["after"])
    assert client.get("/api/passage", node="nowhere").status_code == 404


def test_place_in_omits_the_file_name() -> None:
    graph = NodeGraph(progress=False)
    about = {"page_unit": "chapter", "file_name": "tea.epub", "file_path": "/a/tea.epub"}
    graph.add(Document("# One\n\n\f\n\n# Two\n\nTea.", {**about, "title": "tea"}, id="a"))
    assert [place_in(node) for node in graph.nodes("page")] == ["chapter 1, One", "chapter 2, Two"]
    assert place_in(graph.node("a")) == ""
