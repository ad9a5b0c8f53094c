"""The page: its first view, first results and first words beside the engine's own, 50 people.

A server of its own process serves the page of ``--size`` English passages (``speed.py``) in a
file, with a scripted model. The engine is the same set-up on the same file, in this process. Each
question is put to the engine and to the page by turns; times are the lower quartiles of 100, which
depend less on what else the machine does. Both are timed once more with the page in this process,
without HTTP and its client: what the page itself takes. Then people come all at once, each of whom
opens the page, searches, asks, and opens a passage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from harness import arguments, show
from speed import corpora

from nodekin.adapters.serve.page_app import PageApp
from nodekin.adapters.serve.tried_setups import TriedSetups
from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import BaseRetriever, QueryEngine
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile

if TYPE_CHECKING:
    from starlette.types import ASGIApp

FIRST_VIEW = ("/", "/page.js", "/page.css", "/words.json", "/api/corpus", "/api/documents")
SETUPS = {"default": {"type": "DefaultRetriever", "target": "passage", "top_k": 10}}
PASSAGES = 6
WITHOUT_HTTP = " without HTTP"


class Model:
    """Say the same words to everybody, the first of them after some seconds."""

    name = "scripted"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def complete(self, prompt: str) -> str:
        """Return the answer."""
        return "It is so [1]."

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the answer."""
        await asyncio.sleep(self.seconds)
        for word in ("It", " is", " so", " [1]."):
            yield word


def opened(file: Path) -> SetupOpener:
    """Return the set-ups on the graph in a file."""
    graph = NodeGraph(store=file, progress=False)
    graph.create_node_group("passage", str.splitlines)
    graph.create_node_group("sentence", split_sentences, parent="passage")
    return SetupOpener(SetupFile(SETUPS), graph)


