"""Open what a file of set-ups declares, on the documents that a command names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...nodegraph.errors import ModelError
from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import MODEL_KINDS, SetupFile
from ..cli.exit_status import CommandError, ExitStatus
from ..cli.models import embedding_model
from ..cli.trust import (
    Unread,
    is_allowed,
    owned_by_another,
    require_folder,
    require_key,
    require_local_model,
    require_server,
)
from ..cli.workspace import (
    Workspace,
    build_if_outdated,
    check_exist,
    failures_of,
    print_failures,
    warnings_to_stderr,
)
from ..cli.workspace import open_graph as open_index
from ..named_models import NamedModels
from .setups import open_graph


def read_setups(path: Path) -> SetupFile:
    """Read the file of the option ``--setups``.

    Raises:
        CommandError: If the person has not named it, and it is another user's.
        OSError: If it can't be read.
        ValueError: If it declares what there is not.
    """
    source = click.get_current_context().get_parameter_source("setups")
    is_named = source is click.core.ParameterSource.COMMANDLINE
    if not is_named and (reason := owned_by_another(path)) and not is_allowed(path):
        raise CommandError(str(Unread(path.absolute(), reason)), ExitStatus.USAGE_ERROR)
    return SetupFile.read(path)


def declared_models(file: SetupFile) -> NamedModels:
    """Return the models of a file, each checked before it is made: what the person has allowed."""
    path = file.path
    return NamedModels(file.models, check=None if path is None else partial(_check_model, path))


def check_models(file: SetupFile) -> None:
    """Ask now for what the models of a file need, not while a page waits. Say what is refused."""
    if file.path is None:
        return
    for table in file.models.values():
        try:
            _check_model(file.path, table)
        except ModelError as error:
            click.echo(f"nodekin: {error}", err=True)


def _check_model(file: Path, table: Mapping[str, Any]) -> None:
    """Check what a table of ``[models]`` names.

    Raises:
        ModelError: If the person has not allowed it.
    """
    variable, address = table.get("api_key_env", ""), table.get("base_url", "")
    try:
        for kind in MODEL_KINDS:
            require_local_model(file, str(table.get(kind, "")), table)
        if address:
            require_server(file, str(address), str(variable))
        elif variable:
            require_key(file, str(variable))
    except CommandError as error:  # also where the page asks, which tells errors of models
        raise ModelError(error.message) from error


def _check_paths(file: SetupFile) -> None:
    """Check the documents and the store of ``[graph]``.

    Raises:
        CommandError: If one is outside of the file's folder, and the person has not allowed it.
    """
    if file.path is None:
        return
    folder = file.path.parent
    sources = file.graph.get("source", [])
    for path in (*([sources] if isinstance(sources, str) else sources), file.graph.get("store")):
        if path is not None:
            require_folder(file.path, folder, folder / str(path))


@contextmanager
def open_setups(
    file: SetupFile,
    folders: Sequence[Path] = (),
    store: Path | None = None,
    *,
    quiet: bool,
    documents: Sequence[Any] = (),
) -> Iterator[SetupOpener]:
    """Open set-ups on a graph, until the block ends.

    What is searched is ``folders``, else the index in ``store``, else what ``[graph]`` of the file
    names, else ``documents``, else the index of this folder or of the nearest one above.

    Args:
        file: The set-ups.
        folders: What is read into memory.
        store: The folder of an index, whose groups set-ups may search, too.
        quiet: Whether progress and warnings are left out.
        documents: Those that come with the questions.

    Raises:
        CommandError: If there is no such folder or index, or nothing to search.
        ValueError: If a set-up is not well declared.
    """
    models = declared_models(file)
    declared = bool(folders) or "source" in file.graph or "store" in file.graph
    if not folders and (store is not None or not (declared or documents)):
        if store is None and not Workspace.is_near():
            named = "the set-ups" if file.path is None else str(file.path)
            raise CommandError(
                "there are no documents to search: name a folder, or make an index of it with: "
                f"nodekin index FOLDER, or give a source in [graph] of {named}",
                ExitStatus.USAGE_ERROR,
            )
        home = Workspace.find(store)
        settings = home.load()
        model = embedding_model(settings.embed) if settings.embed else None
        with open_index(home, settings, quiet=quiet, model=model) as graph:
            build_if_outdated(graph, quiet)
            yield SetupOpener(file, graph, models)
        return
    check_exist(folders)
    if not folders:
        _check_paths(file)
    overrides = {"on_error": "skip", "progress": False if quiet else None}
    if "on_error" in file.graph:
        del overrides["on_error"]
    with (
        warnings_to_stderr(quiet),
        open_graph(
            file,
            models,
            source=folders,
            documents=None if declared or not documents else list(documents),
            **overrides,
        ) as graph,
    ):
        print_failures(failures_of(graph), quiet)
        yield SetupOpener(file, graph, models)
