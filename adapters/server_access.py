"""Who may reach a server of a corpus, by address and token, and how it reads changed folders."""

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
    """Check that a server which others can reach has a token.

    Raises:
        ValueError: If it is bound elsewhere than to loopback, and there is no token.
    """
    if host not in LOOPBACK and not token:
        raise ValueError(
            f"a server on {host} can be reached by others; give it a token, or bind it to 127.0.0.1"
        )


class OriginCheck:
    """Let only requests through that name this server, and that no other site's page sent.

    Otherwise any page that somebody visits could read what is served on his machine, by a name
    that it lets point there (DNS rebinding), or send requests to it.

    Args:
        app: The application.
        host: Where it is bound; requests have to name it, or any name of loopback if it is one.
    """

    def __init__(self, app: Application, host: str) -> None:
        self._app = app
        self._names = LOOPBACK if host in LOOPBACK else () if host in EVERYWHERE else (host,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
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
    """Let only requests with a token through.

    Args:
        app: The application.
        token: What a client has to send as a bearer token.
        cookie: Whether a browser may bring it: once as ``?token=``, from then on as a cookie.
    """

    def __init__(self, app: Application, token: str, *, cookie: bool = False) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
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
        """Give the browser the cookie, and send it to the address without the token."""
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
    """Return a name for each port: a browser sends cookies to all ports of a host."""
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
    """Answer a request with a status and a line that says why."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode("utf-8", "replace")})


_SECONDS = 2.0

_SHARE = 20  # of the time at most one part is spent on looking

File = tuple[str, int, int]


class SourceRefresh:
    """Refresh a graph before an answer, where files changed since the last one.

    It looks at names, sizes and times of the files, at most once in some seconds and for a
    twentieth of the time, and reads files only where these differ. Threads that come meanwhile
    don't wait: they are answered from what there is.

    Args:
        seconds: How long it does not look again.
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
        """Refresh the graph if that is due; return whether its documents changed.

        What can't be read is logged, and stays as it was.
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
    """Yield the files below the sources, as far as they can be seen."""
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
    except OSError:  # it went away, or is a link to nothing
        return
    yield path, status.st_size, status.st_mtime_ns
