"""Open what a file of set-ups declares: what was measured is what is deployed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...retrievers.evaluation.setups.describing import describe_setup
from ...retrievers.evaluation.setups.opening import SetupOpener
from ...retrievers.evaluation.setups.setup_file import SetupFile
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
