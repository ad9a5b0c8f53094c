"""The page and its JSON API as an ASGI application; ``serve(engine)`` serves a pipeline."""

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
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.ranking import cut_scores
from ...retrievers.restricted_retriever import restriction_of
from ...retrievers.results import ScoredNode
from ..cli.exit_status import printable
from ..extras import extra
from ..http_server import bind, serve_http, url_of
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
)
from .markdown import GrowingMarkdown, elements, passage_elements

_logger = logging.getLogger("nodekin")

_MAX_BODY = 1_000_000  # bytes of a request body

_MAX_LOGGED = 300  # characters of a logged error message

_QUESTION = 20_000  # characters

_HISTORY = 20  # maximum number of earlier questions passed to the engine

_PASSAGES = 6  # results of a page without a model

_MAX_SOURCE = 1_200  # characters of a source text

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
    """Raise an error: the placeholder model of a page without a language model.

    Raises:
        ModelError: Always.
    """
    raise ModelError("no language model; set OPENAI_MODEL")


class PageApp:
    """An ASGI application with a page for questions to a corpus and a list of its documents.

    The corpus is only read. Run the application with uvicorn or any other ASGI server.

    Args:
        retriever: The retriever of all searches.
        llm: The language model, in any form that ``QueryEngine`` accepts, or a ``QueryEngine``.
            None: show passages without an answer.
        graph: The displayed graph. Defaults to the graph of the retriever.
        model_name: The displayed name of the model.
        title: The displayed name of the corpus.
        host: The address of the server. Requests must name it in their ``Host`` header.
        token: The required access token of requests. None: no token, for loopback only.
        min_score: The minimum score of a result. Ignored if the scores of the retriever are not
            between 0 and 1. An engine uses its own minimum score.
        refresh: A function called with the graph before each answer, in a thread.
            ``SourceRefresh()`` rereads changed files of folders.

    Raises:
        ValueError: If ``host`` is not a loopback address and ``token`` is missing. If the filters
            of the retriever are a function.
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
            ("GET", "passage", self._passage),
            ("GET", "picture", self._picture),
            ("POST", "search", self._search),
        ):
            routes.append(Route(f"/api/{path}", self._endpoint(answer), methods=[method]))
        routes.append(Route("/api/ask", self._ask, methods=["POST"]))
        app: Application = Starlette(routes=routes)
        if token:
            app = TokenCheck(app, token, cookie=True)
        self._app = OriginCheck(app, host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request."""
        await self._app(scope, receive, send)

    def _endpoint(self, answer: _Answer) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that runs ``answer`` in a thread and converts errors to JSON."""

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
            "failures": self.pages.failures(),
        }

    def _documents(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return self.pages.documents(_count(values, "skip", 0), _text(values, "like", ""))

    def _passage(self, values: Mapping[str, Any]) -> dict[str, Any]:
        node, reach = _text(values, "node"), _count(values, "reach", 3_000)
        return self.pages.passage(node, reach, _span(values))

    def _picture(self, values: Mapping[str, Any]) -> bytes:
        page = _count(values, "page", 0) or None
        return self.pages.picture(_text(values, "node"), page, _span(values))

    def _search(self, values: Mapping[str, Any]) -> dict[str, Any]:
        query, top_k = _question(values, "query"), _top_k(values)
        return explained_search(self.graph, self.retriever, query, top_k)

    async def _ask(self, request: Request) -> Response:
        """Stream an answer as lines of JSON. The model stops if the client disconnects."""
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
    """Yield the events of an answer: sources, pieces of text and the end, or an error.

    Closing the generator stops the model. ``blocks`` events contain the completed blocks of the
    text as elements. Their ``pending`` is the text after these blocks.

    Args:
        engine: The query engine. With the model ``no_model``, only passages are returned.
        question: The question.
        history: Earlier pairs of question and answer.
    """
    try:
        if engine.llm.model is no_model:
            retrieve = partial(engine.retriever.retrieve, question, top_k=_PASSAGES)
            results = cut_scores(await asyncio.to_thread(retrieve), engine.min_score)
            passages: Sequence[ScoredNode] = results
            if results and is_answer(results[0]):  # from a query engine of another framework
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
    """Return the bytes of a static file of the page."""
    return files(__package__).joinpath(_FILES[name][0]).read_bytes()


def _encoded(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace")


def _json(record: Any, status: int = 200) -> Response:
    return Response(_encoded(record), status, _SECURITY, "application/json")


_WRONG = (ValueError, TypeError, ImportError, OSError, RecursionError, ClientDisconnect)
"""Errors caused by a request. Other errors are internal."""


def _failed(what: str, error: Exception) -> tuple[Event, int]:
    """Log a failure. Return its message and kind, and the HTTP status. The page translates the
    kind."""
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
    """Log the error of a request and return the error response."""
    return _json(*_failed(f"{request.method} {request.url.path!a:.80}", error))


async def _values(request: Request) -> Mapping[str, Any]:
    """Return the values of a request: the query parameters, or the JSON object of its body.

    Raises:
        ValueError: If the body is not a JSON object or is too large.
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
    """Return the requested span of a document. None: the span of the node."""
    if values.get("end") is None:
        return None
    return _count(values, "start", 0), _count(values, "end", 0)


def _top_k(values: Mapping[str, Any]) -> int | None:
    """Return the requested number of results. None: the default of the retriever."""
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
    """Serve the page for a retriever or a query engine until the program is interrupted.

    The address is printed, including the token.

    Args:
        source: A query engine, a graph, or a retriever, of this package or another framework.
        llm: The language model. Ignored if ``source`` is a query engine. None: show passages.
        graph: The displayed graph. Defaults to the graph of the retriever, and to an empty graph
            for a retriever of another framework.
        title: The displayed name of the corpus.
        host: The address to bind. ``token`` is required if it is not a loopback address.
        port: The port. 0: any free port.
        token: The access token of the page. None: a random token on a loopback address.

    Raises:
        TypeError: If the source is not a retriever or a query engine, or the model is invalid.
        ValueError: If ``host`` is not a loopback address and ``token`` is missing.
    """
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
    app = page_of(source, llm, graph=graph, title=title, host=host, token=token)
    with bind(host, port) as listener:
        url = f"{url_of(host, listener)}/?token={token}"
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
    """Return the application of ``serve``, to run in any ASGI server."""
    engine = source if isinstance(source, QueryEngine) else None
    retriever = as_retriever(source) if engine is None else engine.retriever
    if engine is None and llm is not None:
        engine = QueryEngine(retriever, llm, check="quotes")
    name = engine.llm.name if engine else ""
    if engine is None and callable(getattr(source, "query", None)):  # a foreign engine
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
    """Return the engine of a page. ``min_score`` applies to scores from 0 to 1 only."""
    if getattr(retriever, "score_range", None) != (0.0, 1.0):
        min_score = None
    model = no_model if llm is None else llm
    return QueryEngine(retriever, model, min_score=min_score, check="quotes")


def _graph_of(retriever: object) -> NodeGraph:
    """Return the graph of a retriever or of its first inner retriever with a graph."""
    for item in with_all_inner(retriever):
        for graph in (getattr(item, "graph", None), *getattr(item, "graphs", ())):
            if isinstance(graph, NodeGraph):
                return graph
    return NodeGraph(progress=False)
