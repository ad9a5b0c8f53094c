"""The command ``nodekin search``, which finds passages in an index or a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import click

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.analysis.phrases import quoted_phrases
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.conditions import MISSING
from ...retrievers.filters import (
    Filter,
    Filters,
    all_of,
    field_value,
    metadata_key,
    parse_filters,
)
from ...retrievers.group_failures import describe_failures, group_failures
from ..changed_files import newer_files
from . import output
from .messages import ExitStatus, message, translated, warn
from .options import common_options, search_options
from .workspace import describe_skipped_files, find_index, model_of, open_graph


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@search_options
@click.option("--explain", is_flag=True, help="Print how each result was found.")
@click.option("--exact", is_flag=True, help="Print only passages with the phrase.")
@common_options
def search_command(
    query: tuple[str, ...], explain: bool, exact: bool, json: bool, quiet: bool, **options: Any
) -> int:
    """Find passages for QUERY ("-" reads standard input).

    \b
    nodekin search green tea
    nodekin search 绿茶 --in docs -k 3
    nodekin search tea --filter author=Lu --explain
    nodekin search --exact green tea

    Passages that contain phrases in quotation marks rank first. With --exact, only passages that
    contain the phrases are listed. A QUERY without quotation marks is then a single phrase.
    """
    text = as_text(" ".join(query))
    with open_search(quiet=quiet, exact=exact, **options) as (retriever, filters):
        is_phrase = exact and not quoted_phrases(text)
        results = retriever.retrieve(f'"{text}"' if is_phrase else text, filters=filters)
        if json:
            records = [output.result_record(r, rank=rank) for rank, r in enumerate(results, 1)]
            output.echo_json("search", {"query": text, "count": len(records), "results": records})
        else:
            output.print_rows(output.result_rows(results, text, explain=explain))
        if failures := group_failures(retriever.graph):
            warn(describe_failures(failures))
        if not results and not quiet:
            warn_nothing_found(retriever.graph, text, filters)
        return ExitStatus.SUCCESS if results else ExitStatus.NO_RESULTS


def warn_nothing_found(graph: NodeGraph, query: str, filters: Filters) -> None:
    """Print that nothing was found, and list the documents and files that were not searched."""
    if not query:
        return warn(message("empty query"))
    size = graph.groups[ROOT].size
    said = message("nothing found", query=query, count=size)
    if filters:
        condition = parse_filters(filters)
        searched = _documents_within(graph, condition)
        if not searched and _has_unknown_field(graph, condition):
            return None  # the search has already printed a warning
        if not searched:
            return warn(message("filter excludes all", count=size))
        said = message("nothing found in filtered", query=query, count=searched, all=size)
    if skipped := describe_skipped_files(graph):
        said = message("and", first=said, second=translated(skipped))
    return warn(said)


def _documents_within(graph: NodeGraph, condition: Filter) -> int:
    """Count the documents that contain passages that match a filter."""
    passages = graph.nodes("passage")
    return len({node.document_id for node in passages if condition.matches(node)})


def _has_unknown_field(graph: NodeGraph, condition: Filter) -> bool:
    """Return whether a filter uses a metadata field that does not occur in any passage."""
    passages = graph.nodes("passage")
    for field in _compared_fields(condition):
        if all(field_value(node.metadata, field) is MISSING for node in passages):
            return True
    return False


def _compared_fields(filter: Filter) -> Iterator[str]:
    """Yield the names of the metadata fields that a filter uses."""
    if filter.join == "field" and filter.condition is not None and filter.condition.compares:
        yield filter.field
    for part in filter.parts:
        yield from _compared_fields(part)


def as_text(query: str) -> str:
    """Return the text of a query. If the query is a dash, it is read from standard input."""
    if query == "-":
        query = sys.stdin.read()
    return query.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


@contextmanager
def open_search(
    *, quiet: bool, exact: bool = False, **options: Any
) -> Iterator[tuple[DefaultRetriever, Filters]]:
    """Open an index, or read folders into memory, and yield the default retriever and the filters.

    Raises:
        CommandError: If the index does not exist.
        ValueError: If a filter is invalid.
    """
    conditions = parse_conditions(options["filter"])
    index = find_index(options["store"], options["in"])
    with open_graph(index, quiet=quiet, model=model_of(index)) as graph:
        if not (quiet or index.in_memory):
            is_copy = graph.reader.is_read_only
            newer = newer_files(graph.sources, index.updated, is_copy=is_copy)
            if newer:
                warn(message("stale", count=newer))
        phrases: Literal["first", "required"] = "required" if exact else "first"
        retriever = DefaultRetriever(graph, top_k=options["top_k"], phrases=phrases)
        yield retriever, conditions


def parse_conditions(conditions: Iterable[str]) -> Filters:
    """Parse filters that are given as FIELD=VALUE or as JSON.

    All conditions must be true. However, several values for the same field are alternatives. If a
    value looks like a number or a boolean, it matches both this value and the text.

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
    for given in conditions:
        condition = given.strip()
        name, _, value = condition.partition("=")
        field = name.strip()
        text = value.strip()
        if condition.startswith("{"):
            others.append(_from_json(condition))
        elif field and text:
            equal.setdefault(metadata_key(field), []).extend(_values(text))
        else:
            raise ValueError(f"a filter must be FIELD=VALUE, or JSON, got {condition!r:.80}")
    filters = all_of(*({field: values} for field, values in equal.items()), *others)
    parse_filters(filters)
    return filters or {}


def _from_json(condition: str) -> Mapping[str, Any]:
    """Parse a filter that is given as JSON.

    Raises:
        ValueError: If the text is not a JSON object.
    """
    try:
        parsed: Mapping[str, Any] = json.loads(condition)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"a filter must be FIELD=VALUE, or JSON such as {_EXAMPLE}, got {condition!r:.80} "
            f"({error})"
        ) from error
    return parsed


_EXAMPLE = '{"year": {"gte": 1990}}'


def _values(text: str) -> list[Any]:
    """Return the possible interpretations of a value, starting with the most likely one."""
    try:
        value = json.loads(text.lower())
    except (ValueError, RecursionError):
        return [text]
    if isinstance(value, int | float):
        return [value, text]
    return [text]
