"""Ask and look inside, on a page in your browser."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import click

from ...nodegraph.graph import NodeGraph
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ...retrievers.validation import check_min_score
from ..cli.ask_command import min_score_option
from ..cli.exit_status import EXIT_STATUSES, CommandError, ExitStatus
from ..cli.models import chat_model, checked
from ..cli.options import base_url_option, debug_option, store_option
from ..cli.trust import with_origin
from ..cli.workspace import Workspace, check_exist
from ..evaluation.setup_session import check_models, open_setups, read_setups
from ..server_access import LOOPBACK, SourceRefresh

TOKEN = "NODEKIN_SERVE_TOKEN"

_FILE = "setups.toml"


@click.command(epilog=EXIT_STATUSES)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@store_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to bind.")
@click.option("--port", default=8766, show_default=True, help="The port.")
@click.option("-m", "--model", metavar="NAME", help="What answers; OPENAI_MODEL by default.")
@base_url_option
@min_score_option
@click.option(
    "--setups",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(_FILE),
    show_default=True,
    metavar="FILE",
    help="The set-ups to search by, if there is the file, and where the page keeps those that "
    "were tried.",
)
@click.option(
    "--embed",
    metavar="MODEL",
    callback=with_origin,
    help="With FOLDER: the embedding model, as for index.",
)
@debug_option
def serve(
    folders: tuple[Path, ...],
    store: Path | None,
    host: str,
    port: int,
    model: str | None,
    base_url: str | None,
    min_score: float | None,
    setups: Path,
    embed: str | None,
) -> int:
    """Open an index, or FOLDERs read into memory, as a page in the browser.

    Ask, and see the answer come with its sources; see why a passage is found, compare two set-ups
    on a question, and keep the better one. Without a language model the page shows passages.
    Documents are never changed. The page opens by the address that is printed, which has a token
    in it, or by NODEKIN_SERVE_TOKEN, which is needed elsewhere than on this machine; set to nothing
    it lets everybody in who has an account here. Folders are read again when they change.

    \b
    nodekin serve              the index that is found here
    nodekin serve docs         a folder without an index
    """
    check_exist(folders)
    check_min_score(min_score, DefaultRetriever, "--min-score")
    try:
        from ..http_server import serve_http, usable_port
        from .page_app import PageApp
        from .tried_setups import TriedSetups
    except ImportError as error:
        raise CommandError(str(error), ExitStatus.MODEL_ERROR) from error

    token = os.environ.get(TOKEN)
    if token is None and host in LOOPBACK:
        token = secrets.token_urlsafe(16)
    llm = chat_model(model, base_url) if model or os.environ.get("OPENAI_MODEL") else None
    file, store = _declared(setups, folders, store, embed)
    check_models(file)
    with open_setups(file, folders, store, quiet=False) as opener:
        graph, refresh = opener.graph, SourceRefresh()

        def follow(graph: NodeGraph) -> bool:
            if changed := refresh(graph):
                _build(graph, file)
            return changed

        is_read_here = store is None and "store" not in file.graph
        try:
            app = PageApp(
                TriedSetups(opener, setups.absolute()),
                llm,
                model_name="" if llm is None else str(llm.model),
                title=_title(folders, store),
                host=host,
                token=token,
                min_score=min_score,
                refresh=follow if is_read_here else None,
            )
        except ValueError as error:
            raise CommandError(f"{error} ({TOKEN})", ExitStatus.USAGE_ERROR) from error
        _build(graph, file)
        name, port = f"[{host}]" if ":" in host else host, usable_port(host, port)
        query = f"?token={token}" if token and TOKEN not in os.environ else ""
        click.echo(f"nodekin: serving http://{name}:{port}/{query} (Ctrl-C ends it)", err=True)
        if token and not query:
            click.echo(f"nodekin: open it with ?token=... of {TOKEN}", err=True)
        serve_http(app, host, port, timeout_graceful_shutdown=3)
    return ExitStatus.SUCCESS


def _declared(
    path: Path, folders: tuple[Path, ...], store: Path | None, embed: str | None
) -> tuple[SetupFile, Path | None]:
    """Return the set-ups, and the folder of the index if they search one.

    Raises:
        CommandError: If there is nothing to search, or ``--embed`` says what something else does.
    """
    if embed and (path.exists() or not folders):
        other = f"{path} says how to embed" if path.exists() else "an index has its own embeddings"
        raise CommandError(f"--embed {embed!r}: {other}", ExitStatus.USAGE_ERROR)
    if path.exists():
        file = read_setups(path)
        if folders or "source" in file.graph or "store" in file.graph:
            return file, None
        return file, Workspace.find(store).folder
    if not folders:
        return SetupFile(), Workspace.find(store).folder
    graph: dict[str, Any] = {"source": [str(folder.absolute()) for folder in folders]}
    if embed:
        graph["embed"] = checked(embed, None)[0]
    groups = {
        "passage": {"transform": "PassageSplitter"},
        "sentence": {"transform": "split_sentences", "parent": "passage"},
    }
    return SetupFile(groups=groups, graph=graph), None


def _title(folders: tuple[Path, ...], store: Path | None) -> str:
    position = folders[0] if folders else (store or Path()).absolute().parent
    return position.absolute().name


def _build(graph: NodeGraph, file: SetupFile) -> None:
    """Build the groups that are declared, so that the page shows them and answers at once."""
    graph.build(*(name for name in graph.groups if name in ("passage", "sentence", *file.groups)))
