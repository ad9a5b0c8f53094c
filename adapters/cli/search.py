"""``nodekin search``: find passages in an index, or straight in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .exits import FOUND, MEANINGS, NOTHING
from .options import as_text, common_options, search_options
from .searching import Searching, Wanted, searching

if TYPE_CHECKING:
    from ...retrievers import ScoredNode

JSON_FORM = """\b
With --json: {"format": 1, "command": "search", "query", "count", "results":
  [{"rank", "score", "id", "group", "document", "path", "line", "start", "end",
    "text", "metadata", "matches": [...]}]}
Lines count from 1, start and end in characters of the document; null where a
text was not cut out of one. A match is what was found, in its own group.
"""


@click.command(short_help="Find passages.", epilog=f"{JSON_FORM}\n{MEANINGS}")
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
    from .listing import echo, listing
    from .records import FORMAT, Places, result_record, to_json

    query = as_text(query)
    with searching(Wanted(**options), quiet=quiet) as search:
        results: list[ScoredNode] = search.retriever.retrieve(query, filters=search.filters)
        if as_json:
            places = Places()
            records = [result_record(rank, r, places) for rank, r in enumerate(results, 1)]
            form = {"format": FORMAT, "command": "search", "query": query}
            echo(to_json({**form, "count": len(records), "results": records}))
        else:
            for line in listing(results, query, full=full):
                echo(line)
        if not results and not quiet:
            click.echo(f"nodekin: {nothing_found(query, search)}", err=True)
    return FOUND if results else NOTHING


def nothing_found(query: str, search: Searching) -> str:
    """Say why nothing may have been found."""
    said = f"nothing found for {query!r:.80}" if query else "the query is empty"
    graph = search.corpus.graph
    count = graph.groups["ROOT"].size
    if not count:
        return f"{said}: the index has no documents; fill it with: nodekin index FOLDER"
    if search.filters and count <= 2_000:
        fields = {field for node in graph.nodes("ROOT") for field in node.metadata}
        for group in search.corpus.settings.groups[:1]:
            fields |= {field for node in graph.nodes(group.name) for field in node.metadata}
        unknown = [field for field in search.filters if field not in fields]
        if unknown:
            return (
                f"{said}: no document has the field {unknown[0]!r}; they have "
                f"{', '.join(sorted(fields)) or 'none'}"
            )
    where = f"{count} document{'' if count == 1 else 's'}"
    return f"{said} in {where}{' with these filters' if search.filters else ''}"
