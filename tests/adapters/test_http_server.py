"""Ports are bound before an address is printed."""

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


def test_serve_http_at_foreign_address_raises():
    with pytest.raises(OSError, match=r"can't serve at 192\.0\.2\.1:0"):
        serve_http(app, "192.0.2.1", 0, "/")
