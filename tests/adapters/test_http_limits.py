"""Timeouts and redirects of hostile servers.

The tests measure no time: each call must return while the server still misbehaves. The server
stops after all calls have returned.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from support.hostile_server import WAYS, hostile
from support.scripted_server import ChatServer, serving

from nodekin.adapters.openai import OpenAIEmbedder, RerankEndpoint
from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import LLM, ModelError
from nodekin.retrievers.protocols import RerankError

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.usefixtures("socket_enabled", "collected"),
    # The clients of calls that were given up are not closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect garbage, so that leaked resources warn in this test instead of a later test."""
    yield
    gc.collect()


CEILING = 120
"""Seconds after which a call counts as endless."""

LIMIT = 0.25

FAILURES = (openai.OpenAIError, TimeoutError, ModelError, RerankError)


def awaited(make: Callable[[str], Any], call: Callable[[Any], Any]) -> Callable[[str], Any]:
    async def run(url: str) -> Any:
        model = make(url)
        try:
            return await call(model)
        finally:
            for client in model._of_loops.values():
                await client.close()

    return lambda url: asyncio.run(run(url))


def chat(url: str) -> OpenAIChat:
    return OpenAIChat("m", base_url=url, api_key="-", timeout=LIMIT)


def embedder(url: str) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=url, api_key="-", timeout=LIMIT)


def endpoint(url: str) -> RerankEndpoint:
    return RerankEndpoint("m", base_url=url, timeout=LIMIT)


async def all_of(stream: Any) -> list[str]:
    return [text async for text in stream]


def own_client(url: str) -> OpenAIChat:
    return OpenAIChat("m", client=openai.OpenAI(base_url=url, api_key="-"), timeout=LIMIT)


CALLS: dict[str, Callable[[str], Any]] = {
    "complete": lambda url: chat(url).complete("Tea?"),
    "complete_json": lambda url: chat(url).complete_json("Tea?", {"type": "object"}),
    "stream": lambda url: list(chat(url).stream("Tea?")),
    "acomplete": awaited(chat, lambda model: model.acomplete("Tea?")),
    "astream": awaited(chat, lambda model: all_of(model.astream("Tea?"))),
    "embed": lambda url: embedder(url).embed(["tea"]),
    "embed_queries": lambda url: embedder(url).embed_queries(["tea"]),
    "aembed_queries": awaited(embedder, lambda model: model.aembed_queries(["tea"])),
    "rerank": lambda url: endpoint(url).rerank("tea", ["a", "b"]),
    "arerank": awaited(endpoint, lambda model: model.arerank("tea", ["a", "b"])),
    "given client": lambda url: own_client(url).complete("Tea?"),
    "stream of a given client": lambda url: list(own_client(url).stream("Tea?")),
}


def outcomes(calls: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Run calls concurrently and return their results or errors. Fail if a call does not return."""
    results: dict[str, Any] = {}

    def work(name: str, call: Callable[[], Any]) -> None:
        try:
            results[name] = call()
        except BaseException as error:
            results[name] = error

    threads = [threading.Thread(target=work, args=item, daemon=True) for item in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(CEILING)
    assert set(results) == set(calls), f"never ended: {sorted(set(calls) - set(results))}"
    return results


@pytest.mark.parametrize("way", WAYS)
def test_every_call_ends_with_hostile_server(way: str) -> None:
    with serving(ChatServer()) as other, hostile(way, other.url) as server:
        # A given client follows redirects.
        calls = {name: call for name, call in CALLS.items() if "redirects" not in way}
        calls |= {name: call for name, call in CALLS.items() if "client" not in name}
        results = outcomes({name: lambda c=call: c(server.url) for name, call in calls.items()})
        assert not server.released.is_set()  # the server still does it
        assert not other.asked
    for name, result in results.items():
        assert isinstance(result, FAILURES), (name, result)


def test_errors_name_the_cause() -> None:
    way = "redirects to another server"
    expected = pytest.raises(openai.APIStatusError, match="307")
    with serving(ChatServer()) as other, hostile(way, other.url) as server, expected:
        chat(server.url).complete("Tea?")
    with hostile("drips chunks") as server:
        with pytest.raises(TimeoutError, match=r"did not answer within 0.25 s"):
            chat(server.url).complete("Tea?")
        with pytest.raises(ModelError, match=r"did not answer within 0.25 s"):
            LLM(chat(server.url)).complete("Tea?")
