"""Open what a file of set-ups declares, on the documents that a command names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ..cli.models import embedding_model
from ..cli.workspace import (
    Workspace,
    check_exist,
    failures_of,
    print_failures,
    warnings_to_stderr,
)
from ..cli.workspace import open_graph as open_index
from ..named_models import NamedModels
from .setups import open_graph

DEFAULT_SETUPS = SetupFile({"default": {"type": "DefaultRetriever"}})
"""What is opened where no file is named."""


@contextmanager
def open_setups(
    file: SetupFile,
    folders: Sequence[Path] = (),
    store: Path | None = None,
    *,
    quiet: bool,
    documents: Sequence[Any] = (),
    opener: type[SetupOpener] = SetupOpener,
) -> Iterator[SetupOpener]:
    """Open set-ups on a graph, until the block ends.

    What is searched is ``folders``, else the index in ``store``, else what ``[graph]`` of the file
    names, else ``documents``.

    Args:
        file: The set-ups.
        folders: What is read into memory.
        store: The folder of an index, whose groups set-ups may search, too.
        quiet: Whether progress and warnings are left out.
        documents: Those that come with the questions.
        opener: What opens the set-ups.

    Raises:
        CommandError: If there is no such folder or index.
        ValueError: If there is nothing to search, or a set-up is not well declared.
    """
    models = NamedModels(file.models)
    if store is not None and not folders:
        home = Workspace.find(store)
        settings = home.load()
        model = embedding_model(settings.embed) if settings.embed else None
        with open_index(home, settings, quiet=quiet, model=model) as graph:
            yield opener(file, graph, models)
        return
    check_exist(folders)
    own = {"on_error": "skip", "progress": False if quiet else None}
    if "on_error" in file.graph:
        del own["on_error"]
    declared = bool(folders) or "source" in file.graph or "store" in file.graph
    with (
        warnings_to_stderr(quiet),
        open_graph(
            file,
            models,
            source=folders,
            documents=None if declared or not documents else list(documents),
            **own,
        ) as graph,
    ):
        print_failures(failures_of(graph), quiet)
        yield opener(file, graph, models)
