import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_documents_are_listed_with_their_length(indexed):
    ran = indexed("list")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows == [["54", "docs/river.txt"], ["77", "docs/tea.md"], ["32", "docs/茶.md"]]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["docs/tea.md"], ["docs/tea.md"]),
        (["*.md"], ["docs/tea.md", "docs/茶.md"]),
        (["docs"], ["docs/river.txt", "docs/tea.md", "docs/茶.md"]),
        (["doc", "*.pdf"], []),
        (["*.txt", "docs/茶.md"], ["docs/river.txt", "docs/茶.md"]),
    ],
)
def test_some_documents(indexed, patterns, names):
    ran = indexed("list", *patterns, "--json")
    assert [document["id"] for document in ran.json["documents"]] == names
    assert ran.json["count"] == len(names)
    assert ran.status == (0 if names else 1)
    assert ran.err == ("" if names else "no document fits 'doc' '*.pdf'\n")


def test_documents_of_a_folder(nodekin):
    assert nodekin("list", "--in", "docs").out.count("\n") == 3


def test_a_document_is_shown_as_it_was_read(indexed, here):
    text = (here / "docs" / "tea.md").read_text("utf-8")
    for name in ("docs/tea.md", "tea.md", str(here / "docs" / "tea.md")):
        assert indexed("show", name).out == text + "\n"


def test_the_lines_around_one(indexed, here):
    (here / "docs" / "long.txt").write_text("\n".join(f"line {n}" for n in range(1, 41)), "utf-8")
    indexed("index")
    lines = indexed("show", "long.txt:20").out.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("10  line 10", "30  line 30", 21)
    assert indexed("show", "long.txt:41").status == 2


def test_a_quotation_in_its_lines_and_cells(indexed, here):
    (here / "docs" / "cups.csv").write_text("tea,cup\ngreen,3\n", "utf-8")
    indexed("index")
    text = (here / "docs" / "tea.md").read_text("utf-8").splitlines()[2]
    ran = indexed("show", "tea.md", "--quote", text)
    assert (ran.status, ran.out.splitlines()[2]) == (0, f"3  {text}")
    assert indexed("show", "cups.csv", "--quote", "GREEN").out == (
        "docs/cups.csv: A2\n| green | 3 |\n"
    )
    ran = indexed("show", "cups.csv", "--quote", "green", "-o", "a.png")
    assert (ran.status, ran.err) == (3, "nodekin: no picture: 'docs/cups.csv' is not a PDF\n")
    (location,) = indexed("show", "cups.csv", "--quote", "3", "--json").json["locations"]
    assert location == {"page": None, "rectangle": None, "lines": None, "cells": "B2"}
    assert indexed("show", "cups.csv", "--quote", "black").status == 1
    ran = indexed("show", "tea.md", "--page", "1")
    assert (ran.status, ran.err) == (3, "nodekin: no picture: 'docs/tea.md' is not a PDF\n")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["tea.md", "--quote", ""], "--quote ''"),
        (["tea.md", "--quote", " …"], "--quote ' …'"),
        (["tea.md", "--page", "1", "--group", "sentence"], "--group 'sentence'"),
        (["tea.md", "-o", "a.png"], "--output 'a.png'"),
        (["tea.md:3", "--quote", "tea"], "'tea.md:3' names a line"),
    ],
)
def test_what_a_picture_can_not_be_made_with(indexed, options, named):
    ran = indexed("show", *options)
    assert (ran.status, ran.out) == (2, "")
    assert named in ran.err


def test_a_quotation_and_a_page_of_what_has_no_picture(indexed, here):
    pytest.importorskip("mammoth")
    (here / "docs" / "手册.docx").write_bytes((EXAMPLES / "手册.docx").read_bytes())
    cells = [{"cell_type": "markdown", "source": text} for text in ("# Tea", "Green.")]
    notebook = json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
    (here / "docs" / "a.ipynb").write_text(notebook, "utf-8")
    indexed("index")
    ran = indexed("show", "手册.docx", "--quote", "绿茶在五月")
    assert (ran.status, "绿茶在五月和九月购买" in ran.out, ran.err) == (0, True, "")
    assert indexed("show", "a.ipynb", "--page", "2").out == "Green.\n"
    ran = indexed("show", "a.ipynb", "--page", "3")
    assert (ran.status, ran.err) == (3, "nodekin: docs/a.ipynb has the cells 1 to 2, not 3\n")
    assert "5  Green." in indexed("show", "a.ipynb", "--page", "2", "--quote", "green").out
    ran = indexed("show", "a.ipynb", "--page", "1", "--quote", "green")
    assert (ran.status, "page 1 of docs/a.ipynb does not have" in ran.err) == (1, True)


