"""Access checks of the HTTP servers: hosts, origins and tokens."""

import asyncio

import httpx
import pytest

from nodekin.adapters.server_access import AccessCheck


async def _open(scope, receive, send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"open"})


def response(app, headers=None, path="/api", base="http://127.0.0.1:8766") -> httpx.Response:
    async def request() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
            return await client.get(path, headers=headers)

    return asyncio.run(request())


def status(*request, **options) -> int:
    return response(*request, **options).status_code


@pytest.mark.parametrize("base", ["http://127.0.0.1:1", "http://localhost:8766", "http://[::1]:1"])
def test_loopback_names_are_accepted(base) -> None:
    assert status(AccessCheck(_open, "127.0.0.1", None), base=base) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8766"},
        {"host": "127.0.0.1.evil.example"},
        {"host": "[::1"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_hosts_and_origins_are_refused(headers) -> None:
    assert status(AccessCheck(_open, "127.0.0.1", None), headers) == 403


def test_same_origin_and_navigation_are_accepted() -> None:
    app = AccessCheck(_open, "127.0.0.1", None)
    assert status(app, {"origin": "http://127.0.0.1:8766", "sec-fetch-site": "same-origin"}) == 200
    assert status(app, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}) == 200


def test_public_server_accepts_any_host_and_own_origin() -> None:
    app = AccessCheck(_open, "0.0.0.0", "geheim")
    token, base = {"authorization": "Bearer geheim"}, "http://box.lan:8766"
    assert status(app, token, base=base) == 200
    assert status(app, {**token, "origin": "http://evil.example"}, base=base) == 403


@pytest.mark.parametrize("token", ["geheim", '密 码;="'])
def test_token_is_accepted_as_bearer_or_cookie(token) -> None:
    app = AccessCheck(_open, "127.0.0.1", token, cookie=True)
    cookie = f"nodekin_token_8766={token.encode().hex()}"
    assert status(app, {"cookie": cookie}) == 200
    assert status(app, {"cookie": "nodekin_token_8766=zz"}) == 401
    assert status(app, {"cookie": cookie[:-2]}) == 401
    assert status(AccessCheck(_open, "127.0.0.1", token), {"cookie": cookie}) == 401
    assert status(app) == 401
    # Browsers send the cookies of all local servers, so cookies of other ports are ignored.
    assert status(app, {"cookie": f"nodekin_token_8767=zz; {cookie}"}) == 200
    assert status(app, {"cookie": cookie}, base="http://127.0.0.1:8767") == 401


def test_token_in_address_sets_a_protected_cookie() -> None:
    app = AccessCheck(_open, "127.0.0.1", "geheim", cookie=True)
    answer = response(app, path="/api?token=geheim")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= {*answer.headers["set-cookie"].split("; ")}


def test_wrong_bearer_token_is_refused() -> None:
    app = AccessCheck(_open, "127.0.0.1", "geheim")
    assert status(app, {"authorization": "Bearer geheim"}) == 200
    for wrong in ("Bearer gehei", "Basic geheim", "geheim", "Bearer", "Bearer \xff"):
        assert status(app, {"authorization": wrong.encode("latin-1")}) == 401


def test_server_at_foreign_address_requires_token() -> None:
    AccessCheck(_open, "localhost", None)
    AccessCheck(_open, "0.0.0.0", "geheim")
    for host, token in (("0.0.0.0", ""), ("192.168.1.4", None)):
        with pytest.raises(ValueError, match="token"):
            AccessCheck(_open, host, token)
