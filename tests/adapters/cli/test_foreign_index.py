"""Limits of an index written by another user: see docs/security.md."""

import json
import os
import sys

import pytest


@pytest.fixture
def somebody_else(monkeypatch):
    """Return a function that changes the current user."""
    return lambda: monkeypatch.setattr(os, "getuid", lambda: 54321)


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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such owners")
def test_index_of_another_user_is_not_read(indexed, here, somebody_else):
    somebody_else()
    for command in (["search", "tea"], ["index"], ["index", "docs"], ["list"]):
        ran = indexed(*command)
        assert ran.status == 3, command
        assert ".nodekin belongs to another user; if you trust it: --store" in ran.err
    assert indexed("search", "tea", "--store", ".nodekin").status == 0


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
        assert "which may bring programs that run here" in ran.err


def test_options_have_environment_variables(nodekin, monkeypatch):
    monkeypatch.setenv("NODEKIN_SEARCH_TOP_K", "1")
    monkeypatch.setenv("NODEKIN_SEARCH_IN", "docs")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    assert nodekin("search", "steamed 陆羽", "-k", "2", "--json").json["count"] == 2
    monkeypatch.setenv("NODEKIN_SEARCH_TOP_K", "some")
    ran = nodekin("search", "tea")
    assert (ran.status, "'some' is not a valid integer" in ran.err) == (2, True)
