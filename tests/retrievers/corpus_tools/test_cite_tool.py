"""Quotations of a draft: places in long documents, nearest text, gaps."""

from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import CorpusTools
from nodekin.retrievers.corpus_tools.tool_output import ToolError

FILLER = "Nobody knows how many leaves a bush has in a year. " * 40

LONG = f"{FILLER}The kettle is emptied every evening, and dried. {FILLER}"


@pytest.fixture(scope="module")
def tools() -> CorpusTools:
    graph = NodeGraph(progress=False)
    graph.add(Document(LONG, id="long.txt"))
    graph.add(Document("The kettle is old. 茶经是陆羽写的。", {"secret": True}, id="short.txt"))
    return CorpusTools(graph)


def cited(tools: CorpusTools, draft: str, **arguments: Any) -> list[dict[str, Any]]:
    return [*tools.call("cite", {"draft": draft, **arguments}).entries]


def test_places_in_long_documents_are_exact(tools: CorpusTools) -> None:
    (row,) = cited(tools, "The kettle is emptied every evening, and dried.")
    (place,) = row["spans"]
    assert (row["status"], place["document"]) == ("exact", "long.txt")
    assert LONG[place["start"] : place["end"]] == row["quote"] == place["text"]


def test_several_quotations_have_a_row_each(tools: CorpusTools) -> None:
    rows = cited(tools, "It says “The kettle is old” and “陆羽写的” and “The cup is broken”.")
    assert [row["status"] for row in rows] == ["exact", "exact", "not_found"]


def test_missing_quotation_names_the_nearest_text(tools: CorpusTools) -> None:
    (row,) = cited(tools, "The kettle is emptied every morning, and dried.")
    assert row["status"] == "not_found"
    assert "emptied every evening" in row["nearest"][0]["text"]
    text = tools.call("cite", {"draft": "The kettle is emptied every morning, and dried."}).text
    assert "not found, the nearest text is" in text


def test_only_the_given_document_is_searched(tools: CorpusTools) -> None:
    (row,) = cited(tools, "The kettle is old.", document="long.txt")
    assert row["status"] == "not_found"
    (row,) = cited(tools, "The kettle is old.", document="short.txt")
    assert row["status"] == "exact"


def test_invisible_documents_are_not_cited(tools: CorpusTools) -> None:
    visible = CorpusTools(tools.graph, filters={"secret": {"exists": False}})
    (row,) = cited(visible, "茶经是陆羽写的")
    assert row["status"] == "not_found"
    assert not any(place["document"] == "short.txt" for place in row.get("nearest", ()))


def test_draft_without_words_raises(tools: CorpusTools) -> None:
    with pytest.raises(ToolError, match="must contain words or a quotation"):
        tools.call("cite", {"draft": "…"})
