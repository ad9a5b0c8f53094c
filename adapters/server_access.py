"""Access control of corpus servers by address, origin and token."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from .extras import extra

with extra("serve", "starlette"):
    from starlette.datastructures import Headers
    from starlette.requests import HTTPConnection
    from starlette.responses import PlainTextResponse, RedirectResponse
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")

EVERYWHERE = ("0.0.0.0", "::")

_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def check_binding(host: str, token: str | None) -> None:
    """Check that a server outside of loopback has a token.

    Raises:
        ValueError: If the host is not a loopback address, and the token is missing.
    """
    if host not in LOOPBACK and not token:
        raise ValueError(
            f"a server on {host} can be reached by others; give it a token (NODEKIN_SERVE_TOKEN or "
            "NODEKIN_MCP_TOKEN on the command line), or bind it to 127.0.0.1"
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

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = LOOPBACK if host in LOOPBACK else () if host in EVERYWHERE else (host,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or reject a request."""
        if scope["type"] == "http" and (reason := self._refused(Headers(scope=scope))):
            await PlainTextResponse(reason, 403, _HEADERS)(scope, receive, send)
        else:
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


class TokenCheck:
    """A middleware that rejects requests without the token.

    Args:
        app: The application.
        token: The bearer token.
        cookie: Whether browsers may send the token: first as ``?token=``, then as a cookie.
    """

    def __init__(self, app: ASGIApp, token: str, *, cookie: bool = False) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle or reject a request."""
        if scope["type"] == "http":
            request = HTTPConnection(scope)
            # The name contains the port, since browsers send cookies to all ports of a host.
            name, value = f"nodekin_token_{request.url.port}", self._token.encode().hex()
            if self._cookie and _equal(request.query_params.get("token", ""), self._token):
                response = RedirectResponse("/", 303, _HEADERS)
                response.set_cookie(name, value, httponly=True, samesite="strict")
                return await response(scope, receive, send)
            scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
            is_bearer = scheme.lower() == "bearer" and _equal(bearer, self._token)
            if not is_bearer and not (
                self._cookie and _equal(request.cookies.get(name, ""), value)
            ):
                hint = "; open the page once with ?token=TOKEN" if self._cookie else ""
                refused = PlainTextResponse(f"a bearer token is required{hint}", 401, _HEADERS)
                return await refused(scope, receive, send)
        await self._app(scope, receive, send)


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode("utf-8", "replace"))


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
