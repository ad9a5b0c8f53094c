"""The web page as an ASGI application, and the function ``serve``, which runs it."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ...nodegraph.errors import ModelError, ReadError
from ...nodegraph.graph import NodeGraph
from ...retrievers.answers.answer import Answer, Source
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.base_retriever import with_all_inner
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.ranking import cut_scores
from ...retrievers.restricted_retriever import restriction_of
from ...retrievers.results import ScoredNode
from ..cli.messages import printable
from ..extras import extra
from ..http_server import serve_http
from ..server_access import LOOPBACK, AccessCheck
from .document_pages import DocumentPages
from .html_pages import Page, asset

with extra("serve", "starlette", "markupsafe"):
    from markupsafe import Markup, escape
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send

_logger = logging.getLogger("nodekin")

_MAX_BODY = 1_000_000  # maximum size of a request body in bytes

_MAX_LOGGED = 300  # maximum number of characters of a logged error message

_QUESTION = 20_000  # maximum number of characters in a question

_HISTORY = 20  # maximum number of earlier questions

_PASSAGES = 6  # number of results on a page without a language model

_SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    # with "no-referrer", browsers would send "Origin: null" for forms
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

_FILES = {"page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}

_View = Callable[[Mapping[str, str], Page], Markup | bytes]


def no_model(prompt: str) -> str:
    """A placeholder for the language model of a page that has no language model.

    Raises:
        ModelError: In all cases.
    """
    raise ModelError("no language model; set OPENAI_MODEL")


class PageApp:
    """An ASGI application that answers questions about a corpus and lists its documents.

    The application never changes the corpus. It runs on uvicorn or any other ASGI server.

    Args:
        source: A query engine, a graph or a retriever. Retrievers of other frameworks are
            supported.
        llm: A language model that ``QueryEngine`` accepts. It is ignored if ``source`` is a query
            engine. If None, the page lists passages instead of answers.
        title: The displayed name of the corpus. Defaults to ``"nodekin"``.
        host: The address of the server, which must match the ``Host`` header of each request.
        token: The access token that requests must contain. If None, no token is required, which is
            allowed only for loopback addresses.
        min_score: The minimum score of results. Query engines use their own minimum score instead.

    Raises:
        TypeError: If the source is not a retriever or a query engine, or the model is invalid.
        ValueError: If ``host`` is not a loopback address and no ``token`` is given, if the filter
            of the retriever is a function, or if ``min_score`` is outside the score range of the
            retriever.

    Example:
        >>> from starlette.testclient import TestClient
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph(progress=False)
        >>> ids = graph.add("Green tea is steamed.")
        >>> client = TestClient(PageApp(graph, title="Tea"), base_url="http://127.0.0.1")
        >>> client.get("/search?query=green").status_code
        200
    """

    def __init__(
        self,
        source: object,
        llm: Any = None,
        *,
        title: str = "",
        host: str = "127.0.0.1",
        token: str | None = None,
        min_score: float | None = None,
    ) -> None:
        if isinstance(source, QueryEngine):
            self.engine = source
        else:
            model = no_model if llm is None else llm
            inner = as_retriever(source)
            self.engine = QueryEngine(inner, model, min_score=min_score, check="quotes")
        retriever = self.engine.retriever
        self.graph = _graph_of(retriever)
        self.pages = DocumentPages(self.graph, restriction_of(retriever))
        self._model = _model_name(self.engine)
        self._title = title or "nodekin"
        self._app = AccessCheck(Starlette(routes=self._routes()), host, token, cookie=True)

    def _routes(self) -> list[Route]:
        """Return the routes of the views and of static files."""
        views: dict[str, _View] = {
            "": self._start,
            "search": self._search,
            "documents": self.pages.list_html,
            "document": self.pages.passage_html,
            "picture": self.pages.picture,
        }
        routes = [Route("/ask", partial(self._handle, "ask", None), methods=["POST"])]
        for name, view in views.items():
            routes.append(Route(f"/{name}", partial(self._handle, name, view)))
        for name, kind in _FILES.items():
            routes.append(Route(f"/{name}", Response(asset(name), 200, _SECURITY, kind)))
        return routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request."""
        await self._app(scope, receive, send)

    async def _handle(self, name: str, view: _View | None, request: Request) -> Response:
        """Handle a request with a view. If the view is None, answer a question.

        If an error occurs, an error page is returned.
        """
        page = _page(request)
        status = 200
        try:
            if view is None:
                return await self._ask(request, page)
            content = await run_in_threadpool(view, request.query_params, page)
        except Exception as error:
            message, status = _failed(f"{request.method} {request.url.path!a:.80}", error)
            content = page.html("error", page.say(f"error_{status}", error=page.told(message)))
        if isinstance(content, bytes):
            return Response(content, status, _SECURITY, "image/png")
        html = _encoded(self._opened(request, page, name), content, page.html("end_of_page"))
        response = Response(html, status, _SECURITY, "text/html")
        if request.query_params.get("lang") == page.language:
            response.set_cookie("nodekin_language", page.language, httponly=True, samesite="strict")
        return response

    def _opened(self, request: Request, page: Page, view: str) -> Markup:
        """Return the start of a page, including a link to the same page in the other language."""
        other = {**request.query_params, "lang": "en" if page.language == "zh" else "zh"}
        address = request.url.path if request.method == "GET" else "/"
        url = f"{address}?{urlencode(other, errors='replace')}"
        return page.html("start_of_page", self._title, view, url)

    def _form(self, page: Page, turns: Sequence[tuple[str, str]]) -> Markup:
        history = json.dumps([*turns])
        return page.html("ask_form", turns, history, self._model, self.engine.min_score)

    def _start(self, values: Mapping[str, str], page: Page) -> Markup:
        count = len(self.pages.ids())
        topics = self.pages.topics()
        start = page.html("start", self._title, count, topics, bool(self._model))
        return start + self._form(page, ())

    def _search(self, values: Mapping[str, str], page: Page) -> Markup:
        query = values.get("query")
        form = page.html("search_form", query or "")
        if query is None:
            return form
        results = self.engine.retriever.retrieve(_question(query, "query"))
        with self.graph.reader.reading():  # all positions are read from the same snapshot
            files = self.pages.ranks_by_file(results)
            return form + page.html("results", results, files, self.pages.skipped_files())

    async def _ask(self, request: Request, page: Page) -> Response:
        """Stream an answer as HTML. If the client disconnects, the language model is stopped."""
        values = await _posted(request)
        question = _question(values.get("question", ""), "question")
        turns = _history(values.get("history", "[]"))

        async def parts() -> AsyncIterator[bytes]:
            earlier = await run_in_threadpool(page.html, "earlier_turns", turns)
            start = page.html("start_of_turn", question)
            opened = self._opened(request, page, "")
            yield _encoded(opened, earlier, self._form(page, turns), start)
            skipped = self.pages.skipped_files
            async with aclosing(
                answer_html(self.engine, question, turns, page, skipped=skipped)
            ) as pieces:
                async for piece in pieces:
                    yield _encoded(piece)
            yield _encoded(self._form(page, turns), page.html("end_of_page"))

        return StreamingResponse(parts(), headers=_SECURITY, media_type="text/html")


