"""Serve documents to agents (Model Context Protocol)."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import click

from ...retrievers.corpus_tools.toolset import CorpusTools
from ..cli.options import folders_argument, store_option
from ..cli.workspace import check_model, find_index, model_of, open_graph

TOKEN = "NODEKIN_MCP_TOKEN"


@click.command()
@folders_argument
@click.option(
    "--http", is_flag=True, help="Serve streamable HTTP at /mcp instead of standard input."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address, with --http.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    help="The port, with --http. The default is 8765.",
)
@click.option(
    "--search-fetch", is_flag=True, help="Offer only the tools search and fetch, for ChatGPT."
)
@store_option
def mcp(
    folders: tuple[Path, ...],
    http: bool,
    host: str,
    port: int,
    search_fetch: bool,
    store: Path | None,
) -> None:
    """Serve an index, or FOLDERs read into memory, to agents (Model Context Protocol).

    The tools are search, grep, outline, read, related and cite. They never change the documents.
    To serve other machines, set a token in NODEKIN_MCP_TOKEN.

    \b
    nodekin mcp                         serve the index that is found here
    nodekin mcp docs                    serve a folder without an index
    nodekin mcp --http --port 8765      serve HTTP at http://127.0.0.1:8765/mcp
    """
    index = find_index(store, folders)
    check_model(index)
    from .mcp_server import CorpusServer

    with ExitStack() as stack:

        def open_tools() -> CorpusTools:
            opened = open_graph(index, quiet=True, model=model_of(index))
            return CorpusTools(stack.enter_context(opened))

        server = CorpusServer(open_tools, search_fetch=search_fetch)
        if http:
            from ..http_server import serve_http

            serve_http(server.http_app(host, os.environ.get(TOKEN)), host, port, "/mcp")
        else:
            server.serve_stdio()
