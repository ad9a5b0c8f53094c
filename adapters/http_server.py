"""Serve an application with uvicorn. The port is bound before it is printed."""

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

_REQUEST_SECONDS = 20  # time limit for sending a request

_MAX_WAITING = 32  # maximum number of connections with an incomplete request

_MAX_CONNECTIONS = 256


class _ImpatientProtocol(H11Protocol):
    """An HTTP connection that is closed if its client does not send a request.

    uvicorn waits for an incomplete request without a time limit. Therefore, clients that send half
    a request could occupy all connections. If there are too many incomplete requests, the oldest
    one is closed. A request that takes too long is closed as well.
    """

    _waiting: ClassVar[dict[_ImpatientProtocol, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
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
    """Bind an address, print its URL, and serve an application until it is interrupted.

    Args:
        app: The application.
        host: The host name or address.
        port: The port. 0 means any free port.
        path: The printed path of the application.

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