async def answer_html(
    engine: QueryEngine,
    question: str,
    turns: list[tuple[str, str]],
    page: Page,
    *,
    skipped: Callable[[], str] = str,
) -> AsyncGenerator[Markup, None]:
    """Yield the HTML of an answer: first the model output, then the formatted answer with sources.

    Closing the generator stops the language model.

    Args:
        engine: The query engine. If its model is ``no_model``, only passages are returned.
        question: The question.
        turns: The previous questions and answers. A complete answer is appended to this list.
        page: The page that contains the templates.
        skipped: A function that describes skipped files. The description is displayed if there are
            no sources.
    """
    failure = ""
    try:
        if engine.llm.model is no_model:
            answer = await asyncio.to_thread(_passages, engine, question)
        else:
            async with aclosing(engine.astream(question, history=turns or None)) as stream:
                async for piece in stream:
                    yield escape(piece)
            answer = stream.answer
            turns.append((question, answer.text))
    except Exception as error:
        message, status = _failed("an answer", error)
        reason = page.say(f"error_{status}", error=page.told(message))
        failure = f"{page.say('failed')} {reason}"
        existing = getattr(error, "answer", None)
        answer = existing if isinstance(existing, Answer) else Answer("", question)
    said = ""
    if not failure and not answer.sources:
        said = await asyncio.to_thread(skipped)
    yield await asyncio.to_thread(page.html, "end_of_turn", answer, failure, said)


def _passages(engine: QueryEngine, question: str) -> Answer:
    """Return the results for a page without a language model.

    If the query engine belongs to another framework, its answer is returned.
    """
    results = cut_scores(engine.retriever.retrieve(question, top_k=_PASSAGES), engine.min_score)
    passages: Sequence[ScoredNode] = results
    text = ""
    if results and is_answer(results[0]):
        passages = getattr(results[0].node, "sources", ())
        text = results[0].text
    sources = (Source(number, r, r.text) for number, r in enumerate(passages, 1))
    return Answer(text, question, tuple(sources))


