"""``nodekin search``: find passages in an index or a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.folder_scan import scan_files
from ...retrievers.analysis.phrases import quoted_phrases
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.filters import all_of, metadata_key, parse_filters
from ...retrievers.group_failures import describe_failures, group_failures
from ...retrievers.results import ScoredNode
from .exit_status import ExitStatus
from .messages import message
from .options import as_text, common_options, search_options
from .output import echo_json, listing, result_record
from .workspace import (
    MAX_MISSING_VECTORS,
    IndexSettings,
    build_if_outdated,
    find_index,
    missing_vectors,
    model_of,
    open_graph,
    warn,
    warnings_to_stderr,
)


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--explain", is_flag=True, help="Print how each result was found.")
@click.option("--exact", is_flag=True, help="Print only passages with the phrase.")
@search_options
@common_options
def search(
    query: tuple[str, ...], explain: bool, exact: bool, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Find passages for QUERY ("-" reads standard input).

    \b
    nodekin search green tea
    nodekin search 绿茶 --in docs -k 3
    nodekin search tea --filter author=Lu --explain
    nodekin search --exact green tea

    Phrases in quotation marks rank first; with --exact, other passages are left out, and a QUERY
    without quotation marks is one phrase.
    """
    text = as_text(" ".join(query))
    with open_search(quiet=quiet, exact=exact, **options) as session:
        results = session.results(f'"{text}"' if exact and not quoted_phrases(text) else text)
        if as_json:
            records = [result_record(rank, result) for rank, result in enumerate(results, 1)]
            echo_json("search", {"query": text, "count": len(records), "results": records})
        else:
            listing(results, text, explain=explain)
        if failures := group_failures(session.graph):
            warn(describe_failures(failures))
        if not results and not quiet:
            count = session.graph.groups["ROOT"].size
            name = "nothing found" if text else "empty query"
            warn(message(name, query=text, count=count))
        return ExitStatus.SUCCESS if results else ExitStatus.NO_RESULTS


@dataclass(frozen=True, slots=True)
class SearchSession:
    """An opened graph with its default retriever.

    Attributes:
        graph: The graph.
        retriever: The default retriever.
        filters: Conditions for each search.
        top_k: The number of results.
    """

    graph: NodeGraph
    retriever: DefaultRetriever
    filters: Mapping[str, Any]
    top_k: int

    def results(self, query: str) -> Sequence[ScoredNode]:
        """Return the results for a query."""
        return self.retriever.retrieve(query, top_k=self.top_k, filters=self.filters)


@contextmanager
def open_search(
    *,
    quiet: bool,
    exact: bool = False,
    folders: tuple[Path, ...] = (),
    store: Path | None = None,
    top_k: int = 6,
    filters: tuple[str, ...] = (),
    embed: str | None = None,
    embed_base_url: str | None = None,
    encoding: str | None = None,
) -> Iterator[SearchSession]:
    """Open an index, or folders in memory, to search it. See ``search_options``.

    While more than 200 vectors are missing, only words are compared.

    Raises:
        CommandError: If the index is missing.
        ValueError: If a filter is invalid.
    """
    conditions = parse_conditions(filters)
    home, settings = find_index(store, folders, embed, encoding)
    model = model_of(home, settings, embed, embed_base_url)
    if home is not None and not quiet and (newer := newer_files(settings)):
        warn(message("stale", count=newer))
    with open_graph(home, settings, folders, quiet=quiet, model=model) as graph:
        embed_keys = None
        if home is not None:
            build_if_outdated(graph, quiet)
            missing = missing_vectors(graph) if settings.is_embedding else 0
            if missing > MAX_MISSING_VECTORS:
                embed_keys = list[str]()
                warn(message("words only", count=missing))
        retriever = DefaultRetriever(
            graph, top_k=top_k, embed_keys=embed_keys, phrases="required" if exact else "first"
        )
        yield SearchSession(graph, retriever, conditions, top_k)


def newer_files(settings: IndexSettings) -> int:
    """Return the number of files that were changed, added or moved after the last update."""
    newer: set[Path] = set()
    for source in settings.sources:
        for folder, names, files in os.walk(source):
            names[:] = [name for name in names if not name.startswith(".")]
            paths = (Path(folder, name) for name in files)
            newer.update(path for path in paths if _changed(path) > settings.updated)
    if not newer:
        return 0
    with warnings_to_stderr(quiet=True):
        scans = [scan_files(source) for source in settings.sources if source.exists()]
    return len(newer.intersection(path for scan in scans for path in scan.files.values()))


def _changed(path: Path) -> float:
    """Return the time when a file was changed or moved. 0: it is gone."""
    try:
        stat = path.stat()
    except OSError:
        return 0.0
    return max(stat.st_mtime, stat.st_ctime)


def parse_conditions(conditions: Iterable[str]) -> dict[str, Any]:
    """Parse filters: FIELD=VALUE, or a filter as JSON.

    All must hold, but the same field again allows another value. A value that looks like a number
    or a truth value matches that value and the text.

    Raises:
        ValueError: If a condition is invalid.

    Example:
        >>> parse_conditions(["author=Lu Yu", "author=Li Bai"])
        {'author': ['Lu Yu', 'Li Bai']}
        >>> parse_conditions(['{"year": {"gte": 1990}}'])
        {'year': {'gte': 1990}}
    """
    equal: dict[str, list[Any]] = {}
    others: list[Mapping[str, Any]] = []
    for condition in map(str.strip, conditions):
        if condition.startswith("{"):
            others.append(json.loads(condition))
            continue
        field, _, text = map(str.strip, condition.partition("="))
        if not field or not text:
            raise ValueError(f"a filter must be FIELD=VALUE, or JSON, got {condition!r:.80}")
        if not field.startswith(("document.id", "metadata.")):
            field = metadata_key(field)
        equal.setdefault(field, []).extend(_values(text))
    filters = all_of(*({field: values} for field, values in equal.items()), *others)
    parse_filters(filters)
    return dict(filters or {})


def _values(text: str) -> list[Any]:
    """Return the possible values of a text, the most likely first."""
    try:
        value = json.loads(text.lower())
    except ValueError:
        return [text]
    return [value, text] if isinstance(value, int | float) else [text]
