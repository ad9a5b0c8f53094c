"""The page of a PDF as a picture, over HTTP."""

import pytest
from page_client import Client

from nodekin.adapters.files import page_images
from nodekin.adapters.serve.page_app import page_of
from nodekin.nodegraph import Document, NodeGraph, ReadError, split_sentences


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    metadata = {"page_unit": "page", "page_count": 3}
    graph.add(
        Document("Tea is green.\n\n\f\n\nIt is hot. It is good.\n\n\f\n\nEnd.", metadata, id="a")
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def test_passage_has_page_number_and_page_count(graph: NodeGraph) -> None:
    client = Client(page_of(graph))
    node = graph.nodes("sentence")[2]
    record = client.get("/api/passage", node=node.id).json()
    assert (record["page"], record["pages"], record["text"]) == (2, 3, "It is good.")
    record = client.get("/api/passage", node=node.id, start=2, end=5).json()
    assert (record["page"], record["text"]) == (1, "a i")
    graph.add(Document("Tea.", id="b"))
    assert client.get("/api/passage", node="b").json()["pages"] == 0


def test_picture_or_error_message_is_returned(graph: NodeGraph, monkeypatch) -> None:
    def page_image(node, page, span) -> bytes:
        if page == 3:
            raise ReadError("a.pdf has changed since it was read")
        return f"{node.text} {page} {span}".encode()

    monkeypatch.setattr(page_images, "page_image", page_image)
    client = Client(page_of(graph))
    node = graph.nodes("sentence")[0].id
    response = client.get("/api/picture", node=node)
    assert (response.content, response.headers["content-type"]) == (
        b"Tea is green. None None",
        "image/png",
    )
    assert response.headers["cache-control"] == "no-store"
    response = client.get("/api/picture", node=node, page=2, start=4, end=9)
    assert response.content == b"Tea is green. 2 (4, 9)"
    response = client.get("/api/picture", node=node, page=3)
    assert (response.status_code, response.json()["error"]) == (
        400,
        "a.pdf has changed since it was read",
    )
    assert client.get("/api/picture", node="no such node").status_code == 404
    assert client.get("/api/picture", node=node, page="-1").status_code == 400
