"""What the page shows of documents and of the pages of a PDF."""

import re

import pytest
from support.page_client import Client, found, text_of

from nodekin.adapters.files import page_images
from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document, NodeGraph, ReadError, split_sentences


def test_documents_are_limited_and_filtered(client, graph) -> None:
    graph.add([f"Text {number}." for number in range(220)])
    first = client.get("/documents")
    assert "Documents: 200 of 225" in text_of(first)
    assert len(found(first)) == 200
    assert found(client.get("/documents", like="TEA/")) == ["tea/green.md", "tea/black.md"]
    assert "No document matches." in text_of(client.get("/documents", like="no such"))


def test_records_of_a_file_are_one_line(tmp_path) -> None:
    rows = "".join(f'{{"text": "Tea {number}."}}\n' for number in range(220))
    (tmp_path / "a & b.jsonl").write_text(rows)
    (tmp_path / "z.txt").write_text("Rivers run.")
    with NodeGraph(tmp_path, progress=False) as graph:
        client = Client(PageApp(graph))
        answer = client.get("/documents")
        assert [each.rpartition("/")[2] for each in found(answer)] == ["a & b.jsonl#1", "z.txt"]
        assert "Documents: 2 of 221" in text_of(answer)
        (link,) = re.findall(r'href="([^"]+)">Records: 220<', answer.text)
        assert len(found(client.get(link.replace("&amp;", "&")))) == 200


def test_number_signs_in_file_names_are_no_records(tmp_path) -> None:
    names = ["#todo.md", "c#.md", "notes#1.md", "notes#2.md"]
    for name in names:
        (tmp_path / name).write_text("Tea.")
    (tmp_path / "teas.jsonl").write_text('{"text": "A."}\n{"text": "B."}\n')
    with NodeGraph(tmp_path, progress=False) as graph:
        answer = Client(PageApp(graph)).get("/documents")
    assert [each.rpartition("/")[2] for each in found(answer)] == [*names, "teas.jsonl#1"]


def test_documents_view_lists_skipped_files_and_notes(tmp_path) -> None:
    (tmp_path / "a.html").write_text("<html><p>Tea.</p><img src='a.png'></html>")
    (tmp_path / "<b>.pdf").write_bytes(b"%PDF-1.7 damaged")
    with NodeGraph(tmp_path, progress=False, on_error="skip") as graph:
        shown = text_of(Client(PageApp(graph)).get("/documents"))
    assert "Skipped files: 1" in shown
    assert "<b>.pdf" in shown
    assert "pictures left out: 1 (first: line 1)" in shown


def test_document_view_marks_a_passage_in_its_surroundings(client, graph) -> None:
    for node in graph.nodes("sentence"):
        shown = text_of(client.get("/document", node=node.id))
        assert " ".join(node.root.text.split()[-3:]).strip("#. ") in shown
    graph.add(Document("a " * 150_000 + "Here. " + "b " * 9, id="long.txt"))
    answer = client.get("/document", node="long.txt", start=300_000, end=300_005)
    assert '<mark id="hit">Here.</mark> ' + "b " * 9 + "</div>" in answer.text
    assert answer.text.count("a ") >= 125_000
    assert 'dir="auto">…<div' in answer.text
    assert client.get("/document", node="nowhere").status_code == 404


@pytest.fixture
def pdf() -> NodeGraph:
    graph = NodeGraph(progress=False)
    metadata = {"page_unit": "page", "page_count": 3}
    text = "Tea is green.\n\n\f\n\nIt is hot. It is good.\n\n\f\n\nEnd."
    graph.add(Document(text, metadata, id="a"))
    graph.create_node_group("sentence", split_sentences)
    return graph


def test_pdf_passage_links_to_its_page(pdf) -> None:
    client = Client(PageApp(pdf))
    answer = client.get("/document", node=pdf.nodes("sentence")[2].id)
    (link,) = re.findall(r'href="([^"]+)">Show the page', answer.text)
    assert link.endswith("page=2")
    page = client.get(link.replace("&amp;", "&"))
    assert 'alt="Page 2 of 3 of a, with the passage marked"' in page.text
    assert {"Previous page", "Next page", "Show the text"} <= {
        *re.findall(r">([^<]+)</a>", page.text)
    }
    for address, word, number in (("page=1", "Previous", 2), ("page=3", "Next", 2)):
        page = client.get(link.replace("&amp;", "&").replace("page=2", address))
        assert f"{word} page" not in page.text
        assert f"page={number}" in page.text
    pdf.add(Document("Tea.", id="b"))
    assert "Show the page" not in client.get("/document", node="b").text


def test_picture_or_error_is_returned(pdf, monkeypatch) -> None:
    def page_image(node, page, span) -> bytes:
        if page == 3:
            raise ReadError("a.pdf has changed since it was read")
        return f"{node.text} {page} {span}".encode()

    monkeypatch.setattr(page_images, "page_image", page_image)
    client = Client(PageApp(pdf))
    node = pdf.nodes("sentence")[0].id
    answer = client.get("/picture", node=node)
    assert answer.content == b"Tea is green. None None"
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["cache-control"] == "no-store"
    answer = client.get("/picture", node=node, page=2, start=4, end=9)
    assert answer.content == b"Tea is green. 2 (4, 9)"
    answer = client.get("/picture", node=node, page=3)
    assert answer.status_code == 400
    assert "a.pdf has changed since it was read" in answer.text
    assert client.get("/picture", node="no such node").status_code == 404
