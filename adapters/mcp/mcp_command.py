"""Serve documents to agents (Model Context Protocol)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from ...retrievers.corpus_tools.toolset import CorpusTools
from ..cli.exit_status import EXIT_STATUSES, CommandError, ExitStatus
from ..cli.options import debug_option, embed_url_option, store_option
from ..cli.output import echo
from ..cli.workspace import (
    IndexSettings,
    Workspace,
    build_if_outdated,
    check_exist,
    find_index,
    model_of,
    open_graph,
)
from ..server_access import SourceRefresh

TOKEN = "NODEKIN_MCP_TOKEN"


@click.command(epilog=EXIT_STATUSES)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@store_option
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp, not standard input.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: where to bind.")
@click.option("--port", default=8765, show_default=True, help="With --http: the port.")
@click.option(
    "--search-fetch",
    is_flag=True,
    help="Offer only the tools search and fetch, in the form that ChatGPT's connectors take.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=50),
    default=800,
    show_default=True,
    help="The budget of one call's result.",
)
@click.option(
    "--write", is_flag=True, help="With install CLIENT: put it into the client's file, too."
)
@embed_url_option
@debug_option
def mcp(
    folders: tuple[Path, ...],
    store: Path | None,
    http: bool,
    host: str,
    port: int,
    search_fetch: bool,
    max_tokens: int,
    write: bool,
    embed_base_url: str | None,
) -> int:
    """Serve an index, or FOLDERs read into memory, to agents (Model Context Protocol).

    The tools are search, related, grep, outline, read and cite; they only read. Changes by
    'nodekin index' are seen while it runs. On other addresses than this machine's a token is
    required: NODEKIN_MCP_TOKEN.

    \b
    nodekin mcp                         serve the index that is found here
    nodekin mcp docs                    serve a folder without an index
    nodekin mcp --http --port 8765      by HTTP, at http://127.0.0.1:8765/mcp
    nodekin mcp install                 print what to put into clients' configurations
    nodekin mcp install cursor --write  put it into a client's file
    """
    if folders and str(folders[0]) == "install":
        return _install(str(folders[1]) if folders[1:] else "", folders[2:], store, write)
    check_exist(folders)
    home, settings = find_index(store, folders)
    if home is not None:
        home.check_model(settings.embed)
    try:
        from .mcp_server import CorpusServer
    except ImportError as error:
        raise CommandError(str(error), ExitStatus.MODEL_ERROR) from error
    import anyio

    with ExitStack() as stack:

        def open_tools() -> CorpusTools:
            return stack.enter_context(_opened(home, settings, folders, embed_base_url, max_tokens))

        refresh = SourceRefresh() if folders else None
        server = CorpusServer(open_tools, search_fetch=search_fetch, refresh=refresh)
        if not http:
            anyio.run(server.run_stdio)
            return ExitStatus.SUCCESS
        try:
            app = server.http_app(host, os.environ.get(TOKEN))
        except ValueError as error:
            raise CommandError(f"{error} ({TOKEN})", ExitStatus.USAGE_ERROR) from error
        from ..http_server import serve_http, usable_port

        port = usable_port(host, port)
        click.echo(f"nodekin: serving http://{host}:{port}/mcp", err=True)
        serve_http(app, host, port)
    return ExitStatus.SUCCESS


@contextmanager
def _opened(
    home: Workspace | None,
    settings: IndexSettings,
    folders: tuple[Path, ...],
    embed_base_url: str | None,
    max_tokens: int,
) -> Iterator[CorpusTools]:
    """Open the graph of an index or of folders, until the block ends."""
    model = model_of(home, settings, base_url=embed_base_url)
    with open_graph(home, settings, folders, quiet=True, model=model) as graph:
        if home is not None:
            build_if_outdated(graph, quiet=False)
        yield CorpusTools(graph, max_tokens=max_tokens)


def _install(client: str, folders: tuple[Path, ...], store: Path | None, write: bool) -> int:
    """Print what goes into the configuration of a client, and put it there where that is asked."""
    check_exist(folders)
    arguments = ["mcp", *(str(folder.absolute()) for folder in folders)]
    if store is not None or not folders:
        arguments += ["--store", str(Workspace.find(store).folder.absolute())]
    if client and client not in CLIENTS:
        raise CommandError(
            f"no client {client!r}; there is {', '.join(CLIENTS)}", ExitStatus.USAGE_ERROR
        )
    if write and not client:
        raise CommandError(
            f"--write needs a client: nodekin mcp install {next(iter(CLIENTS))} --write",
            ExitStatus.USAGE_ERROR,
        )
    for name in [client] if client else CLIENTS:
        file, key, is_typed = CLIENTS[name]
        server = {"command": _command(), "args": arguments}
        entry = {key: {"nodekin": {"type": "stdio", **server} if is_typed else server}}
        path = Path(file).expanduser()
        echo(f"{name}: {path}")
        echo(json.dumps(entry, ensure_ascii=False, indent=2))
        if write:
            _merge(path, key, entry[key])
            echo(f"written to {path}")
    return ExitStatus.SUCCESS


_APPLICATIONS = {
    "darwin": "~/Library/Application Support",
    "win32": os.environ.get("APPDATA", "~/AppData/Roaming"),
}.get(sys.platform, "~/.config")

CLIENTS = {
    "claude-code": (".mcp.json", "mcpServers", False),
    "claude-desktop": (f"{_APPLICATIONS}/Claude/claude_desktop_config.json", "mcpServers", False),
    "cursor": ("~/.cursor/mcp.json", "mcpServers", False),
    "vscode": (".vscode/mcp.json", "servers", True),
    "windsurf": ("~/.codeium/windsurf/mcp_config.json", "mcpServers", False),
}
"""The configuration file of each client, the key of its servers, and whether they have a type."""


def _command() -> str:
    """Return the command with its path: clients start without the user's environment."""
    beside = Path(sys.executable).with_name("nodekin")
    return str(beside) if beside.exists() else shutil.which("nodekin") or "nodekin"


def _merge(path: Path, key: str, servers: dict[str, Any]) -> None:
    """Put servers into a client's file, and leave all else as it is.

    Raises:
        CommandError: If the file is no JSON object; it is not touched.
    """
    text = path.read_text("utf-8") if path.exists() else "{}"
    try:
        settings = json.loads(text or "{}")
        settings.setdefault(key, {}).update(servers)
    except (ValueError, AttributeError) as error:
        raise CommandError(
            f"{path} is no JSON object ({error}); put the entry in by hand", ExitStatus.INDEX_ERROR
        ) from error
    path = path.resolve()  # it may be a link to where somebody keeps such files
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    if path.exists():  # other servers' keys may be in it
        new.touch(mode=0o600)
        shutil.copymode(path, new)
    new.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")
    new.replace(path)
