import json

import pytest


def test_encoding_is_stored(nodekin, here):
    (here / "docs" / "old.txt").write_bytes("旧的编码\r\n第二行".encode("gb18030"))
    (here / "docs" / "short.txt").write_bytes("茶".encode("gb18030"))
    assert nodekin("index", "docs").status == 5
    assert nodekin("index", "--encoding", "gb18030").status == 0
    assert nodekin("search", "茶", "--json").status == 0
    assert nodekin("search", "旧的编码", "--json").json["results"][0]["document"] == "docs/old.txt"
    assert nodekin("index").status == 0  # it is remembered
    found = nodekin("search", "第二行", "--in", "docs", "--encoding", "gb18030", "--json")
    assert (found.documents, found.json["results"][0]["line"]) == (["docs/old.txt"], 1)
    assert nodekin("index", "--encoding", "gbk2").status == 2


def test_rebuild_keeps_other_files(nodekin, here):
    nodekin("index", "docs")
    (here / ".nodekin" / "notes.txt").write_text("mine", encoding="utf-8")
    ran = nodekin("index", "docs", "--rebuild", "--json")
    assert ran.json["added"]
    assert (here / ".nodekin" / "notes.txt").exists()


def test_store_selects_folder(nodekin, here, monkeypatch):
    nodekin("index", "docs", "--store", "kept/here")
    assert not (here / ".nodekin").exists()
    assert nodekin("search", "Yangtze", "--store", "kept/here").status == 0
    monkeypatch.setenv("NODEKIN_STORE", str(here / "kept" / "here"))
    assert nodekin("search", "Yangtze").status == 0


@pytest.mark.parametrize(
    "change",
    [{"sources": "docs"}, {"sources": [7]}, {"sources": ["\ud800"]}, {"version": 99}, None],
)
def test_damaged_settings_name_remedy(indexed, here, change):
    file = here / ".nodekin" / "index.json"
    record = json.loads(file.read_text("utf-8"))
    file.write_text("{" if change is None else json.dumps({**record, **change}), encoding="utf-8")
    for command in (["search", "tea"], ["index", "docs"]):
        ran = indexed(*command)
        assert ran.status == 3
        assert "--rebuild" in ran.err
    assert ("newer nodekin" in ran.err) is (change == {"version": 99})
    assert indexed("index", "docs", "--rebuild").status == 0


def test_search_without_index_raises(nodekin):
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin index FOLDER" in ran.err
    assert "--in FOLDER" in ran.err


def test_search_in_empty_folder_raises(nodekin, here):
    (here / "empty").mkdir()
    assert nodekin("search", "tea", "--in", "empty").status == 3
    assert nodekin("search", "tea", "--in", "nowhere").status == 3
