"""What a file that somebody else wrote can make a command do: see docs/security.md."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from foreign_files import KEY, allow_as_told, recording_server, somebody_else, write

from nodekin.adapters.cli.trust import permissions, permissions_file

__all__ = ["recording_server", "somebody_else"]


pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.usefixtures("socket_enabled")]


@pytest.mark.parametrize("table", ["", "[ask]\n"])
def test_the_server_of_a_settings_file_gets_no_key_until_it_is_allowed(
    nodekin, indexed, here, recording_server, monkeypatch, table
):
    file = write(
        here / "nodekin.toml", f'{table}base-url = "{recording_server.url}"\nmodel = "m"\n'
    )
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    ran = nodekin("ask", "what", "is", "tea")
    assert ran.status == 4
    assert recording_server.asked == []
    assert str(file) in ran.err
    assert KEY not in ran.err
    allow_as_told(nodekin, ran)
    ran = nodekin("ask", "what", "is", "tea")
    assert ran.status == 0
    assert recording_server.keys == [f"Bearer {KEY}"]
    said = (
        f"nodekin: {file} names the server: {recording_server.url} gets your texts and the key in"
    )
    assert ran.err.startswith(said)
    file.write_text(file.read_text().replace("/v1", "/v2"), encoding="utf-8")
    assert nodekin("ask", "what", "is", "tea").status == 4
    assert len(recording_server.asked) == 1


def test_the_server_of_embeddings_gets_neither_key_nor_texts_until_it_is_allowed(
    nodekin, here, recording_server
):
    write(here / "nodekin.toml", f'embed-base-url = "{recording_server.url}"\nembed = "m"\n')
    ran = nodekin("index", "docs")
    assert (ran.status, recording_server.asked) == (4, [])
    assert nodekin("search", "tea", "--in", "docs").status == 4
    assert recording_server.asked == []
    allow_as_told(nodekin, ran)
    assert nodekin("index", "docs").status == 0
    assert set(recording_server.keys) == {f"Bearer {KEY}"}


def test_permissions_that_are_damaged_are_an_error(nodekin, here):
    write(here / "nodekin.toml", 'base-url = "http://models.example.org/v1"\nmodel = "m"\n')
    permissions_file().parent.mkdir(parents=True, exist_ok=True)
    for text in ("{", "null", "[1]", "[{}]", '[{"file": 1}]', '[{"file": "x", "key": []}]'):
        permissions_file().write_text(text)
        for command in (["trust"], ["ask", "tea?", "--in", "docs"]):
            ran = nodekin(*command)
            assert ran.status == 2
            assert "which has what you have allowed" in ran.err


def test_without_a_key_another_machine_gets_no_texts(nodekin, here, monkeypatch):
    write(here / "nodekin.toml", 'base-url = "http://models.example.org/v1"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs")
    assert ran.status == 4
    assert "http://models.example.org/v1, which would get your texts; " in ran.err
    for address in ("http://127.0.0.1.example.org/v1", "http://127.0.0.1:1@example.org/"):
        write(here / "nodekin.toml", f'base-url = "{address}"\nmodel = "m"\n')
        ran = nodekin("ask", "tea?", "--in", "docs")
        assert "which would get your texts" in ran.err


def test_what_a_file_names_stays_in_its_line_and_shows_no_password(nodekin, here):
    address = "http://me:pass@word@models.example.org/\\nnodekin: all is well"
    write(here / "nodekin.toml", f'base-url = "{address}"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs")
    assert "http://models.example.org/ nodekin: all is well, which would get" in ran.err
    file = here / "nodekin.toml"
    nodekin("trust", str(file), "http://me:pass@word@models.example.org/\nnodekin: all is well")
    told = nodekin("trust").out
    assert told == f"{file}  http://models.example.org/ nodekin: all is well\n"


def test_without_a_key_a_server_of_this_machine_is_used_and_named(
    nodekin, here, recording_server, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    file = write(here / "nodekin.toml", f'base-url = "{recording_server.url}"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs", "--quiet")
    assert ran.status == 0
    assert ran.err == f"nodekin: {file} names the server: {recording_server.url} gets your texts\n"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: secret"), ("OPENAI_ORG_ID", "org-secret")],
)
def test_headers_of_the_environment_are_sent_to_no_server_that_is_not_allowed(
    nodekin, here, recording_server, monkeypatch, variable, value
):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv(variable, value)
    write(here / "nodekin.toml", f'base-url = "{recording_server.url}"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs")
    assert (ran.status, recording_server.asked) == (4, [])
    assert variable in ran.err


def test_what_the_person_names_needs_no_permission(nodekin, here, recording_server, monkeypatch):
    write(here / "nodekin.toml", 'base-url = "http://127.0.0.1:1/v1"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs", "--base-url", recording_server.url)
    assert (ran.status, ran.err) == (0, "nodekin: 1 sentence cites no source: “Tea is a drink.”\n")
    assert recording_server.keys == [f"Bearer {KEY}"]
    assert permissions() == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 4)])
def test_it_is_asked_at_a_terminal_once(nodekin, here, recording_server, answer, status):
    write(here / "nodekin.toml", f'base-url = "{recording_server.url}"\nmodel = "m"\n')
    import pty  # which is not everywhere

    command = [sys.executable, "-m", "nodekin", "ask", "tea?", "--in", "docs", "-q"]
    mine, terminal = pty.openpty()
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal) as run:
        os.close(terminal)
        told = b""
        while b"[y/N]" not in told:
            told += os.read(mine, 1000)
        assert recording_server.asked == []
        os.write(mine, f"{answer}\n".encode())
        assert run.wait(100) == status
    os.close(mine)
    assert "which would get your texts and the key in OPENAI_API_KEY" in told.decode()
    assert len(recording_server.asked) == (status == 0)
    assert nodekin("ask", "tea?", "--in", "docs").status == status


def test_files_above_the_repository_are_not_read(nodekin, indexed, here, monkeypatch):
    file = write(here / "nodekin.toml", "[search]\ntop-k = 1\n")
    inner = here / "clone" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    (here / "clone" / ".git").mkdir()
    ran = nodekin("search", "steamed 陆羽")
    assert ran.status == 3
    assert f"{file} is not read: it lies above the repository {here / 'clone'}" in ran.err
    assert f"{here / '.nodekin'} is not read: it lies above the repository" in ran.err
    for line in ran.err.splitlines():
        assert nodekin(*shlex.split(line.rsplit(": ", 1)[1])[1:]).status == 0
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1


def test_files_above_the_home_folder_are_not_read(nodekin, indexed, here, monkeypatch):
    (here / "home" / "notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.chdir(here / "home" / "notes")
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "it lies above your home folder" in ran.err


def test_files_of_another_user_are_not_read(nodekin, indexed, here, somebody_else):
    file = write(here / "nodekin.toml", "[search]\ntop-k = 1\n")
    somebody_else()
    for command in (["search", "tea"], ["index"], ["index", "docs"], ["list"]):
        ran = nodekin(*command)
        assert ran.status == 3, command
        assert f"{file} is not read: it belongs to another user" in ran.err
        assert f"{here / '.nodekin'} is not read: it belongs to another user" in ran.err
    nodekin("trust", ".nodekin")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] > 1
    nodekin("trust", "nodekin.toml")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    nodekin("trust", ".nodekin", "--forget")
    assert nodekin("search", "tea").status == 3


def test_an_index_reads_no_folder_elsewhere_that_the_person_has_not_named(
    nodekin, here, monkeypatch
):
    (here / "private").mkdir()
    diary = write(here / "private" / "diary.md", "The old secret of Anna.")
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    assert nodekin("index", here / "private").status == 0
    assert nodekin("index").status == 0  # which the person has named
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "of another person"))
    write(diary, "The new secret of Anna.")
    ran = nodekin("index")
    assert ran.status == 3
    assert f"names {here / 'private'}, which is outside of {here / 'clone'}" in ran.err
    assert "new secret" not in nodekin("search", "secret Anna").out
    allow_as_told(nodekin, ran)
    assert nodekin("index").status == 0
    assert "new secret" in nodekin("search", "secret Anna").out


@pytest.mark.parametrize("option", ["store", "in"])
def test_settings_name_no_folder_elsewhere_that_is_not_allowed(nodekin, here, monkeypatch, option):
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write(here / "clone" / "nodekin.toml", f'[search]\n{option} = "../docs"\n')
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin trust" in ran.err
    allow_as_told(nodekin, ran)
    assert "trust" not in nodekin("search", "tea").err


def test_the_model_of_an_index_of_others_is_not_opened_until_it_is_allowed(indexed, here):
    (here / "model").mkdir()
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./model"}
    write(file, json.dumps(record))
    for command in (["search", "tea"], ["index"]):
        ran = indexed(*command)
        assert ran.status == 4, command
        assert "which may bring programs that run here" in ran.err


def test_damaged_permissions_allow_nothing(nodekin, here, recording_server, tmp_path_factory):
    write(here / "nodekin.toml", f'base-url = "{recording_server.url}"\nmodel = "m"\n')
    config = here.parent / os.environ["XDG_CONFIG_HOME"] / "nodekin"
    config.mkdir(parents=True)
    for text in ("{", "[1]", '[["a", "b", "c", "d"]]', '{"a": 1}'):
        write(config / "trusted.json", text)
        ran = nodekin("ask", "tea?", "--in", "docs")
        assert ran.status == 2
        assert "trusted.json" in ran.err
    assert recording_server.asked == []