def test_a_page_as_a_picture(indexed, here, monkeypatch):
    images = pytest.importorskip("nodekin.adapters.files.page_images")
    monkeypatch.setattr(images, "page_image", lambda node, page, span: f"{page} {span}".encode())
    assert indexed("show", "tea.md", "--page", "2").out == "tea-page-2.png\n"
    assert (here / "tea-page-2.png").read_bytes() == b"2 None"
    ran = indexed("show", "tea.md", "--quote", "Tea", "-o", "a.png", "--json")
    assert ran.json["picture"] == "a.png"
    assert (here / "a.png").read_bytes() == b"None (2, 5)"


def test_the_nodes_of_a_document(indexed):
    ran = indexed("show", "茶.md", "--group", "sentence")
    assert ran.out.splitlines()[:2] == ["docs/茶.md:1  sentence", "# 茶"]
    nodes = indexed("show", "茶.md", "-g", "sentence", "--json").json["nodes"]
    assert [node["text"] for node in nodes][1:] == [
        "陆羽写了《茶经》。",
        "他生活在唐代。",
        "绿茶不经过发酵。",
    ]
    assert nodes[-1]["line"] == 5


def test_a_document_that_is_not_there(indexed):
    ran = indexed("show", "tee.md")
    assert (ran.status, ran.out) == (2, "")
    assert "no document 'tee.md'; it has 'docs/tea.md'" in ran.err


def test_a_name_of_several(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "tea.md").write_text("More tea.", "utf-8")
    indexed("index")
    ran = indexed("show", "tea.md")
    assert ran.status == 2
    assert "'tea.md' is several documents: docs/more/tea.md, docs/tea.md" in ran.err
    assert indexed("show", "docs/more/tea.md").out == "More tea.\n"


def test_control_characters_are_not_sent_to_the_terminal(indexed, here):
    (here / "docs" / "bad.txt").write_text("tea\x1b[2J", "utf-8")
    indexed("index")
    assert indexed("show", "bad.txt").out == "tea\ufffd[2J\n"


def test_a_document_is_removed_and_stays_away(indexed, here):
    ran = indexed("remove", "docs/tea.md")
    assert (ran.status, ran.out) == (0, f"removed 1 document; 2 left in {here / '.nodekin'}\n")
    assert indexed("search", "fermented").status == 1
    assert indexed("index").out.startswith("2 documents")
    assert "1 added" in indexed("index", "docs/tea.md").out
    assert indexed("search", "fermented").status == 0


def test_a_folder_is_removed_with_its_source(indexed, here):
    assert indexed("remove", "docs", "--json").json == {
        "format": 1,
        "command": "remove",
        "removed": 3,
        "documents": 0,
    }
    assert indexed("status", "--json").json["sources"] == []
    (here / "docs" / "new.txt").write_text("Coffee.", "utf-8")
    assert indexed("index").status == 1


def test_a_folder_that_is_gone_is_removed(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "milk.txt").write_text("Milk is white.", "utf-8")
    indexed("index")
    assert indexed("remove", "docs/more", "--json").json["removed"] == 1
    for file in (here / "docs").rglob("*.*"):
        file.unlink()
    (here / "docs" / "more").rmdir()
    (here / "docs").rmdir()
    assert indexed("remove", "docs", "--json").json == {
        "format": 1,
        "command": "remove",
        "removed": 3,
        "documents": 0,
    }


def test_nothing_is_removed_where_a_name_is_unknown(indexed):
    ran = indexed("remove", "docs/tea.md", "coffee.md")
    assert ran.status == 2
    assert "no document 'coffee.md'" in ran.err
    assert indexed("list", "--json").json["count"] == 3
