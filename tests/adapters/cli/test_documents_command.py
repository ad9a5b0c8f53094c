"""``nodekin list``, ``show``, ``remove`` and ``status``."""

import json
import sqlite3
import unicodedata
from contextlib import closing

import pytest


def test_list_prints_lengths(indexed):
    ran = indexed("list")
    assert ran.status == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows == [["54", "docs/river.txt"], ["77", "docs/tea.md"], ["32", "docs/茶.md"]]


NUMBER_SIGNS = ["C#.md", "issue #12.md", "notes#1.md", "notes#2.md", "#todo.md", "a#b/tea#3.md"]


def test_list_prints_number_signs_in_names(nodekin, here):
    for name in NUMBER_SIGNS:
        (here / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "notes" / name).write_text("Tea.", "utf-8")
    records = "\n".join(json.dumps({"id": f"x#{n}", "text": "Tea."}) for n in range(3))
    (here / "notes" / "a#b" / "teas#1.jsonl").write_text(records, "utf-8")
    nodekin("index", "notes")
    names = {line.strip().partition("  ")[2] for line in nodekin("list").out.splitlines()}
    expected = {f"notes/{name}" for name in NUMBER_SIGNS}
    assert names == {*expected, "notes/a#b/teas#1.jsonl (3 records)"}
    assert nodekin("remove", "notes/issue #12.md").out == "removed 1 document; 8 left\n"


@pytest.mark.parametrize("name", ["notes/a#b/teas#1.jsonl", "teas#1.jsonl"])
def test_show_prints_records_of_listed_file(nodekin, here, name):
    (here / "notes" / "a#b").mkdir(parents=True)
    rows = [json.dumps({"id": f"x#{n}", "text": f"Tea {n}."}) for n in range(2)]
    (here / "notes" / "a#b" / "teas#1.jsonl").write_text("\n".join(rows), "utf-8")
    nodekin("index", "notes")
    ids = [f"notes/a#b/teas#1.jsonl#x#{n}" for n in range(2)]
    assert nodekin("show", name).out == f"{ids[0]}\nTea 0.\n\n{ids[1]}\nTea 1.\n\n"
    shown = nodekin("show", "--json", name).json
    assert shown["path"] == str(here / "notes" / "a#b" / "teas#1.jsonl")
    assert [record["id"] for record in shown["records"]] == ids
    assert nodekin("show", ids[1]).out == "Tea 1.\n"


def test_show_prints_text(indexed, here):
    text = (here / "docs" / "tea.md").read_text("utf-8")
    for name in ("docs/tea.md", "tea.md", str(here / "docs" / "tea.md")):
        assert indexed("show", name).out == text + "\n"


def test_show_prints_lines_around(indexed, here):
    (here / "docs" / "long.txt").write_text("\n".join(f"line {n}" for n in range(1, 41)), "utf-8")
    indexed("index")
    lines = indexed("show", "long.txt:20").out.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("   10  line 10", "   30  line 30", 21)
    assert indexed("show", "long.txt:99").out.splitlines()[-1] == "   40  line 40"


def test_show_of_unknown_document_raises(indexed):
    ran = indexed("show", "tee.md")
    assert (ran.status, ran.out) == (2, "")
    assert "unknown document 'tee.md'; known: 'docs/tea.md'" in ran.err


def test_show_of_ambiguous_name_raises(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "tea.md").write_text("More tea.", "utf-8")
    indexed("index")
    ran = indexed("show", "tea.md")
    assert ran.status == 2
    assert "'tea.md' is several documents; give one of these: 'docs/tea.md', " in ran.err
    assert indexed("show", "docs/more/tea.md").out == "More tea.\n"


@pytest.mark.parametrize("name", ["docs/tea.md", "tea.md"])
def test_removed_document_stays_away(indexed, name):
    ran = indexed("remove", name)
    assert (ran.status, ran.out) == (0, "removed 1 document; 2 left\n")
    assert indexed("search", "fermented").status == 1
    assert indexed("index").out.startswith("2 documents")
    assert "1 added" in indexed("index", "docs/tea.md").out
    assert indexed("search", "fermented").status == 0


def test_remove_of_source(indexed, here):
    assert indexed("remove", "docs", "--json").json == {
        "format": 1,
        "command": "remove",
        "removed": 3,
        "documents": 0,
    }
    assert indexed("status", "--json").json["sources"] == []
    (here / "docs" / "new.txt").write_text("Coffee.", "utf-8")
    assert indexed("index").status == 1


def test_remove_of_missing_folder(indexed, here):
    (here / "docs" / "more").mkdir()
    (here / "docs" / "more" / "milk.txt").write_text("Milk is white.", "utf-8")
    indexed("index")
    assert indexed("remove", "docs/more", "--json").json["removed"] == 1
    for file in (here / "docs").rglob("*.*"):
        file.unlink()
    (here / "docs" / "more").rmdir()
    (here / "docs").rmdir()
    assert indexed("remove", "docs", "--json").json["removed"] == 3


def test_remove_of_unknown_name_removes_nothing(indexed):
    ran = indexed("remove", "docs/tea.md", "coffee.md")
    assert ran.status == 2
    assert "unknown document 'coffee.md'" in ran.err
    assert indexed("remove").status == 2
    assert indexed("list", "--json").json["count"] == 3


def test_status_after_remove_says_when_groups_are_made(indexed):
    indexed("remove", "docs/tea.md")
    assert "groups      made by the next search" in indexed("status").out
    indexed("search", "tea")
    assert " passages, " in indexed("status").out


