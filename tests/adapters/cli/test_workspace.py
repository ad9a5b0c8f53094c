import json

import pytest


def test_files_in_another_encoding_are_read_when_it_is_named(nodekin, here):
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


def test_rebuild_removes_what_is_ours_only(nodekin, here):
    nodekin("index", "docs")
    (here / ".nodekin" / "notes.txt").write_text("mine", encoding="utf-8")
    ran = nodekin("index", "docs", "--rebuild", "-g", "line=lines", "--json")
    assert ran.json["added"]
    assert list(ran.json["groups"]) == ["line", "line sentence"]
    assert (here / ".nodekin" / "notes.txt").exists()


def test_the_index_can_be_elsewhere(nodekin, here, monkeypatch):
    nodekin("index", "docs", "--store", "kept/here")
    assert not (here / ".nodekin").exists()
    assert nodekin("search", "Yangtze", "--store", "kept/here").status == 0
    monkeypatch.setenv("NODEKIN_STORE", str(here / "kept" / "here"))
    assert nodekin("search", "Yangtze").status == 0


def test_an_index_is_found_from_below(nodekin, here, monkeypatch):
    nodekin("index", "docs")
    (here / ".git").mkdir()
    monkeypatch.chdir(here / "docs")
    assert nodekin("search", "Yangtze").status == 0


def test_damaged_settings_say_the_way_out(nodekin, here):
    nodekin("index", "docs")
    (here / ".nodekin" / "index.json").write_text("{", encoding="utf-8")
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "--rebuild" in ran.err
    assert nodekin("index", "docs", "--rebuild").status == 0


@pytest.mark.parametrize(
    "broken", [{"name": []}, {"name": "\ud800"}, {"parent": {}}, {"size": "9"}, {"transform": []}]
)
def test_groups_of_damaged_settings_say_the_way_out(indexed, here, broken):
    file = here / ".nodekin" / "index.json"
    record = json.loads(file.read_text("utf-8"))
    record["groups"][0].update(broken)
    file.write_text(json.dumps(record), "utf-8")
    ran = indexed("search", "tea")
    assert ran.status == 3
    assert "--rebuild" in ran.err


@pytest.mark.parametrize("sources", ["docs", 7, [7], ["\ud800"], [None]])
def test_sources_of_damaged_settings_say_the_way_out(indexed, here, sources):
    file = here / ".nodekin" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "sources": sources}))
    for command in (["search", "tea"], ["index", "docs"]):
        ran = indexed(*command)
        assert ran.status == 3
        assert "--rebuild" in ran.err


def test_settings_of_a_newer_nodekin(nodekin, here):
    nodekin("index", "docs")
    file = here / ".nodekin" / "index.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "version": 99}), "utf-8")
    assert "newer nodekin" in nodekin("groups").err


def test_no_index(nodekin):
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin index FOLDER" in ran.err
    assert "--in FOLDER" in ran.err


def test_nothing_to_read_in_a_folder(nodekin, here):
    (here / "empty").mkdir()
    assert nodekin("search", "tea", "--in", "empty").status == 3
    assert nodekin("search", "tea", "--in", "nowhere").status == 3
