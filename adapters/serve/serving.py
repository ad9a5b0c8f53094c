"""A pipeline of your own on the page: ``serve(engine)``."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from ...nodegraph.graph import NodeGraph
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ...retrievers.foreign.coercion import as_retriever
from ..http_server import serve_http
from ..server_access import LOOPBACK
from .page_app import PageApp
from .tried_setups import TriedSetups


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

    What it finds, and why, is beside what each group of its graph finds alone. The address is
    printed, with a token in it.

    Args:
        source: A query engine, a graph, or a retriever of this package or another framework.
        llm: The model that answers, where ``source`` is no query engine. None to show passages.
        graph: What can be looked into. That of the retriever by default; of another framework's
            retriever there is none.
        title: What the corpus is called on the page.
        host: Where to bind. Elsewhere than on this machine a token of yours is needed.
        port: The port.
        token: What a browser has to bring. A new one by default.

    Raises:
        TypeError: If the source is neither a retriever nor an engine, or the model is none.
        ValueError: If it is bound elsewhere than to this machine, and there is no token.
    """
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
    app = page_of(source, llm, graph=graph, title=title, host=host, token=token)
    name = f"[{host}]" if ":" in host else host
    print(f"nodekin: serving http://{name}:{port}/?token={token} (Ctrl-C ends it)", file=sys.stderr)  # noqa: T201
    serve_http(app, host, port, timeout_graceful_shutdown=3)


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
    opener = SetupOpener(SetupFile(), graph or _graph_of(retriever))
    return PageApp(
        TriedSetups(opener, Path("setups.toml").absolute(), retriever),
        engine,
        model_name=engine.llm.name if engine else "",
        title=title,
        host=host,
        token=token,
    )


def _graph_of(retriever: object) -> NodeGraph:
    """Return the graph that a retriever searches, or that which the first one in it does."""
    inner: object = retriever
    while inner is not None:
        graphs = [getattr(inner, "graph", None), *getattr(inner, "graphs", ())]
        for graph in graphs:
            if isinstance(graph, NodeGraph):
                return graph
        inner = next(iter(getattr(inner, "retrievers", ())), getattr(inner, "retriever", None))
    return NodeGraph(progress=False)