def _model_name(engine: QueryEngine) -> str:
    """Return the displayed name of the language model, which is empty for pages without a model."""
    model = engine.llm.model
    if model is no_model:
        return ""
    return str(getattr(model, "model", engine.llm.name))


def _encoded(*html: str) -> bytes:
    return "".join(html).encode("utf-8", "replace")


def _page(request: Request) -> Page:
    """Return the page in the language that the visitor chose or the browser prefers."""
    chosen = request.query_params.get("lang") or request.cookies.get("nodekin_language")
    if chosen in ("en", "zh"):
        return Page(chosen)
    preferred = request.headers.get("accept-language", "")
    if preferred.lower().startswith("zh"):
        return Page("zh")
    return Page("en")


_STATUSES: Mapping[int, tuple[type[Exception], ...]] = {
    502: (ModelError,),
    404: (LookupError,),
    400: (ValueError, TypeError, ImportError, OSError, ReadError, ClientDisconnect),
}
"""The HTTP status for each type of error that a request can cause.

All other errors are internal server errors.
"""


def _status(error: Exception) -> int:
    """Return the HTTP status of an error."""
    for status, kinds in _STATUSES.items():
        if isinstance(error, kinds):
            return status
    return 500


def _failed(what: str, error: Exception) -> tuple[str, int]:
    """Log a failure, and return its message and the HTTP status."""
    message = str(error)
    status = _status(error)
    if status == 500 or not message:
        message = f"{type(error).__name__}: {message}"
    trace = error if status == 500 else None
    _logger.warning("%s failed: %s", what, printable(message[:_MAX_LOGGED]), exc_info=trace)
    return message, status


async def _posted(request: Request) -> dict[str, str]:
    """Return the values of a submitted form.

    Raises:
        ValueError: If the request body is not a form or is too large.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise ValueError(f"the request must be a form, got {kind!r:.80}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            raise ValueError(f"a request must have at most {_MAX_BODY:,} bytes")
    return dict(parse_qsl(body.decode("utf-8", "replace")))


def _question(text: str, name: str) -> str:
    if not 0 < len(text.strip()) <= _QUESTION:
        raise ValueError(f"{name} must have 1 to {_QUESTION:,} characters, got {len(text):,}")
    return text.strip()


def _history(text: str) -> list[tuple[str, str]]:
    try:
        turns = [(str(question), str(answer)) for question, answer in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"history must be pairs of question and answer, got {error}") from error
    return turns[-_HISTORY:]


def serve(
    source: object,
    llm: object = None,
    *,
    title: str = "",
    host: str = "127.0.0.1",
    port: int = 8766,
    token: str | None = None,
    min_score: float | None = None,
) -> None:
    """Serve a web page for a retriever or a query engine until the program is interrupted.

    The address is printed to stderr. If the token is random, it is part of the address.

    Args:
        source: A query engine, a graph or a retriever. Retrievers of other frameworks are
            supported.
        llm: The language model. It is ignored if ``source`` is a query engine. If None, the page
            lists passages instead of answers.
        title: The displayed name of the corpus. Defaults to ``"nodekin"``.
        host: The address to bind. If it is not a loopback address, ``token`` is required.
        port: The port. If 0, any free port is used.
        token: The access token of the page. If None, a random token is generated, which is allowed
            only for loopback addresses.
        min_score: The minimum score of results. Query engines use their own minimum score instead.

    Raises:
        OSError: If the port is in use, or the address does not belong to this machine.
        TypeError: If the source is not a retriever or a query engine, or the model is invalid.
        ValueError: If ``host`` is not a loopback address and no ``token`` is given, if the filter
            of the retriever is a function, or if ``min_score`` is outside the score range of the
            retriever.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea is steamed.")
        >>> serve(graph, title="Tea")  # doctest: +SKIP
    """
    path = "/?token=..." if token else "/"
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
        path = f"/?token={token}"
    app = PageApp(source, llm, title=title, host=host, token=token, min_score=min_score)
    serve_http(app, host, port, path)


def _graph_of(retriever: object) -> NodeGraph:
    """Return the graph of a retriever, or of the first inner retriever that has a graph."""
    for item in with_all_inner(retriever):
        for graph in (getattr(item, "graph", None), *getattr(item, "graphs", ())):
            if isinstance(graph, NodeGraph):
                return graph
    return NodeGraph(progress=False)
