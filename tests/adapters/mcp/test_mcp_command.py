import json
import sys

import pytest


def test_what_to_put_into_configurations(indexed, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    ran = indexed("mcp", "install")
    assert ran.status == 0
    names = [line.split(":")[0] for line in ran.out.splitlines() if line[:1].islower()]
    assert names == ["claude-code", "claude-desktop", "cursor", "vscode", "windsurf"]
    assert str(here / ".nodekin") in ran.out
    assert not (here / ".cursor").exists()


def test_a_clients_file_keeps_what_it_has(indexed, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    file = here / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"theme": "dark", "mcpServers": {"other": {"command": "x"}}}', "utf-8")
    ran = indexed("mcp", "install", "cursor", "--write")
    assert ran.status == 0
    settings = json.loads(file.read_text("utf-8"))
    assert settings["theme"] == "dark"
    assert settings["mcpServers"]["other"] == {"command": "x"}
    server = settings["mcpServers"]["nodekin"]
    assert server["args"] == ["mcp", "--store", str(here / ".nodekin")]
    assert json.loads(ran.out.split("\n", 1)[1].rsplit("}\n", 1)[0] + "}") == {
        "mcpServers": {"nodekin": server}
    }


def test_a_file_that_is_damaged_is_not_touched(indexed, here, monkeypatch):
    (here / ".mcp.json").write_text("[1]", "utf-8")
    assert indexed("mcp", "install", "claude-code", "--write").status == 3
    assert (here / ".mcp.json").read_text("utf-8") == "[1]"


def test_wrong_uses(nodekin):
    assert nodekin("mcp", "install", "emacs").status == 3  # no index yet
    assert nodekin("mcp", "install", "emacs", "docs").status == 2
    assert nodekin("mcp", "install", "--write").status == 3
    assert nodekin("mcp").status == 3
    assert nodekin("mcp", "nowhere").status == 3


def test_a_server_that_others_reach_needs_a_token(nodekin):
    ran = nodekin("mcp", "docs", "--http", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_MCP_TOKEN" in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_a_clients_file_stays_private_and_where_it_is(indexed, here, monkeypatch):
    monkeypatch.setenv("HOME", str(here))
    real, file = here / "mine.json", here / ".cursor" / "mcp.json"
    real.write_text('{"mcpServers": {"other": {"env": {"KEY": "secret"}}}}', "utf-8")
    real.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(real)
    assert indexed("mcp", "install", "cursor", "--write").status == 0
    assert file.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert set(json.loads(real.read_text("utf-8"))["mcpServers"]) == {"other", "nodekin"}


def test_model_folder_beside_the_index_is_not_opened(indexed, here):
    (here / "model").mkdir()
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./model"}
    file.write_text(json.dumps(record), encoding="utf-8")
    ran = indexed("mcp", "--http")
    assert ran.status == 4
    assert "which may bring programs that run here" in ran.err
