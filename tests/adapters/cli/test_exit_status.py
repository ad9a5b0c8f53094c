from pathlib import Path

import pytest

from nodekin.adapters.cli.exit_status import _HINTS, printable
from nodekin.nodegraph.workers import process_workers

FILES = Path(__file__).parents[3] / "examples" / "files"


def test_no_remedy_names_a_method(nodekin, here):
    nodekin("index", "docs")
    (here / "more" / "docs").mkdir(parents=True)
    (here / "more" / "docs" / "tea.md").write_text("Other tea.", encoding="utf-8")
    told = [
        nodekin("search", "tea", "-g", "nothing"),
        nodekin("index", "more/docs"),
    ]
    (here / "docs").rename(here / "gone")
    told.append(nodekin("index"))
    (here / ".nodekin" / "graph.sqlite").write_text("garbage")
    told.append(nodekin("search", "tea"))
    assert "--group" in told[0].err
    assert "--store" in told[1].err
    assert "--rebuild" in told[3].err
    for ran in told:
        assert ran.status != 0
        assert len(ran.err.splitlines()) == 1
        assert not any(
            name in ran.err
            for name in ("graph.add", "graph.remove", "create_node_group", "Document(")
        )


def test_a_file_without_a_reader(nodekin, here):
    (here / "docs" / "picture.png").write_bytes(b"\x89PNG\0")
    ran = nodekin("search", "tea", "--in", "docs")
    (line,) = ran.err.splitlines()
    assert line.endswith("picture.png; convert it to text")


@pytest.mark.parametrize("hint", list(_HINTS))
def test_the_package_still_says_what_is_replaced(hint):
    import nodekin.adapters.files
    import nodekin.nodegraph
    import nodekin.retrievers

    sources = "".join(
        path.read_text(encoding="utf-8")
        for package in (nodekin.nodegraph, nodekin.retrievers, nodekin.adapters.files)
        for path in Path(package.__file__).parent.rglob("*.py")
    )
    said = "".join(sources.replace("\n", "").replace('f"', '"').split('"'))
    assert hint.replace(" ", "") in said.replace(" ", "")


def test_escape_sequences_lose_their_power():
    assert printable("a\x1b[2J\x9b茶\n\tb\x7f") == "a\ufffd[2J\ufffd茶\n\tb\ufffd"
    assert printable("abc\u202egpj.exe") == "abc\ufffdgpj.exe"


def test_what_a_document_says_does_not_reach_the_terminal(nodekin, here):
    (here / "docs" / "bad.txt").write_text("Zebra \x1b]0;title\x07 stripes.", encoding="utf-8")
    for command in (["search"], ["search", "--full"], ["explain"]):
        ran = nodekin(*command, "zebra", "--in", "docs")
        assert ran.status == 0
        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out
    told = nodekin("search", "zebra", "--in", "docs", "--json")
    assert "\x1b" not in told.out
    assert told.json["results"][0]["text"] == "Zebra \x1b]0;title\x07 stripes."


def test_what_turns_a_text_around_is_escaped_in_json(nodekin, here):
    text = "Zebra \u061c\u200e\u200f\u202e\u2066\u2028\u2029\x9b stripes."
    (here / "docs" / "bad.txt").write_text(text, encoding="utf-8")
    for command in ("search", "explain"):
        ran = nodekin(command, "zebra", "--in", "docs", "--json")
        assert ran.json["results"][0]["text"] == text
        assert ran.out.isascii()
        assert "\x9b" not in ran.out


def test_the_name_of_a_group_does_not_reach_the_terminal(nodekin, here):
    ran = nodekin("index", "docs", "--group", "a\x1b[31m\u202e=lines")
    assert ran.status == 0
    assert "a\ufffd[31m\ufffd" in ran.out


def test_files_that_only_lack_an_extra_are_told_once(nodekin, here, monkeypatch):
    program = "import sys; sys.modules['mammoth'] = None; " + process_workers._PROGRAM
    monkeypatch.setattr(process_workers, "_PROGRAM", program)
    for name in ("a.docx", "b.docx"):
        (here / "docs" / name).write_bytes((FILES / "手册.docx").read_bytes())
    for arguments in (["docs"], []):
        ran = nodekin("index", *arguments)
        assert ran.status == 0
        (line,) = ran.err.splitlines()
        assert line.startswith("nodekin: left out: mammoth is not installed; get the readers")
        assert line.endswith("(2 files)")
    assert len(nodekin("index", "--json").json["failures"]) == 2
    (here / "docs" / "old.txt").write_bytes(b"\x81\x20 tea")
    assert nodekin("index").status == 5
