"""Replies of models to each prompt, in English and Chinese, as a table: reply, expected result."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph.models.output.extracts import parse_questions
from nodekin.nodegraph.models.output.free_text import parse_final_answer
from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.keywords import parse_keywords
from nodekin.nodegraph.models.output.pairs import parse_pairs
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_rewrite,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.routes import parse_route
from nodekin.nodegraph.models.output.summary import parse_summary
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions
from nodekin.retrievers import FilterField
from nodekin.retrievers.answers.ranked_answer import parse_ranked_answer
from nodekin.retrievers.evaluation.judges import parse_verdicts
from nodekin.retrievers.strategies.filter_reply import parse_reply
from nodekin.retrievers.strategies.question_filters import usable_filters
from nodekin.retrievers.strategies.step_reader import parse_step

TABLE = Path(__file__).with_name("replies.jsonl")

ROWS = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]

Row = Mapping[str, Any]


def rewrite(row: Row) -> str:
    return parse_rewrite(row["reply"], row["question"])


def phrasings(row: Row) -> list[str]:
    return parse_phrasings(row["reply"], row["question"], 5)


def sub_questions(row: Row) -> list[str]:
    return parse_sub_questions(row["reply"], row["question"], 5)


def tools(row: Row) -> list[list[str]]:
    known, unknown = parse_tool_questions(row["reply"], row["names"], row["question"])
    assert unknown == []
    return [[*pair] for pair in known]


def route(row: Row) -> str:
    return parse_route(row["reply"], row["names"])


def passage(row: Row) -> str:
    return parse_passage(row["reply"], row["question"])


def step(row: Row) -> dict[str, Any]:
    found = parse_step(row["reply"])
    return {"answered": found.answered, "question": found.question, "answer": found.answer}


def filters(row: Row) -> dict[str, Any]:
    fields = {name: FilterField(kind) for name, kind in row["fields"].items()}
    reply = parse_reply(row["reply"], row["question"], fields)
    usable = usable_filters(reply.conditions, fields)
    return {"query": reply.query, "filters": usable.filters, "dropped": [*usable.dropped]}


def verdicts(row: Row) -> list[bool]:
    return [is_supported for is_supported, _ in parse_verdicts(row["reply"], row["count"])]


def ranked(row: Row) -> dict[str, Any] | str:
    answer, score = parse_ranked_answer(row["reply"])
    return "ERROR" if score is None else {"answer": answer.text, "score": score}


def keywords(row: Row) -> list[str]:
    return parse_keywords(row["reply"])


def questions(row: Row) -> list[str]:
    return parse_questions(row["reply"])


def pairs(row: Row) -> list[list[str]]:
    return [[*pair] for pair in parse_pairs(row["reply"])]


def summary(row: Row) -> str:
    return "\n".join(parse_summary(row["reply"]))


def answer(row: Row) -> dict[str, bool]:
    return {"answered": parse_final_answer(row["reply"], row["question"]).answered}


READERS: tuple[Callable[[Row], Any], ...] = (
    rewrite,
    phrasings,
    sub_questions,
    tools,
    route,
    passage,
    step,
    filters,
    verdicts,
    ranked,
    keywords,
    questions,
    pairs,
    summary,
    answer,
)

BY_ROLE = {reader.__name__: reader for reader in READERS}


def result_of(row: Row) -> Any:
    """Read a reply with the parser of its role. A reply that cannot be used gives "ERROR"."""
    try:
        return BY_ROLE[row["role"]](row)
    except ValueError:
        return "ERROR"


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['role']}: {row['form']}" for row in ROWS])
def test_reply_gives_expected_result(row: Row) -> None:
    assert result_of(row) == row["expected"]
