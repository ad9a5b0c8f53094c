"""Files of all formats on the command line: pages, tables, what is left out."""

from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


@pytest.fixture
def files(here) -> Path:
    folder = here / "files"
    folder.mkdir()
    for file in SAMPLES.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_the_page_and_the_section_are_named(nodekin, files) -> None:
    assert nodekin("index", "files", "-g", "passage=passages:60").status == 0
    shown = nodekin("search", "kettle vinegar", "-k", "1").out
    assert "files/handbook.pdf, page 2, 2.1 Water" in shown.split("\n")[0]
    found = nodekin("search", "kettle vinegar", "-k", "1", "--json").json["results"]
    assert found[0]["place"] == "handbook.pdf, page 2, 2.1 Water"


def test_tables_and_pages_are_groups_without_a_declaration(nodekin, files) -> None:
    nodekin("index", "files")
    found = nodekin("search", "龙井 祁红", "--group", "table", "--json").json["results"]
    assert [result["place"] for result in found] == ["手册.docx, 1.2 价格"]
    found = nodekin("search", "freight", "--group", "sentence", "--target", "page", "--json").json[
        "results"
    ]
    assert [result["place"] for result in found] == ["handbook.pdf, page 2, 2 Serving"]


def test_what_is_left_out_is_told_in_one_line_and_strict_makes_it_an_error(nodekin, files) -> None:
    (files / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))
    (files / "empty.pdf").write_bytes(b"")
    (files / "broken.docx").write_bytes((files / "手册.docx").read_bytes()[:3000])
    (files / ".gitignore").write_text("*.log\n")
    (files / "a.log").write_text("ignored")
    ran = nodekin("index", "files")
    assert ran.status == 5
    assert ran.out.split("\n")[0] == (
        "2 read, 3 skipped: 1 damaged, 1 empty, 1 old .doc file; 1 hidden, 1 ignored"
    )
    assert "broken.docx" in ran.err
    assert "soffice --headless --convert-to docx 'old.doc'" in ran.err
    skipped = nodekin("index", "--json").json["skipped"]
    assert skipped[str(files / "old.doc")] == "old .doc file"
    assert skipped[str(files / "empty.pdf")] == "empty"
    ran = nodekin("index", "files", "--strict", "--rebuild")
    assert ran.status == 3
    assert "1 old .doc file" in ran.err
