"""``nodekin answers``: the stored answers of an index, and which of them are out of date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ...nodegraph.stored_answers import StaleAnswer, StoredAnswer
from ...retrievers.answers.engine import QueryEngine, engines_by_strategy
from ...retrievers.answers.staleness import no_model
from .ask_command import NO_STRATEGY, engine_of
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from .options import base_url_option, common_options, search_options
from .output import FORMAT, echo, to_json
from .search_command import open_search

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "answers", "count", "answers": [{"question",
  "answer", "found", "model", "filters", "sources": [{"number", "cited", "shown",
  "document", "start", "end"}]}]}
and with --stale and --refresh for each answer "stale", the causes, and the passages
that were "removed" from the results and "added" to them.
"""


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("words", nargs=-1, metavar="[PART]...")
@search_options
@click.option("--stale", is_flag=True, help="Only those out of date, and why. Status 1 if any is.")
@click.option("--refresh", is_flag=True, help="Answer those that are out of date again.")
@click.option("--remove", is_flag=True, help="Remove those that are listed.")
@click.option("-m", "--model", metavar="NAME", help="The model, for --refresh.")
@base_url_option
@common_options
def answers(
    words: tuple[str, ...],
    stale: bool,
    refresh: bool,
    remove: bool,
    model: str | None,
    base_url: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """List the answers that "nodekin ask --keep" has stored; only those whose question has PART.

    An answer is out of date if its question would now be answered from other passages, or
    by another search. Give the options that say how to search as it was asked with them; the
    strategy, the mode and --min-score are known.

    \b
    nodekin answers
    nodekin answers --stale       in the tests of documentation: fails if one is out of date
    nodekin answers --refresh
    """
    part = " ".join(words).casefold()
    if refresh and (part or remove):
        raise CommandError(
            "--refresh answers all that are out of date; leave out --remove and PART",
            ExitStatus.USAGE_ERROR,
        )
    with open_search(quiet=quiet, **options) as search:
        store = search.graph.answers
        outdated: dict[str, StaleAnswer] = {}
        if refresh:
            engine = engine_of(search, model, base_url, NO_STRATEGY, None, None)
            engines = [engine, *engines_by_strategy(search.retriever, engine.llm)]
            outdated = {item.answer.key: item for item in store.refresh(*engines)}
        elif stale:
            engines = engines_by_strategy(search.retriever, no_model)
            declared = None if search.open_setup is None else search.open_setup()
            if isinstance(declared, QueryEngine):
                engines.insert(0, declared)  # whose model is not asked
            outdated = {item.answer.key: item for item in store.stale(*engines)}
        listed = [
            answer
            for answer in store
            if part in answer.question.casefold()
            and (answer.key in outdated or not (stale or refresh))
        ]
        if remove:
            store.remove(listed)
        if not (listed or stale or refresh or quiet):
            which = f"has {part!r:.80} in its question" if part else "is stored"
            click.echo(f"no answer {which}; nodekin ask --keep stores one", err=True)
        if as_json:
            records = [_record(answer, outdated.get(answer.key)) for answer in listed]
            header = {"format": FORMAT, "command": "answers", "count": len(records)}
            echo(to_json({**header, "answers": records}))
        else:
            for answer in listed:
                for line in _lines(answer, outdated.get(answer.key)):
                    echo(printable(line))
    if stale and not refresh:
        return ExitStatus.NO_RESULTS if listed else ExitStatus.SUCCESS
    return ExitStatus.SUCCESS if listed or refresh else ExitStatus.NO_RESULTS


def _lines(answer: StoredAnswer, stale: StaleAnswer | None) -> Iterator[str]:
    yield answer.question
    for cause in () if stale is None else stale.causes:
        yield f"    {cause}"


def _record(answer: StoredAnswer, stale: StaleAnswer | None) -> dict[str, Any]:
    sources = []
    for source in answer.sources:
        result = answer.results[source.results[0]]
        sources.append(
            {
                "number": source.number,
                "cited": source.cited,
                "shown": source.text,
                "document": result.document_id or None,
                "start": result.start,
                "end": result.end,
            }
        )
    record = {
        "question": answer.question,
        "answer": answer.text,
        "found": answer.answered,
        "model": answer.model,
        "filters": answer.filters,
        "sources": sources,
    }
    if stale is None:
        return record
    return record | {
        "stale": list(stale.causes),
        "removed": [{"document": r.document_id, "text": r.text} for r in stale.removed],
        "added": [{"document": node.document_id, "text": node.text} for node in stale.added],
    }
