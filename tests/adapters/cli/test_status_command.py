import json
import sqlite3
from contextlib import closing

import pytest


def test_status(indexed, here):
    record = indexed("status", "--json").json
    assert record.pop("bytes") > 10_000
    assert record == {
        "format": 1,
        "command": "status",
        "store": str(here / ".nodekin"),
        "sources": [str(here / "docs")],
        "documents": 3,
        "characters": 163,
        "kinds": {".md": 2, ".txt": 1},
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
    assert "documents   3 (2 .md, 1 .txt)" in lines
    assert "nodes       3 passage, 11 sentence" in lines


def test_status_without_index_is_an_error(nodekin):
    assert nodekin("status").status == 3
    assert nodekin("status", "--check").status == 3


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
    assert f"{file} is damaged: " in ran.err
    assert "read the sources again: nodekin index --rebuild" in ran.err
    assert indexed("index", "docs", "--rebuild").status == 0
    assert indexed("status", "--check").status == 0


def test_check_of_another_file_is_an_error(indexed, here):
    (here / ".nodekin" / "graph.sqlite").write_bytes(b"not a database" * 1000)
    ran = indexed("status", "--check")
    assert ran.status == 3
    assert "is not a nodekin graph" in ran.err


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


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        (("letters",), ["--check"], None),
        (("words",), [], "the vectors are of letters, and the model is words"),
        (("letters", 3), [], None),
        (("letters", 3), ["--check"], "returns vectors of 3 numbers, but vectors stored under"),
        (("letters", 2, OSError("no server today")), ["--check"], "no server today"),
    ],
)
def test_status_checks_embedding_model(nodekin, embedding, model, options, error):
    embedding()
    assert nodekin("index", "docs", "--embed", "letters").status == 0
    embedding(*model)
    found = nodekin("status", "--json", *options).json["embeddings_error"]
    assert found == error if error is None else error in found
    assert ("embedding model: " in nodekin("status", *options).out) is (error is not None)


def test_status_names_model_that_is_not_available(indexed, here, monkeypatch):
    file = here / ".nodekin" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "embed": "bge-m3"}))
    ran = indexed("status", "--json")
    assert ran.status == 0
    assert ran.json["embeddings"] == "bge-m3"
    assert "'bge-m3' needs a server: set OPENAI_BASE_URL" in ran.json["embeddings_error"]
