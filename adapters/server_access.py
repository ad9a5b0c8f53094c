"""Access control for corpus servers, based on the host, the origin and a token."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from .extras import extra

with extra("serve", "starlette"):
    from starlette.datastructures import Headers
    from starlette.requests import HTTPConnection
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")

EVERYWHERE = ("0.0.0.0", "::")

_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class AccessCheck:
    """ASGI middleware that rejects requests with a wrong host or origin, or without a valid token.

    Without this check, any web page that a user visits could send requests to the server, or read
    the served corpus through a host name that resolves to this machine (DNS rebinding).

    Args:
        app: The application.
        host: The address of the server, which must match the host of each request. For a loopback
            address, any loopback name is accepted.
        token: The bearer token. If it is empty or None, no token is required, which is allowed only
            for loopback addresses.
        cookie: Whether browsers may send the token. They send it as ``?token=`` at first, and as a
            cookie after that.

    Raises:
        ValueError: If the host is not a loopback address and no token is given.
    """

    def __init__(self, app: ASGIApp, host: str, token: str | None, *, cookie: bool = False) -> None:
        if host not in LOOPBACK and not token:
            raise ValueError(
                f"a server on {host} can be reached by others; give it a token "
                "(NODEKIN_SERVE_TOKEN or NODEKIN_MCP_TOKEN on the command line), or bind it to "
                "127.0.0.1"
            )
        self._app = app
        self._names = LOOPBACK if host in LOOPBACK else () if host in EVERYWHERE else (host,)
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or reject it."""
        if scope["type"] == "http":
            request = HTTPConnection(scope)
            response: Response | None = None
            if reason := self._refused(request.headers):
                response = PlainTextResponse(reason, 403, _HEADERS)
            elif self._token:
                response = self._checked_token(request, self._token)
            if response is not None:
                return await response(scope, receive, send)
        await self._app(scope, receive, send)

    def _refused(self, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._names and _name_of(f"//{host}") not in self._names:
            return f"this server is not called {host!r:.80}"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"pages of {origin!r:.80} may not send requests here"
        mode = headers.get("sec-fetch-mode")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and mode != "navigate":
            return "pages of other sites may not send requests here"
        return ""

    def _checked_token(self, request: HTTPConnection, token: str) -> Response | None:
        """Return None if a request contains the valid token, otherwise a response.

        A valid token in the query string is stored as a cookie.
        """
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _equal(bearer, token):
            return None
        if not self._cookie:
            return PlainTextResponse("a bearer token is required", 401, _HEADERS)
        # The name contains the port, since browsers send cookies to all ports of a host.
        name, value = f"nodekin_token_{request.url.port}", token.encode().hex()
        if _equal(request.query_params.get("token", ""), token):
            response = RedirectResponse("/", 303, _HEADERS)
            response.set_cookie(name, value, httponly=True, samesite="strict")
            return response
        if _equal(request.cookies.get(name, ""), value):
            return None
        text = "a bearer token is required; open the page once with ?token=TOKEN"
        return PlainTextResponse(text, 401, _HEADERS)


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode("utf-8", "replace"))


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
