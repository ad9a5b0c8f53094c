import shutil
import sqlite3


def test_stats(indexed, here):
    record = indexed("stats", "--json").json
    assert record.pop("bytes") > 10_000
    assert record == {
        "format": 1,
        "command": "stats",
        "store": str(here / ".nodekin"),
        "sources": [str(here / "docs")],
        "documents": 3,
        "characters": 163,
        "kinds": {".md": 2, ".txt": 1},
        "groups": {"ROOT": 3, "passage": 3, "sentence": 11},
        "embeddings": None,
        "failures": 0,
        "unread": [],
        "left_out": [],
    }
    lines = indexed("stats").out.splitlines()
    assert "documents   3 (2 .md, 1 .txt)" in lines
    assert "nodes       3 passage, 11 sentence" in lines


def test_no_index(nodekin):
    assert nodekin("stats").status == 3
    ran = nodekin("doctor")
    assert ran.status == 0
    assert "missing  index: there is no index (.nodekin)" in ran.out


def states(ran):
    return {(check["name"], check["state"]) for check in ran.json["checks"]}


def test_all_is_well(indexed):
    ran = indexed("doctor", "--json")
    assert ran.status == 0
    assert {("nodekin", "ok"), ("index", "ok"), ("OPENAI_MODEL", "missing")} <= states(ran)


def test_the_model_of_the_environment(indexed, monkeypatch):
    monkeypatch.setenv("OPENAI_MODEL", "qwen")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    ran = indexed("doctor", "--json")
    assert {("OPENAI_MODEL", "ok"), ("OPENAI_API_KEY", "ok")} <= states(ran)
    assert "secret" not in ran.out
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@example.com/v1")
    ran = indexed("doctor")
    assert "OPENAI_BASE_URL: http://example.com/v1" in ran.out
    assert "secret" not in ran.out


def test_a_folder_that_is_gone(indexed, here):
    shutil.rmtree(here / "docs")
    ran = indexed("doctor", "--quiet")
    assert ran.status == 3
    assert ran.out.startswith("wrong    source: ")
    assert "is gone, and is still found" in ran.out


def test_a_damaged_index(indexed, here):
    file = here / ".nodekin" / "graph.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    file.write_bytes(b"not a database" + file.read_bytes()[14:])
    ran = indexed("doctor", "--json")
    assert ran.status == 3
    assert ("index", "wrong") in states(ran)


def test_a_damaged_document_is_read_again_by_the_next_index(indexed, here):
    with sqlite3.connect(here / ".nodekin" / "graph.sqlite") as connection:
        connection.execute("UPDATE pages SET checksum = 3")
    connection.close()
    ran = indexed("doctor")
    assert ran.status == 3
    assert "nodekin index reads damaged documents again" in ran.out
    assert "--rebuild" not in ran.out
    assert indexed("index").status == 0
    assert indexed("doctor").status == 0
    assert indexed("search", "tea").status == 0


def test_what_was_left_out_is_listed(nodekin, here):
    (here / "docs" / "picture.png").write_bytes(b"\x89PNG\0")
    (here / "docs" / "bad.jsonl").write_text("{")
    assert nodekin("index", "docs").status == 5
    for command in ("stats", "doctor"):
        out = nodekin(command).out
        assert "bad.jsonl, line 1 is not JSON" in out
        assert "picture.png; convert it to text" in out
    (here / "docs" / "bad.jsonl").write_text('{"body": "A walrus."}')
    assert nodekin("index").status == 0
    assert "bad.jsonl" not in nodekin("stats").out
