"""Result records with the evidence shown on the page."""

import pytest
from page_client import Client

from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document
from nodekin.retrievers import Retriever


def test_result_has_query_hit_lift_and_rank(graph) -> None:
    client = Client(PageApp(Retriever(graph, "sentence", target="passage")))
    found = client.post("/api/search", query="fermented").json()
    (result,) = found["results"]
    assert (result["rank"], result["group"], result["document"]) == (1, "passage", "tea/black.md")
    (match,) = result["matches"]
    assert (match["query"], match["similarity"], match["group"]) == (
        *("fermented", "bm25"),
        "sentence",
    )
    assert not match["itself"]
    before, hit, after = result["text"]
    assert hit == match["text"] == "Black tea is fermented."
    assert before + hit + after == "# Black tea\n\nBlack tea is fermented. Its leaves are dark."
    assert found["stages"]


def test_text_with_lone_surrogate_is_shown(client, graph) -> None:
    graph.add("Half a \ud83c character.")
    found = client.post("/api/search", query="half character").json()
    assert "Half a ?" in "".join(found["results"][0]["text"])


ROW = "| black | 95 degrees |"


@pytest.mark.parametrize(
    ("hit", "before"),
    [
        ("Kettles boil.", f"…\n\n{'y' * 198}. "),
        ("A cup is small.", "…\n\n"),
        (ROW, "…\n\n| tea | water |\n|---|---|\n| green | 80 degrees |\n"),
    ],
)
def test_matching_text_is_in_the_first_lines(graph, hit, before) -> None:
    filling = f"{'y' * 999}. Kettles boil.\n\nA cup is small.\n\n{'z ' * 200}\n\n"
    text = f"{filling}| tea | water |\n|---|---|\n| green | 80 degrees |\n{ROW}\n"
    graph.add(Document(text, id="long.md"))
    graph.create_node_group("part", lambda text: [hit] if hit in text else [])
    client = Client(PageApp(Retriever(graph, "part", target="ROOT")))
    found = client.post("/api/search", query=hit).json()
    assert found["results"][0]["text"][:2] == [before, hit]
