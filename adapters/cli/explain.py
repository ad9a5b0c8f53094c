"""``nodekin explain``: what a search did, and how each result was found."""

from __future__ import annotations

from typing import Any

import click

from .exits import FOUND, MEANINGS, NOTHING
from .options import as_text, common_options, search_options
from .search import nothing_found
from .searching import Wanted, searching

JSON_FORM = """\b
With --json: {"format": 1, "command": "explain", "query", "trace": {"name",
  "facts", "seconds", "error", "stages": [...]}, "count", "results": [...]}
with the results of "nodekin search --json".
"""


@click.command(short_help="Show how results were found.", epilog=f"{JSON_FORM}\n{MEANINGS}")
@click.argument("query")
@search_options
@common_options
def explain(query: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Search for QUERY; show the steps of the search, and what each result was found by.

    \b
    nodekin explain "tea ceremony" --similarity bm25 --similarity cosine
    """
    from ...retrievers import trace
    from .listing import echo, place
    from .records import FORMAT, Places, result_record, stage_record, to_json
    from .safe import safe

    query = as_text(query)
    with searching(Wanted(**options), quiet=quiet) as search:
        with trace("explain") as traced:
            results = search.retriever.retrieve(query, filters=search.filters)
        places = Places()
        if as_json:
            form = {"format": FORMAT, "command": "explain", "query": query}
            records = [result_record(rank, r, places) for rank, r in enumerate(results, 1)]
            told = {"trace": stage_record(traced), "count": len(records), "results": records}
            echo(to_json({**form, **told}))
        else:
            echo(safe(str(traced)))
            for rank, result in enumerate(results, 1):
                where = click.style(place(result.node, places), fg="green")
                echo(f"\n{click.style(f'{rank}.', bold=True)} {where}\n{safe(result.explain())}")
        if not results and not quiet:
            click.echo(f"nodekin: {nothing_found(query, search)}", err=True)
    return FOUND if results else NOTHING
