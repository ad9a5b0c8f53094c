"""Make questions about documents, to measure with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from ...retrievers.evaluation.dataset import Dataset
from ...retrievers.evaluation.generation import generate_questions
from ...retrievers.evaluation.gold_places import DocumentTexts, locate_gold
from ...retrievers.evaluation.loaders import load_log, save_jsonl
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ..cli.exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from ..cli.models import chat_model
from ..cli.options import base_url_option, common_options
from ..cli.output import FORMAT, echo, to_json
from ..cli.workspace import Workspace
from .eval_command import check_replaceable, parse_fields, says_how_to_go_on
from .setup_session import open_setups

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "questions", "file", "questions": number,
  "counts": {kind: number}, "rejected": [{"kind", "question", "reason", ...}],
  "model_calls", "tokens", "missing": [ids of a log that no document has]}

\b
The model: OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY, for any server that
speaks OpenAI's protocol.
"""

KINDS = ("single", "linked", "unanswerable")

_MAX_LISTED = 3  # questions that are printed


@click.command("questions", epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("docs", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Ask about the documents of the index in this folder; without PATH .nodekin here or in "
    "the nearest folder above.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("questions.jsonl"),
    show_default=True,
    metavar="FILE",
    help="Where the questions are written. What the model said is kept beside it, so that the "
    "same command goes on where it was interrupted.",
)
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@click.option(
    "-n",
    "--count",
    type=click.IntRange(min=1),
    help="How many questions; 40 by default, of a log all. Of a log those most asked.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    help="Only such questions: about one passage, about two that are linked, or such that the "
    "documents don't answer. Without it three of five, one, and one of five. Repeatable.",
)
@click.option("-m", "--model", metavar="NAME", help="The model; OPENAI_MODEL by default.")
@base_url_option
@click.option("--seed", default=0, help="Another number draws other passages.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many passages are tried at once.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help='Take questions that people asked, in place of a model\'s: lines of {"question", '
    '"clicked": [ids], "count"}, or a CSV file with such columns.',
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=COLUMN",
    help="With --log: what a field is called in it: question=query. Repeatable.",
)
@click.option(
    "--min-clicks",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="With --log: with fewer clicks a document is not gold.",
)
@common_options
def questions_command(
    docs: tuple[Path, ...],
    store: Path | None,
    out: Path,
    force: bool,
    count: int | None,
    kinds: tuple[Literal["single", "linked", "unanswerable"], ...],
    model: str | None,
    base_url: str | None,
    seed: int,
    workers: int,
    log: Path | None,
    fields: tuple[str, ...],
    min_clicks: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Write questions with gold about the documents at PATH, for "nodekin eval" and "tune".

    A model writes them and checks them. Or they are those of a log with clicks.

    \b
    nodekin questions docs --model qwen2.5-7b-instruct
    nodekin questions docs --count 100 --kind single -o questions.jsonl
    nodekin questions docs --log log.jsonl
    """
    check_replaceable(out, force)
    if fields and log is None:
        raise CommandError(
            "--field says what a log has; name it with --log", ExitStatus.USAGE_ERROR
        )
    record: dict[str, Any]
    if log is not None:
        dataset = load_log(log, parse_fields(fields), min_clicks=min_clicks, limit=count)
        record = {"missing": _missing(dataset, docs, store, quiet)}
        message = _log_summary(dataset, log, record["missing"])
        status = ExitStatus.PARTIAL_SUCCESS if record["missing"] else ExitStatus.SUCCESS
    else:
        llm = chat_model(model, base_url)
        shares: dict[str, Any] = {"shares": dict.fromkeys(kinds, 1)} if kinds else {}
        saved = out.with_suffix(".answers.db")
        with (
            says_how_to_go_on(saved, ", and one with a smaller --count is done sooner"),
            open_setups(SetupFile(), docs, store, quiet=quiet) as opened,
        ):
            generated = generate_questions(
                opened.graph,
                llm,
                count or 40,
                seed=seed,
                store=saved,
                max_workers=workers,
                progress=False if quiet else None,
                **shares,
            )
        dataset, message = generated.dataset, str(generated)
        record = {
            "counts": generated.counts,
            "rejected": [
                {"kind": r.kind, "question": r.question, "reason": r.reason, "detail": r.detail}
                for r in generated.rejected
            ],
            "model_calls": generated.model_calls,
            "tokens": generated.tokens,
        }
        fewer = len(dataset) < sum(generated.requested.values())
        status = ExitStatus.PARTIAL_SUCCESS if fewer else ExitStatus.SUCCESS
    save_jsonl(dataset, out)
    if as_json:
        about = {"file": str(out), "questions": len(dataset)}
        echo(to_json({"format": FORMAT, "command": "questions", **about, **record}))
        return status
    for question in dataset.questions[:_MAX_LISTED]:
        answers = f" -> {question.answers[0]}" if question.answers else ""
        echo(printable(" ".join(f"{question.text}{answers}".split())))
    echo(printable(message))
    where = "".join(f" --docs {path}" for path in docs) or (f" --store {store}" if store else "")
    echo(f"written to {out}: read them, then: nodekin eval{where} --data {out}")
    return status


def _missing(
    dataset: Dataset, docs: tuple[Path, ...], store: Path | None, quiet: bool
) -> list[str]:
    """Return the ids that were clicked and that no document has, where there are documents."""
    if not docs and store is None and not Workspace.is_near():
        return []
    with open_setups(SetupFile(), docs, store, quiet=quiet) as opened:
        missing = locate_gold(dataset, DocumentTexts(opened.graph)).missing
    if not quiet:
        for gold in missing[:_MAX_LISTED]:
            click.echo(f"nodekin: {printable(' '.join(str(gold).split()))}", err=True)
    return list(dict.fromkeys(getattr(item.gold, "document_id", "") for item in missing))


def _log_summary(dataset: Dataset, log: Path, missing: list[str]) -> str:
    clicked = sum(bool(question.gold) for question in dataset.questions)
    more = f"; {len(missing)} clicked ids are in no document" if missing else ""
    return f"{len(dataset)} questions of {log}, {clicked} with documents that were clicked{more}"
