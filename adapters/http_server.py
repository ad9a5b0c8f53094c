"""Serve an application with uvicorn, on a port that is bound before it is printed."""

from __future__ import annotations

import socket
from typing import Any

from .extras import extra

with extra("serve", "uvicorn", "starlette"):
    import uvicorn
    from starlette.types import ASGIApp


def bind(host: str, port: int) -> socket.socket:
    """Bind an address. The port 0 selects a free port.

    Raises:
        OSError: If the port is in use, or the address does not belong to this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"can't serve at {host}:{port} ({error.strerror}); choose another with --port or --host"
        ) from error


def url_of(host: str, listener: socket.socket) -> str:
    """Return the URL of a bound socket, with an IPv6 address in brackets."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def serve_http(app: ASGIApp, listener: socket.socket, **options: Any) -> None:
    """Serve an application on a bound socket until the process is interrupted.

    Args:
        app: The application.
        listener: The socket.
        **options: Other options of ``uvicorn.Config``.
    """
    limits: dict[str, Any] = {"limit_concurrency": 64, "timeout_keep_alive": 5}
    config = uvicorn.Config(app, log_level="warning", **limits, **options)
    uvicorn.Server(config).run(sockets=[listener])
