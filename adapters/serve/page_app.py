"""The page as an ASGI application, with all it requests, also of a pipeline: ``serve(engine)``."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import sys
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeVar

from ...nodegraph.errors import ModelError, ReadError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.templates import language_of
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.base_retriever import with_all_inner
from ...retrievers.corpus_tools.tool_output import ToolError
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.ranking import cut_scores
from ...retrievers.restricted_retriever import restriction_of
from ...retrievers.results import ScoredNode
from ..cli.exit_status import printable
from ..extras import extra
from ..http_server import bind, serve_http
from ..server_access import (
    LOOPBACK,
    Application,
    OriginCheck,
    Receive,
    Scope,
    Send,
    TokenCheck,
    check_binding,
)
from .corpus_pages import (
    MAX_RESULTS,
    CorpusPages,
    explained_search,
    file_name,
    hit_in,
    node_record,
    plain_number,
    why_missing,
)
from .markdown import GrowingMarkdown, elements, passage_elements

_logger = logging.getLogger("nodekin")

_MAX_BODY = 1_000_000  # bytes of a request

_MAX_LOGGED = 300  # characters of an error

_QUESTION = 20_000  # characters

_HISTORY = 20  # questions of a conversation that are passed on

_PASSAGES = 6  # that are shown where there is no model

_MAX_SOURCE = 1_200  # characters of a source

Event = Mapping[str, Any]

_SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

_FILES = {
    "": ("index.html", "text/html; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "words.json": ("words.json", "application/json"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}

_Answer = Callable[[Mapping[str, Any]], Any]

_Given = TypeVar("_Given")

_Made = TypeVar("_Made")


def no_model(prompt: str) -> str:
    """Stand in for the model of a page that only shows passages.

    Raises:
        ModelError: Always.
    """
    raise ModelError("no language model; set OPENAI_MODEL")


class PageApp:
    """Serve a page on which people ask a corpus and look inside it; the corpus is only read.

    An ASGI application, for uvicorn or any other server.

    Args:
        retriever: The retriever of all searches.
        llm: The model that answers, in any form that ``QueryEngine`` takes, or a ``QueryEngine``.
            None: show the passages alone.
        graph: The graph that can be looked into. Defaults to the graph of the retriever.
        model_name: What the model is called on the page.
        title: What the corpus is called on the page.
        host: Where the server is bound, which requests have to name.
        token: What a browser or a client has to bring.
        min_score: What scores less is no result, where scores are from 0 to 1, as those of the
            default search. An engine has its own.
        refresh: Called with the graph before each answer, in a thread, to bring it up to date:
            ``SourceRefresh()`` reads the files of folders again.

    Raises:
        ValueError: If it is bound elsewhere than to loopback, and there is no token. If the
            retriever is restricted to what a function returns.
    """

    def __init__(
        self,
        retriever: RetrieverProtocol,
        llm: object = None,
        *,
        graph: NodeGraph | None = None,
        model_name: str = "",
        title: str = "",
        host: str = "127.0.0.1",
        token: str | None = None,
        min_score: float | None = None,
        refresh: Callable[[NodeGraph], object] | None = None,
    ) -> None:
        check_binding(host, token)
        self._refresh = refresh
        self.retriever = retriever
        self.graph = graph or _graph_of(retriever)
        self.pages = CorpusPages(self.graph, restriction_of(retriever))
        self.engine = llm if isinstance(llm, QueryEngine) else _engine(retriever, llm, min_score)
        self._model_name = model_name
        self._title = title
        routes = [Route(f"/{name}", _file(name)) for name in _FILES]
        for method, path, answer in (
            ("GET", "corpus", self._corpus),
            ("GET", "documents", self._documents),
            ("GET", "tree", self._tree),
            ("GET", "passage", self._passage),
            ("GET", "picture", self._picture),
            ("POST", "search", self._search),
            ("POST", "missing", self._missing),
        ):
            routes.append(Route(f"/api/{path}", self._endpoint(answer), methods=[method]))
        routes.append(Route("/api/ask", self._ask, methods=["POST"]))
        app: Application = Starlette(routes=routes)
        if token:
            app = TokenCheck(app, token, cookie=True)
        self._app = OriginCheck(app, host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)

    def _endpoint(self, answer: _Answer) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that works in a thread, and says in one sentence what is wrong."""

        async def endpoint(request: Request) -> Response:
            try:
                values = await _values(request)
                made = await run_in_threadpool(self._up_to_date, answer, values)
                if isinstance(made, bytes):
                    return Response(made, headers=_SECURITY, media_type="image/png")
                return _json(made)
            except Exception as error:
                return _failure(error, request)

        return endpoint

    def _up_to_date(self, work: Callable[[_Given], _Made], value: _Given) -> _Made:
        if self._refresh is not None:
            self._refresh(self.graph)
        return work(value)

    def _corpus(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "title": self._title,
            "model": self._model_name,
            "min_score": self.engine.min_score,
            "groups": self.pages.groups(),
            "failures": self.pages.failures(),
        }

    def _documents(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return self.pages.documents(_count(values, "skip", 0), _text(values, "like", ""))

    def _tree(self, values: Mapping[str, Any]) -> dict[str, Any]:
        node, group = _text(values, "node"), _text(values, "group", "")
        return self.pages.tree(node, group, _count(values, "skip", 0))

    def _passage(self, values: Mapping[str, Any]) -> dict[str, Any]:
        node, reach = _text(values, "node"), _count(values, "reach", 3_000)
        return self.pages.passage(node, reach, _span(values))

    def _picture(self, values: Mapping[str, Any]) -> bytes:
        page = _count(values, "page", 0) or None
        return self.pages.picture(_text(values, "node"), page, _span(values))

    def _search(self, values: Mapping[str, Any]) -> dict[str, Any]:
        query, top_k = _question(values, "query"), _top_k(values)
        return explained_search(self.graph, self.retriever, query, top_k)

    def _missing(self, values: Mapping[str, Any]) -> dict[str, Any]:
        query, requested = _question(values, "query"), _text(values, "wanted")
        return why_missing(self.pages.view, self.retriever, query, requested, _top_k(values))

    async def _ask(self, request: Request) -> Response:
        """Answer a question as lines of JSON; the model stops when the reader goes away."""
        try:
            values = await _values(request)
            question, history = _question(values, "question"), _history(values)
            engine = await run_in_threadpool(self._up_to_date, lambda _: self.engine, values)
        except Exception as error:
            return _failure(error, request)

        async def lines() -> AsyncIterator[bytes]:
            async with aclosing(answer_events(engine, question, history)) as events:
                async for event in events:
                    yield _encoded(event) + b"\n"

        return StreamingResponse(lines(), headers=_SECURITY, media_type="application/x-ndjson")


async def answer_events(
    engine: QueryEngine, question: str, history: Iterable[tuple[str, str]]
) -> AsyncGenerator[Event, None]:
    """Yield the sources, the text in pieces, and the end; or what went wrong.

    Closing it ends the model's work. Each block of the answer comes as text, and as ``blocks`` of
    elements when it is complete, with the text behind them as ``pending``.

    Args:
        engine: What answers; one without a model (``no_model``) gives the passages alone.
        question: The question.
        history: Earlier questions, each with its answer.
    """
    try:
        if engine.llm.model is no_model:
            retrieve = partial(engine.retriever.retrieve, question, top_k=_PASSAGES)
            results = cut_scores(await asyncio.to_thread(retrieve), engine.min_score)
            passages: Sequence[ScoredNode] = results
            if results and is_answer(results[0]):  # of a query engine of another framework
                passages, text = getattr(results[0].node, "sources", ()), results[0].text
                yield {"type": "text", "text": text}
                yield {"type": "blocks", "blocks": elements(text), "pending": ""}
            numbered = [(n, r, r.text, None) for n, r in enumerate(passages, 1)]
            yield await asyncio.to_thread(_sources, numbered)
            yield {"type": "end", "answered": bool(results), "notes": []}
            return
        stream = engine.astream(question, history=list(history) or None)
        displayed = False
        markdown = GrowingMarkdown()
        async with aclosing(stream):
            async for piece in stream:
                if not displayed:
                    displayed = True
                    yield await asyncio.to_thread(_sources_of, stream.answer)
                yield {"type": "text", "text": piece}
                if blocks := markdown.add(piece):
                    yield {"type": "blocks", "blocks": blocks, "pending": markdown.pending}
        yield {"type": "blocks", "blocks": markdown.finish(), "pending": ""}
        answer = stream.answer
        yield await asyncio.to_thread(_sources_of, answer)
        yield await asyncio.to_thread(_end_of, answer)
    except Exception as error:
        existing = getattr(error, "answer", None)
        if isinstance(existing, Answer) and existing.sources:
            yield await asyncio.to_thread(_sources_of, existing)
        yield {"type": "error", **_failed("an answer", error)[0]}


def _end_of(answer: Answer) -> Event:
    return {
        "type": "end",
        "answered": answer.answered,
        "searched": answer.searched,
        "confidence": plain_number(answer.confidence),
        "notes": [*answer.notes, *_omissions(answer)],
        "quotes": [quote.to_dict() for quote in answer.quotes if quote.quoted],
    }


def _sources_of(answer: Answer) -> Event:
    return _sources((s.number, s.result, s.text, s.cited) for s in answer.sources)


def _sources(sources: Iterable[tuple[int, ScoredNode, str, bool | None]]) -> Event:
    return {
        "type": "sources",
        "sources": [
            {
                "number": number,
                "cited": cited,
                "text": text[:_MAX_SOURCE],
                "blocks": passage_elements("", "", text[:_MAX_SOURCE], file_name(result.node)),
                "cut": len(text) > _MAX_SOURCE,
                "hit": hit_in(result),
                **node_record(result.node),
            }
            for number, result, text, cited in sources
        ],
    }


def _omissions(answer: Answer) -> Iterable[str]:
    is_chinese = language_of(answer.text) == "zh"
    for reason, number in Counter(item.reason for item in answer.omitted).items():
        if is_chinese:
            yield f"有 {number} 个结果没有交给模型"
            continue
        results = "1 result" if number == 1 else f"{number} results"
        yield f"{results} not shown to the model ({reason.replace('_', ' ')})"


with extra("serve", "starlette"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return Response(_asset(name), headers=_SECURITY, media_type=_FILES[name][1])

    return endpoint


@cache
def _asset(name: str) -> bytes:
    """Return a file of the page."""
    return files(__package__).joinpath(_FILES[name][0]).read_bytes()


def _encoded(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace")


def _json(record: Any, status: int = 200) -> Response:
    return Response(_encoded(record), status, _SECURITY, "application/json")


_WRONG = (ToolError, ValueError, TypeError, ImportError, OSError, RecursionError, ClientDisconnect)
"""Errors of what was requested. All others are our own."""


def _failed(what: str, error: Exception) -> tuple[Event, int]:
    """Log that something failed. Return why, with the kind that the page has words for, and the
    status that says so."""
    message = str(error.args[0]) if type(error) is KeyError and error.args else str(error)
    message = message or type(error).__name__
    kind, status = "request", 400
    if isinstance(error, RecursionError):
        message = "the request is nested too deeply"
    elif isinstance(error, ModelError):
        kind, status = "model", 502
    elif isinstance(error, LookupError):
        kind, status = "lookup", 404
    elif isinstance(error, ReadError):
        kind = "file"
    elif not isinstance(error, _WRONG):
        kind, status, message = "internal", 500, f"{type(error).__name__}: {message}"
    trace = error if status == 500 else None
    _logger.warning("%s failed: %s", what, printable(message[:_MAX_LOGGED]), exc_info=trace)
    return {"error": message, "kind": kind}, status


def _failure(error: Exception, request: Request) -> Response:
    """Return the answer to a request that failed, and log why."""
    return _json(*_failed(f"{request.method} {request.url.path!a:.80}", error))


async def _values(request: Request) -> Mapping[str, Any]:
    """Return what a request says: its query, or the JSON object in its body.

    Raises:
        ValueError: If it is none, or too large.
    """
    if request.method in ("GET", "HEAD"):
        return request.query_params
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise ValueError("send the request as application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            raise ValueError(f"a request has {_MAX_BODY:,} bytes at most")
    try:
        values = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the request is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"the request is a JSON object, not {values!r:.80}")
    return values


def _text(values: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = values.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name} is a text, not {value!r:.80}")
    return value


def _question(values: Mapping[str, Any], name: str) -> str:
    question = _text(values, name).strip()
    if not 0 < len(question) <= _QUESTION:
        raise ValueError(f"{name} has 1 to {_QUESTION:,} characters, not {len(question):,}")
    return question


def _count(values: Mapping[str, Any], name: str, default: int) -> int:
    value = values.get(name, default)
    try:
        number = int(value) if isinstance(value, (str, int)) else -1
    except ValueError:
        number = -1
    if not 0 <= number < 2**53:
        raise ValueError(f"{name} is a number from 0, not {value!r:.80}")
    return number


def _span(values: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the part of a document that is meant; None for that of the node."""
    if values.get("end") is None:
        return None
    return _count(values, "start", 0), _count(values, "end", 0)


def _top_k(values: Mapping[str, Any]) -> int | None:
    """Return the number of results; None for the number of the retriever."""
    if values.get("top_k") is None:
        return None
    top_k = _count(values, "top_k", 1)
    if not 1 <= top_k <= MAX_RESULTS:
        raise ValueError(f"top_k is from 1 to {MAX_RESULTS}, not {top_k}")
    return top_k


def _history(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    history = values.get("history") or []
    if not isinstance(history, list) or not all(isinstance(item, dict) for item in history):
        raise ValueError(f"history is a list of questions with answers, not {history!r:.80}")
    return [(_text(item, "question"), _text(item, "answer")) for item in history[-_HISTORY:]]


def serve(
    source: object,
    llm: object = None,
    *,
    graph: NodeGraph | None = None,
    title: str = "",
    host: str = "127.0.0.1",
    port: int = 8766,
    token: str | None = None,
) -> None:
    """Serve a retriever or a query engine of yours on the page, until it is interrupted.

    The address is printed, with a token in it.

    Args:
        source: A query engine, a graph, or a retriever, of this package or another framework.
        llm: The model that answers, where ``source`` is no query engine. None to show passages.
        graph: What can be looked into. That of the retriever by default; of another framework's
            retriever there is none.
        title: What the corpus is called on the page.
        host: Where to bind. Elsewhere than on this machine a token of yours is needed.
        port: The port. 0 for any that is free.
        token: What a browser has to bring. A new one by default.

    Raises:
        TypeError: If the source is neither a retriever nor an engine, or the model is none.
        ValueError: If it is bound elsewhere than to this machine, and there is no token.
    """
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
    app = page_of(source, llm, graph=graph, title=title, host=host, token=token)
    with bind(host, port) as listener:
        name, port = f"[{host}]" if ":" in host else host, listener.getsockname()[1]
        url = f"http://{name}:{port}/?token={token}"
        print(f"nodekin: serving {url} (Ctrl-C ends it)", file=sys.stderr)  # noqa: T201
        serve_http(app, listener, timeout_graceful_shutdown=3)


def page_of(
    source: object,
    llm: object = None,
    *,
    graph: NodeGraph | None = None,
    title: str = "",
    host: str = "127.0.0.1",
    token: str | None = None,
) -> PageApp:
    """Return the application that ``serve`` serves, for a server of your own."""
    engine = source if isinstance(source, QueryEngine) else None
    retriever = as_retriever(source) if engine is None else engine.retriever
    if engine is None and llm is not None:
        engine = QueryEngine(retriever, llm, check="quotes")
    name = engine.llm.name if engine else ""
    if engine is None and callable(getattr(source, "query", None)):  # of another framework
        name = type(source).__name__
    return PageApp(
        retriever,
        engine,
        graph=graph,
        model_name=name,
        title=title,
        host=host,
        token=token,
    )


def _engine(retriever: RetrieverProtocol, llm: Any, min_score: float | None) -> QueryEngine:
    """Return the query engine of a page. ``min_score`` holds for scores from 0 to 1 only."""
    if getattr(retriever, "score_range", None) != (0.0, 1.0):
        min_score = None
    model = no_model if llm is None else llm
    return QueryEngine(retriever, model, min_score=min_score, check="quotes")


def _graph_of(retriever: object) -> NodeGraph:
    """Return the graph that a retriever searches, or that which the first one in it does."""
    for item in with_all_inner(retriever):
        for graph in (getattr(item, "graph", None), *getattr(item, "graphs", ())):
            if isinstance(graph, NodeGraph):
                return graph
    return NodeGraph(progress=False)
