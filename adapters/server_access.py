"""Access control of corpus servers by address and token, and the refresh of changed folders."""

from __future__ import annotations

import hmac
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..nodegraph.errors import ReadError
from ..nodegraph.graph import NodeGraph

_logger = logging.getLogger("nodekin")

Scope = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")

EVERYWHERE = ("0.0.0.0", "::")

COOKIE = "nodekin_token"


def check_binding(host: str, token: str | None) -> None:
    """Check that a server outside of loopback has a token.

    Raises:
        ValueError: If the host is not a loopback address, and the token is missing.
    """
    if host not in LOOPBACK and not token:
        raise ValueError(
            f"a server on {host} can be reached by others; give it a token, or bind it to 127.0.0.1"
        )


class OriginCheck:
    """A middleware that rejects requests with another host name, or from pages of other sites.

    Otherwise any visited page could read the served corpus through a host name that resolves to
    this machine (DNS rebinding), or send requests to the server.

    Args:
        app: The application.
        host: The address of the server. Requests must name it. For a loopback address, any loopback
            name is allowed.
    """

    def __init__(self, app: Application, host: str) -> None:
        self._app = app
        self._names = LOOPBACK if host in LOOPBACK else () if host in EVERYWHERE else (host,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or reject a request."""
        if scope["type"] == "http" and (reason := self._refused(_headers(scope))):
            await refuse(send, 403, reason)
            return
        await self._app(scope, receive, send)

    def _refused(self, headers: dict[str, str]) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._names and _name_of(f"//{host}") not in self._names:
            return f"this server is not called {host!r:.80}"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"pages of {origin!r:.80} may not send requests here"
        mode = headers.get("sec-fetch-mode")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and mode != "navigate":
            return "pages of other sites may not send requests here"
        return ""


class TokenCheck:
    """A middleware that rejects requests without the token.

    Args:
        app: The application.
        token: The bearer token.
        cookie: Whether browsers may send the token: first as ``?token=``, then as a cookie.
    """

    def __init__(self, app: Application, token: str, *, cookie: bool = False) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or reject a request."""
        if scope["type"] == "http":
            headers = _headers(scope)
            scheme, _, bearer = headers.get("authorization", "").partition(" ")
            if self._cookie and scope["method"] == "GET":
                query = parse_qs(scope["query_string"].decode("latin-1"))
                if self._is_token(query.get("token", [""])[0]):
                    await self._welcome(scope, send)
                    return
            sent = _cookie(headers.get("cookie", ""), _cookie_name(scope))
            of_cookie = self._cookie and self._is_token(sent)
            if not of_cookie and not (scheme.lower() == "bearer" and self._is_token(bearer)):
                hint = "; open the page once with ?token=TOKEN" if self._cookie else ""
                await refuse(send, 401, f"a bearer token is needed{hint}")
                return
        await self._app(scope, receive, send)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """Set the cookie, and redirect to the address without the token."""
        cookie = f"{_cookie_name(scope)}={self._token.hex()}; Path=/; HttpOnly; SameSite=Strict"
        headers = [
            (b"location", b"/"),
            (b"set-cookie", cookie.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _cookie_name(scope: Scope) -> str:
    """Return a cookie name with the port, since browsers send cookies to all ports of a host."""
    server = scope.get("server")
    return f"{COOKIE}_{server[1]}" if server else COOKIE


def _cookie(header: str, name: str) -> str:
    try:
        morsel = SimpleCookie(header).get(name)
        return bytes.fromhex(morsel.value).decode() if morsel else ""
    except (CookieError, ValueError):
        return ""


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def refuse(send: Send, status: int, reason: str) -> None:
    """Respond with a status and the reason."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode("utf-8", "replace")})


_SECONDS = 2.0

_SHARE = 20  # at most one twentieth of the time is spent on scans

File = tuple[str, int, int]


class SourceRefresh:
    """A refresh of a graph before an answer, if source files have changed.

    It compares names, sizes and times of the files, and reads changed files. Scans are limited to
    one per ``seconds`` and to a twentieth of the time. Other threads do not wait for a refresh and
    use the current graph.

    Args:
        seconds: Minimum seconds between two scans.
        clock: Returns the time in seconds.

    Example:
        >>> refresh = SourceRefresh()
        >>> refresh(NodeGraph(progress=False))
        False
    """

    def __init__(
        self, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._next = clock()
        self._known: list[File] | None = None
        self._looking = threading.Lock()

    def __call__(self, graph: NodeGraph) -> bool:
        """Refresh the graph if a scan is due. Returns whether its documents changed.

        If files can't be read, a warning is logged, and the graph is unchanged.
        """
        if self._clock() < self._next or not self._looking.acquire(blocking=False):
            return False
        try:
            start = self._clock()
            changed = self._refreshed(graph)
            end = self._clock()
            self._next = end + max(self._seconds, _SHARE * (end - start))
            return changed
        finally:
            self._looking.release()

    def _refreshed(self, graph: NodeGraph) -> bool:
        files = sorted(_files(graph.sources))
        if files == self._known:
            return False
        self._known = files
        try:
            done = graph.refresh()
        except (ReadError, ValueError, OSError, RuntimeError) as error:
            _logger.warning("the documents were not read again: %s", error)
            return False
        return bool(done.added or done.updated or done.removed or done.renamed)


def _files(sources: list[Path]) -> Iterator[File]:
    """Yield the visible files below the sources."""
    for source in sources:
        if not source.is_dir():
            yield from _file(str(source))
        for folder, below, names in os.walk(source):
            below[:] = [name for name in below if not name.startswith(".")]
            for name in names:
                yield from _file(os.path.join(folder, name))


def _file(path: str) -> Iterator[File]:
    try:
        status = os.stat(path)
    except OSError:  # removed, or a broken link
        return
    yield path, status.st_size, status.st_mtime_ns
