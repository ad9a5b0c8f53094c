"""The command ``nodekin serve``: the page for an index or folders."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from ...nodegraph.graph import NodeGraph
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.validation import check_min_score
from ..cli.exit_status import ExitStatus
from ..cli.options import folders_argument, model_options, store_option
from ..cli.workspace import chat_model, find_index, model_of, open_graph
from ..source_refresh import SourceRefresh

TOKEN = "NODEKIN_SERVE_TOKEN"


@click.command()
@folders_argument
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to bind.")
@click.option("--port", default=8766, show_default=True, help="The port.")
@model_options
@click.option("--embed", metavar="MODEL", help="With FOLDER: the embedding model.")
def serve(
    folders: tuple[Path, ...],
    store: Path | None,
    host: str,
    port: int,
    model: str | None,
    base_url: str | None,
    min_score: float | None,
    embed: str | None,
) -> int:
    """Open an index, or FOLDERs read into memory, as a page in the browser.

    The page answers questions with sources and explains why a passage is found. Without a language
    model, the page lists passages.
    Documents are never changed. Open the printed address, which contains a token. To choose the
    token, set NODEKIN_SERVE_TOKEN; this is required to bind another address than loopback. An
    empty NODEKIN_SERVE_TOKEN gives access to all accounts of this machine. Changed folders are
    read again.

    \b
    nodekin serve              the index of this folder
    nodekin serve docs         a folder without an index
    """
    check_min_score(min_score, DefaultRetriever, "--min-score")
    from ..http_server import bind, serve_http, url_of
    from ..server_access import LOOPBACK
    from .page_app import PageApp

    token = os.environ.get(TOKEN)
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
    llm = chat_model(model, base_url) if model or os.environ.get("OPENAI_MODEL") else None
    index = find_index(store, folders, embed)
    with open_graph(index, folders, quiet=False, model=model_of(index, embed)) as graph:
        default, refresh = DefaultRetriever(graph), SourceRefresh()

        def follow(graph: NodeGraph) -> bool:
            if changed := refresh(graph):
                graph.build(*default.groups)
            return changed

        app = PageApp(
            default,
            llm,
            title=_title(folders, store),
            host=host,
            token=token,
            min_score=min_score,
            refresh=follow if index.folder is None else None,
        )
        with bind(host, port) as listener:
            graph.build(*default.groups)
            query = f"?token={token}" if token and TOKEN not in os.environ else ""
            url = f"{url_of(host, listener)}/{query}"
            click.echo(f"nodekin: serving {url} (Ctrl-C ends it)", err=True)
            if token and not query:
                click.echo(f"nodekin: open it with ?token=... of {TOKEN}", err=True)
            serve_http(app, listener, timeout_graceful_shutdown=3)
    return ExitStatus.SUCCESS


def _title(folders: tuple[Path, ...], store: Path | None) -> str:
    position = folders[0] if folders else (store or Path()).absolute().parent
    return position.absolute().name
