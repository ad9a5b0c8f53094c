"""Ports are bound before an address is printed."""

import re
import socket
import subprocess
import sys
import urllib.request

import pytest
import uvicorn

from nodekin.adapters.http_server import serve_http

pytestmark = pytest.mark.enable_socket


async def app(scope, receive, send):
    """Answer nothing."""


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_serve_http_prints_free_port(monkeypatch, capsys, host, shown):
    served = []
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda self, sockets: served.append(sockets[0].getsockname()[1])
    )
    serve_http(app, host, 0, "/mcp")
    assert f"serving http://{shown}:{served[0]}/mcp " in capsys.readouterr().err
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    serve_http(app, host, 0, "/mcp")
    assert f"服务地址 http://{shown}:{served[1]}/mcp（按 Ctrl-C" in capsys.readouterr().err


def test_serve_http_at_foreign_address_raises():
    with pytest.raises(OSError, match=r"can't serve at 192\.0\.2\.1:0"):
        serve_http(app, "192.0.2.1", 0, "/")


PROGRAM = """
from nodekin.adapters.http_server import serve_http

async def app(scope, receive, send):
    if scope["type"] == "http":
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"Green tea."})

serve_http(app, "127.0.0.1", 0, "/")
"""


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
    ],
    ids=["nothing", "headers", "body", "chunk"],
)
def test_half_sent_requests_do_not_block(half):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE, text=True)
    clients = []
    try:
        found = re.search(r"http://([\d.]+):(\d+)/", process.stderr.readline())
        for _ in range(300):
            client = socket.create_connection((found[1], int(found[2])), timeout=60)
            client.sendall(half)
            clients.append(client)
        for _ in range(3):
            assert urllib.request.urlopen(found[0], timeout=60).read() == b"Green tea."
    finally:
        for client in clients:
            client.close()
        process.kill()
        process.communicate()
