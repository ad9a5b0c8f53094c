"""Serve an application with uvicorn, on a port that is bound before it is printed."""

from __future__ import annotations

import socket
import sys

from .extras import extra

with extra("serve", "uvicorn", "starlette"):
    import uvicorn
    from starlette.types import ASGIApp


def serve_http(app: ASGIApp, host: str, port: int, path: str) -> None:
    """Bind an address, print its URL, and serve an application until an interrupt.

    Args:
        app: The application.
        host: The host name or address.
        port: The port. 0: any free port.
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
        print(f"nodekin: serving {url} (Ctrl-C ends it)", file=sys.stderr)  # noqa: T201
        config = uvicorn.Config(
            app,
            log_level="warning",
            limit_concurrency=64,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[listener])
