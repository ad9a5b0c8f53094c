"""Open what a file of set-ups declares, from Python or for a command, with the code it names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.errors import ModelError
from ...nodegraph.graph import NodeGraph
from ...retrievers.evaluation.setups.describing import describe_setup
from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import MODEL_KINDS, SetupFile, load_object
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RetrieverProtocol
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


def load_setup(
    path: str | Path,
    name: str | None = None,
    *,
    graph: NodeGraph | None = None,
    documents: object = None,
    models: Mapping[str, Any] | None = None,
    trust_code: bool = False,
) -> Any:
    """Return the retriever or query engine that a file declares, ready to be asked.

    A set-up whose type is ``"QueryEngine"`` is a ``QueryEngine``, every other one a retriever.

    Args:
        path: The file. See ``SetupFile``.
        name: The set-up. None for the file's default.
        graph: What to search. Groups are declared on it, and it keeps its own embeddings.
        documents: What to search instead of the sources that ``[graph]`` names. All that
            ``NodeGraph.add`` takes.
        models: Models by name, instead of those of ``[models]``.
        trust_code: Whether code that the file names (``"module:name"``) may be run.

    Raises:
        OSError: If the file can't be read.
        ValueError: If it declares what there is not. If there is nothing to search, or both a
            graph and documents.
        ModelError: If a model needs a server, and none is known.
        ImportError: If what a model needs is not installed.

    Example:
        >>> import tempfile
        >>> setups = '''
        ... [groups.line]
        ... transform = "split_sentences"
        ... [setups.sentences]
        ... type = "Retriever"
        ... group_name = "line"
        ... similarity = {name = "bm25", k1 = 1.2}
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "setups.toml")
        ...     _ = path.write_text(setups)
        ...     retriever = load_setup(path, documents=["Green tea is not fermented. Black is."])
        >>> [result.node.text for result in retriever("green tea")]
        ['Green tea is not fermented.']
    """
    file = SetupFile.read(path, trust_code=trust_code)
    named = NamedModels(file.models, models)
    if graph is not None and documents is not None:
        raise ValueError("give a graph or documents, not both: graph.add(documents) joins them")
    if graph is None:
        graph = open_graph(file, named, documents=documents)
    return SetupOpener(file, graph, named).open(name)


def save_setup(
    retriever: object,
    path: str | Path,
    name: str = "saved",
    *,
    models: Mapping[str, Any] | None = None,
) -> None:
    """Write a retriever or query engine that was built in Python to a file for ``load_setup``.

    The groups that it searches are written, too. Documents and models are not: give them to
    ``load_setup``, or add ``[graph]`` and ``[models]``. What is written was opened again, and was
    the same. Transforms and rerankers of your own are named by their modules, and the file needs
    ``trust_code``.

    Args:
        retriever: The retriever.
        path: The file. One that is there is replaced.
        name: What the set-up is called.
        models: The models in it, by the names that the file has for them.

    Raises:
        ValueError: If a part can't be declared in a file. It says which.

    Example:
        >>> import tempfile
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph(progress=False)
        >>> graph.create_node_group("line", split_sentences)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "setups.toml")
        ...     save_setup(Retriever(graph, "line", top_k=1), path)
        ...     retriever = load_setup(path, documents=["Green tea is not fermented. Black is."])
        >>> [result.node.text for result in retriever("green tea")]
        ['Green tea is not fermented.']
    """
    Path(path).write_text(describe_setup(retriever, name, models).to_toml(), encoding="utf-8")


def open_graph(
    file: SetupFile,
    models: NamedModels,
    *,
    documents: object = None,
    source: Sequence[Path] = (),
    **options: Any,
) -> NodeGraph:
    """Return the graph of a file's ``[graph]``.

    Args:
        file: The set-ups.
        models: What ``embed`` names, or else the name of a model, as ``embedding_model`` takes it.
        documents: What to search instead of the file's sources.
        source: Folders and files to search instead of the file's.
        **options: Other arguments of ``NodeGraph``, instead of the file's.

    Raises:
        ValueError: If there is nothing to search.
    """
    folder = Path() if file.path is None else file.path.parent
    arguments = dict(file.graph)
    if isinstance(embed := arguments.get("embed"), str):
        arguments["embed"] = models.embedder(embed)
    elif isinstance(embed, list):
        arguments["embed"] = {name: models.embedder(name) for name in embed}
    if "store" in arguments:
        arguments["store"] = folder / arguments["store"]
    sources = arguments.pop("source", [])
    paths: list[Path] = [folder / p for p in ([sources] if isinstance(sources, str) else sources)]
    if source or documents is not None:
        paths = list(source)
    if not paths and documents is None and "store" not in arguments:
        raise ValueError(
            f"there are no documents to search: name a folder as source in [graph] of "
            f"{file.path or 'the set-ups'}, or give documents"
        )
    graph = NodeGraph(paths or None, **{**arguments, **options})
    if documents is not None:
        graph.add(documents)
    return graph


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


trust_code_option = click.option(
    "--trust-code",
    is_flag=True,
    help="Run the code that the file of set-ups names as module:name. Read it before.",
)


def load_retriever(name: str, documents: Callable[[], Sequence[Document]]) -> RetrieverProtocol:
    """Return the retriever that ``module:name`` names.

    It is a retriever, chain, index or query engine of any framework, a function from a question
    to texts or documents, an object that is called like one, or what makes one: a class, or a
    function without an argument or with the one argument ``documents``.

    Args:
        name: Its name.
        documents: Returns the documents that are searched.

    Raises:
        CommandError: If there is none of that name, or it is no retriever, or can't be made.
    """
    try:
        source = load_object(name)
    except ValueError as error:
        raise _error(str(error)) from error
    required = _required(source) if inspect.isclass(source) or inspect.isroutine(source) else None
    try:
        if required == []:
            source = source()
        elif required == ["documents"]:
            source = source(documents())
        try:
            return as_retriever(source, f"--retriever {name}")
        except TypeError:
            if inspect.isclass(source) or not callable(source):
                raise
            return as_retriever(source.__call__, name=type(source).__name__)
    except Exception as error:  # what any code raises
        raise _error(f"--retriever {name}: {type(error).__name__}: {error}") from error


def refuse_unless_typed(parameter: str, option: str) -> None:
    """Check that the person has typed an option that runs code, and no file has it.

    Raises:
        CommandError: If a settings file names it.
    """
    source = click.get_current_context().get_parameter_source(parameter)
    if source is click.core.ParameterSource.DEFAULT_MAP:
        raise _error(f"{option} runs code, so it can't be in nodekin.toml; type it in the command")


def _required(source: Any) -> list[str]:
    """Return the names of the arguments that have to be given."""
    parameters = inspect.signature(source).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _error(message: str) -> CommandError:
    return CommandError(message, ExitStatus.USAGE_ERROR)