def serve(file: Path, seconds: float) -> None:
    """Serve the page on a free port, and print where."""
    import uvicorn

    tried = TriedSetups(opened(file), file.with_name("setups.toml"))
    config = uvicorn.Config(PageApp(tried, Model(seconds)), port=0, log_level="error")
    server = uvicorn.Server(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await task

    asyncio.run(run())


@contextmanager
def serving(file: Path, seconds: float) -> Iterator[str]:
    """Serve the page in a process of its own; yield its address."""
    command = [sys.executable, __file__, "--serve", str(file), "--first", str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"  # type: ignore[union-attr]
    finally:
        process.terminate()
        process.wait()


async def engine_first_word(engine: QueryEngine, question: str) -> float:
    """Return the seconds until the engine's first piece of an answer."""
    begin, stream = time.perf_counter(), engine.astream(question)
    async for _ in stream:
        break
    seconds = time.perf_counter() - begin
    await stream.aclose()
    return seconds


def page_first_word(client: HTTPConnection, question: str) -> float:
    """Return the seconds until the first word of an answer."""
    begin, seconds = time.perf_counter(), 0.0
    for line in posted(client, "/api/ask", {"question": question}):
        event = json.loads(line)
        assert event["type"] != "error", event
        if event["type"] == "text" and not seconds:
            seconds = time.perf_counter() - begin
    return seconds


def page_search(client: HTTPConnection, query: str) -> float:
    """Return the seconds until the results of a search with all that explains them."""
    begin = time.perf_counter()
    answer = posted(client, "/api/search", {"query": query}).read()
    seconds = time.perf_counter() - begin
    assert json.loads(answer)["results"]
    return seconds


def posted(client: HTTPConnection, path: str, record: dict[str, str]) -> HTTPResponse:
    """Return the answer to a request.

    The client is the standard library's, which takes .3 ms for a request that the page refuses;
    httpx takes .9.
    """
    client.request("POST", path, json.dumps(record), {"Content-Type": "application/json"})
    answer = client.getresponse()
    assert answer.status == 200, answer.read()
    return answer


async def without_http(page: ASGIApp, path: str, record: dict[str, str], kind: str) -> float:
    """Return the seconds until a page in this process sends a record of that kind."""
    body, ended, seconds = json.dumps(record).encode(), asyncio.Event(), 0.0
    asked: list[dict[str, Any]] = [{"type": "http.request", "body": body}]
    scope = {
        **{"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http"},
        **{"path": path, "query_string": b"", "client": None, "server": None},
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
    }

    async def receive() -> Any:
        if asked:
            return asked.pop()
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal seconds
        now = time.perf_counter()
        if message.get("body") and not seconds and kind in json.loads(message["body"]):
            seconds = now - begin
        if message["type"] == "http.response.body" and not message.get("more_body"):
            ended.set()

    begin = time.perf_counter()
    await page(scope, receive, send)
    assert seconds
    return seconds


def engine_search(retriever: BaseRetriever, query: str) -> float:
    """Return the seconds of the same search, evidence included."""
    begin = time.perf_counter()
    for result in retriever.retrieve(query):
        assert result.evidence
    return time.perf_counter() - begin


async def by_turns(
    file: Path, queries: Sequence[str], seconds: float, url: str
) -> dict[str, list[tuple[float, float]]]:
    """Return the engine's seconds and the page's: for results and first words."""
    opener, other = opened(file), opened(file)  # which has not read what the first has
    retriever = opener.retriever("default", "default")
    engine = QueryEngine(retriever, Model(seconds), top_k=PASSAGES)
    page = PageApp(TriedSetups(other, file.with_name("setups.toml")), Model(seconds))
    pairs: dict[str, list[tuple[float, float]]] = {}
    client = HTTPConnection(url.removeprefix("http://"), timeout=600)
    for number, query in enumerate([*queries[:10], *queries]):
        search = engine_search(retriever, query)
        results = page_search(client, query)
        results_inside = await without_http(page, "/api/search", {"query": query}, "results")
        word = await engine_first_word(engine, query)
        first = page_first_word(client, query)
        first_inside = await without_http(page, "/api/ask", {"question": query}, "text")
        if number >= 10:  # the first are to warm up
            pairs.setdefault("results", []).append((search, results))
            pairs.setdefault("results" + WITHOUT_HTTP, []).append((search, results_inside))
            pairs.setdefault("first word", []).append((word, first))
            pairs.setdefault("first word" + WITHOUT_HTTP, []).append((word, first_inside))
    client.close()
    opener.graph.close()
    other.graph.close()
    return pairs


async def first_view(url: str) -> list[float]:
    """Return the seconds that the server takes for the page's first view, some times."""
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        views = []
        for _ in range(20):
            begin = time.perf_counter()
            for path in FIRST_VIEW:
                assert (await client.get(path)).status_code == 200
            views.append(time.perf_counter() - begin)
        return views


async def crowd(url: str, people: int, queries: Sequence[str]) -> tuple[int, int, list[float]]:
    """Let people come at once; return their requests, the errors, and each one's seconds."""
    errors, requests = 0, 0

    async def person(number: int) -> float:
        nonlocal errors, requests
        query, begin = queries[number % len(queries)], time.perf_counter()
        async with httpx.AsyncClient(base_url=url, timeout=600) as client:
            try:
                for path in FIRST_VIEW:
                    requests += 1
                    errors += (await client.get(path)).status_code != 200
                requests += 3
                found = await client.post("/api/search", json={"query": query})
                errors += found.status_code != 200
                asked = await client.post("/api/ask", json={"question": query})
                errors += b'"text"' not in asked.content
                node = found.json()["results"][0]["id"]
                read = await client.get("/api/passage", params={"node": node})
                errors += read.status_code != 200
            except (httpx.HTTPError, AssertionError, LookupError):
                errors += 1
        return time.perf_counter() - begin

    seconds = await asyncio.gather(*(person(number) for number in range(people)))
    return requests, errors, list(seconds)


def rows(data: Path, size: int, people: int, first: float) -> Iterator[list[str]]:
    """Yield what was measured."""
    (corpus,) = corpora(data, size, ["English"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "graph.nodekin"
        opener = opened(file)
        step = range(0, size, 100)
        texts = corpus.texts
        opener.graph.add(Document("\n".join(texts[i : i + 100]), id=f"{i}.txt") for i in step)
        opener.graph.build("passage", "sentence")
        opener.retriever("default", "default").retrieve(corpus.queries[0])
        opener.graph.close()
        for seconds in (first, 0.0):
            with serving(file, seconds) as url:
                pairs = asyncio.run(by_turns(file, corpus.queries, seconds, url))
                for kind, both in pairs.items():
                    if "word" in kind:
                        yield [f"{kind}, a model of {1000 * seconds:.0f} ms", *_quotients(both)]
                    elif seconds:
                        yield [kind, *_quotients(both)]
                if seconds:
                    continue
                views = [1000 * one for one in asyncio.run(first_view(url))]
                yield ["first view", "", f"{statistics.median(views):.0f} ms", ""]
                requests, errors, waits = asyncio.run(crowd(url, people, corpus.queries))
                name = f"{people} people, {requests} requests"
                median = statistics.median(waits)
                yield [
                    name,
                    "",
                    f"{median:.1f} s each, at most {max(waits):.1f}",
                    f"{errors} errors",
                ]


def _quotients(pairs: Sequence[tuple[float, float]]) -> list[str]:
    engine, page = (
        1000 * statistics.quantiles(times, n=4)[0] for times in zip(*pairs, strict=True)
    )
    return [f"{engine:.1f} ms", f"{page:.1f} ms", f"{page / engine:.2f}"]


def main() -> None:
    """Measure, or serve."""
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="passages")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument(
        "--first", type=float, default=0.2, help="seconds of the model's first word"
    )
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.first)
        return
    columns = ["", "engine", "page", "page / engine"]
    show("The page", columns, rows(options.data, options.size, options.people, options.first))


if __name__ == "__main__":
    main()