def test_records_and_suggestions_have_paths_below_current_folder(nodekin, here, monkeypatch):
    (here / "docs" / "logs.jsonl").write_text('{"text": "Sailed to Kiel."}\n{"text": "Rain."}\n')
    monkeypatch.chdir(here / "docs")
    nodekin("index", ".")
    (first, *_) = nodekin("search", "kiel").out.splitlines()
    assert first.startswith("1. logs.jsonl#1:1  ")
    assert nodekin("show", "logs.jsonl").out.startswith("logs.jsonl#1\nSailed")
    assert nodekin("show", "logs.jsonl#2").out == "Rain.\n"
    assert "known: 'tea.md'" in nodekin("show", "tee.md").err


def test_list_folds_records_of_a_file(indexed, here):
    rows = "".join(f'{{"text": "Tea number {n}."}}\n' for n in range(12))
    (here / "docs" / "notes.jsonl").write_text(rows)
    indexed("index")
    (line,) = [line for line in indexed("list").out.splitlines() if "notes" in line]
    assert line.endswith("  docs/notes.jsonl (12 records)")
    assert indexed("list", "--json").json["count"] == 3 + 12


def test_status(indexed, here):
    record = indexed("status", "--json").json
    assert record.pop("bytes") > 10_000
    assert record == {
        "format": 1,
        "command": "status",
        "store": str(here / ".nodekin"),
        "sources": [str(here / "docs")],
        "documents": 3,
        "encodings": {"utf-8": 3},
        "groups": {"ROOT": 3, "passage": 3, "sentence": 11},
        "embeddings": None,
        "embeddings_error": None,
        "missing_embeddings": 0,
        "newer_files": 0,
        "failures": 0,
        "notes": [],
        "unread": [],
        "left_out": [],
    }
    lines = indexed("status", "--check").out.splitlines()
    assert "groups      3 passages, 11 sentences" in lines
    assert lines[:2] == ["store       .nodekin", "sources     docs"]


def test_index_and_status_show_notes_and_encodings(indexed, here):
    (here / "docs" / "rows.jsonl").write_text('{"text": "Milk"}\n{"text": \n')
    (here / "docs" / "price.txt").write_bytes(("绿茶和红茶的价格。" * 9).encode("gb18030"))
    note = "lines that are not JSON, left out: 1 (first: line 2)"
    assert note in indexed("index").err
    assert indexed("status", "--json").json["notes"] == [f"{here / 'docs' / 'rows.jsonl'}: {note}"]
    lines = indexed("status").out.splitlines()
    assert [line for line in lines if line.startswith("encodings")] == [
        "encodings   4 utf-8, 1 gb18030"
    ]
    assert any(line.endswith(note) for line in lines)


def test_check_of_damaged_file_names_remedy(indexed, here):
    file = here / ".nodekin" / "graph.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'nodes_by_parent'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    at = (root - 1) * size
    content[at + 3 : at + 5] = b"\0\0"  # the number of the index's entries
    file.write_bytes(content)
    ran = indexed("status", "--check")
    assert ran.status == 3
    assert ran.err.startswith("nodekin: .nodekin/graph.sqlite is damaged: ")
    assert "read the sources again: nodekin index FOLDER --rebuild" in ran.err
    file.write_bytes(b"not a database" * 1000)
    assert "is damaged: file is not a database" in indexed("status", "--check").err
    assert indexed("index", "docs", "--rebuild").status == 0
    assert indexed("status", "--check").status == 0


def test_status_lists_files_that_were_left_out(nodekin, here):
    (here / "docs" / "picture.png").write_bytes(b"\x89PNG\0")
    (here / "docs" / "bad.jsonl").write_text("{")
    assert nodekin("index", "docs").status == 5
    out = nodekin("status").out
    assert "bad.jsonl, line 1 is not JSON" in out
    assert "picture.png" in out
    (here / "docs" / "bad.jsonl").write_text('{"body": "A walrus."}')
    assert nodekin("index").status == 0
    assert "bad.jsonl" not in nodekin("status").out


def test_status_names_model_that_is_not_available(indexed, here, monkeypatch):
    file = here / ".nodekin" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "embed": "bge-m3"}))
    ran = indexed("status", "--json")
    assert ran.status == 0
    assert ran.json["embeddings"] == "bge-m3"
    assert (
        "'bge-m3' needs a server: set NODEKIN_EMBED_BASE_URL or OPENAI_BASE_URL"
        in (ran.json["embeddings_error"])
    )
    assert "embedding model: the embedding model 'bge-m3'" in indexed("status").out


@pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_show_and_remove_ignore_unicode_form(nodekin, here, stored, asked):
    folder = unicodedata.normalize(stored, "Verträge")
    (here / folder).mkdir()
    for name in ("José.md", "Zoé.md"):
        (here / folder / unicodedata.normalize(stored, name)).write_text("Tea.", "utf-8")
    records = json.dumps({"id": "x", "text": "Milk."})
    (here / folder / unicodedata.normalize(stored, "é.jsonl")).write_text(records, "utf-8")
    nodekin("index", folder)
    for name in ("José.md", "Verträge/José.md"):
        assert nodekin("show", unicodedata.normalize(asked, name)).out == "Tea.\n"
    shown = nodekin("show", unicodedata.normalize(asked, "Verträge/é.jsonl"))
    assert shown.out.endswith("#x\nMilk.\n\n")
    removed = nodekin("remove", unicodedata.normalize(asked, "José.md"))
    assert removed.out == "removed 1 document; 2 left\n"
    removed = nodekin("remove", unicodedata.normalize(asked, "Verträge"))
    assert removed.out == "removed 2 documents; 0 left\n"
