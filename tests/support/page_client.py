"""A client for the web page that needs neither a browser nor a socket."""

import asyncio
import html
import json
import re

import httpx


class Client:
    """A client that sends requests to an ASGI application without a socket."""

    def __init__(self, app, base="http://127.0.0.1:8766") -> None:
        self.app = app
        self.base = base

    async def request(self, method: str, path: str, **options) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=self.base) as client:
            return await client.request(method, path, **options)

    def get(self, path: str, **params):
        return asyncio.run(self.request("GET", path, params=params or None))

    def ask(self, question: str, turns=()):
        form = {"question": question, "history": json.dumps(turns)}
        return asyncio.run(self.request("POST", "/ask", data=form))


def found(answer: httpx.Response) -> list[str]:
    """Return the ids of the documents that a response lists."""
    assert answer.status_code == 200, answer.text
    return [html.unescape(i) for i in re.findall(r'data-document="([^"]*)"', answer.text)]


def text_of(answer: httpx.Response) -> str:
    """Return the text that a response displays."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", answer.text)).split())
