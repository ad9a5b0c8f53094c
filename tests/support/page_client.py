"""A client of the page, without a browser and without a socket."""

import asyncio
import json

import httpx


class Client:
    """Send requests to an application without a socket."""

    def __init__(self, app, base="http://127.0.0.1:8766") -> None:
        self.app = app
        self.base = base

    async def request(self, method: str, path: str, **options) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=self.base) as client:
            return await client.request(method, path, **options)

    def get(self, path: str, **params):
        return asyncio.run(self.request("GET", path, params=params))

    def post(self, path: str, **body):
        return asyncio.run(self.request("POST", path, json=body))


def events_of(answer: httpx.Response) -> list[dict]:
    """Return the events of an answer."""
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]
