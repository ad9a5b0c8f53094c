"""Serve a web application with uvicorn, and print its URL once the port is bound."""

from __future__ import annotations

import asyncio
import socket
from typing import ClassVar

from .cli.messages import warn
from .extras import extra

with extra("serve", "uvicorn", "starlette", "h11"):
    import h11
    import uvicorn
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol

_REQUEST_SECONDS = 20  # time limit in seconds for sending a request

_MAX_WAITING = 32  # maximum number of connections with an incomplete request

_MAX_CONNECTIONS = 256


class _ImpatientProtocol(H11Protocol):
    """An HTTP protocol that closes connections whose clients do not complete their requests.

    By default, uvicorn waits for an incomplete request without a time limit, so clients that send
    only half a request could occupy all connections. This protocol limits the time for each request
    and the number of incomplete requests. When there are too many, the oldest connection is closed.
    """

    _waiting: ClassVar[dict[_ImpatientProtocol, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Process received data, which may be a part of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop tracking the connection."""
        self._end_wait()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self in self._waiting or self.transport.is_closing():
            return
        self._waiting[self] = self.loop.call_later(_REQUEST_SECONDS, self._give_up)
        if len(self._waiting) > _MAX_WAITING:
            next(iter(self._waiting))._give_up()

    def _end_wait(self) -> None:
        timer = self._waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self) -> None:
        self._end_wait()
        self.transport.close()


def serve_http(app: ASGIApp, host: str, port: int, path: str) -> None:
    """Bind an address, print the URL, and serve an application until it is interrupted.

    Args:
        app: The ASGI application.
        host: The host name or IP address.
        port: The port. If 0, any free port is used.
        path: The path of the application that is appended to the printed URL.

    Raises:
        OSError: If the port is in use, or the address does not belong to this machine.
    """
    name, family = (f"[{host}]", socket.AF_INET6) if ":" in host else (host, socket.AF_INET)
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"can't serve at {host}:{port} ({error.strerror}); choose another with --port or --host"
        ) from error
    with listener:
        url = f"http://{name}:{listener.getsockname()[1]}{path}"
        warn(f"serving {url} (Ctrl-C ends it)")
        config = uvicorn.Config(
            app,
            log_level="warning",
            http=_ImpatientProtocol,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[listener])
