"""The command ``nodekin serve``, which opens an index or folders as a web page."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ...retrievers.composite.default_retriever import DefaultRetriever
from ..cli.options import folders_argument, model_options, store_option
from ..cli.workspace import find_index, model_of, open_graph
from ..named_models import chat_model

TOKEN = "NODEKIN_SERVE_TOKEN"


@click.command()
@folders_argument
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of the server.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8766, help="The port. The default is 8766."
)
@model_options
def serve(
    folders: tuple[Path, ...],
    store: Path | None,
    host: str,
    port: int,
    model: str | None,
    min_score: float | None,
) -> None:
    """Open an index, or FOLDERs read into memory, as a page in the browser.

    The page answers questions with sources and explains why a passage is found. Without a language
    model, the page lists passages.
    Documents are never changed. Open the printed address, which contains a token. To choose the
    token, set NODEKIN_SERVE_TOKEN, which is required to serve other machines. If it is empty, all
    accounts of this machine have access.

    \b
    nodekin serve              the index of this folder
    nodekin serve docs         a folder without an index
    """
    from . import page_app

    llm: object = None
    if model:
        llm = chat_model(model)
    index = find_index(store, folders)
    place = folders[0] if folders else index.folder.parent
    with open_graph(index, quiet=False, model=model_of(index)) as graph:
        retriever = DefaultRetriever(graph)
        graph.build(retriever.target, retriever.sentences)
        page_app.serve(
            retriever,
            llm,
            title=place.absolute().name,
            host=host,
            port=port,
            token=os.environ.get(TOKEN),
            min_score=min_score,
        )
