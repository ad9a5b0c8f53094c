"""The command ``nodekin mcp``."""

import json
import subprocess
import sys

import pytest
import uvicorn


def test_mcp_without_index_or_folder_raises(nodekin):
    assert nodekin("mcp").status == 3
    assert nodekin("mcp", "nowhere").status == 2


def test_foreign_address_requires_token(nodekin):
    ran = nodekin("mcp", "docs", "--http", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_MCP_TOKEN" in ran.err


@pytest.mark.enable_socket
def test_mcp_by_http_prints_its_address(nodekin, monkeypatch):
    ports = []

    def run(server, sockets):
        ports.append(sockets[0].getsockname()[1])

    monkeypatch.setattr(uvicorn.Server, "run", run)
    ran = nodekin("mcp", "docs", "--http", "--port", "0")
    assert ran.status == 0
    assert f"nodekin: serving http://127.0.0.1:{ports[0]}/mcp (Ctrl-C ends it)\n" in ran.err


def test_model_folder_beside_the_index_is_not_opened(indexed, here):
    (here / "model").mkdir()
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./model"}
    file.write_text(json.dumps(record), encoding="utf-8")
    ran = indexed("mcp", "--http")
    assert ran.status == 4
    assert "that may contain programs" in ran.err


STDIO = """
import sys
from nodekin.adapters.cli.app import app
try:
    app.main(["mcp", "docs"], "nodekin")
except SystemExit as end:
    servers = {"http_server", "server_access"}
    print(end.code, servers & {name.rpartition(".")[2] for name in sys.modules})
"""


def test_mcp_by_stdio_loads_no_http_server(here):
    done = subprocess.run(
        [sys.executable, "-c", STDIO],
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "0 set()\n"
