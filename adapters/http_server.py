"""Serve an application by uvicorn, with limits for who sends slowly and for how many connect."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from .extras import extra
from .server_access import Application

with extra("serve", "uvicorn"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
with extra("serve", "h11"):
    import h11

_logger = logging.getLogger("nodekin")

READ_TIMEOUT = 10.0
"""Seconds in which a request, its headers and its body, has to be there."""

WRITE_TIMEOUT = 60.0
"""Seconds after which a connection is closed whose reader takes nothing of what was sent."""

MAX_CONNECTIONS = 64
"""So many connections are open at most. Others are refused."""

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-type: text/plain\r\ncontent-length: 21\r\n\r\ntoo many connections\n"
)


class LimitedProtocol(H11Protocol):
    """Close connections that don't send or read in time, and those that are too many."""

    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, or refuse the connection."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            _logger.warning("a connection was refused: %d are open", MAX_CONNECTIONS)
            transport.write(_BUSY)
            transport.close()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what was sent."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        self._stop_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a reader who is behind."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT, self._abort)

    def resume_writing(self) -> None:
        """Go on when what was sent has been read."""
        self._stop_writing()
        super().resume_writing()

    def _watch(self) -> None:
        """Wait for the rest of a request, from its first byte on, until it is complete."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(READ_TIMEOUT, self._close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _abort(self) -> None:
        _logger.warning("what was sent was not read for %g seconds", WRITE_TIMEOUT)
        self.transport.abort()

    def _close(self) -> None:
        _logger.warning("a request was not complete after %g seconds", READ_TIMEOUT)
        self.transport.close()


def usable_port(host: str, port: int) -> int:
    """Return a port that is free where the port is 0, to print it before it is served."""
    if port:
        return port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        free: int = listener.getsockname()[1]
        return free


def serve_http(app: Application, host: str, port: int, **options: Any) -> None:
    """Serve an application until the process is told to stop.

    Args:
        app: The application.
        host: Where to bind.
        port: The port.
        **options: Others of ``uvicorn.run``.
    """
    limits: dict[str, Any] = {"http": LimitedProtocol, "log_level": "warning"}
    uvicorn.run(app, host=host, port=port, **limits, **options)
