"""Replies of models to each prompt, in English and Chinese, as a table: reply, expected result."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_rewrite,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.routes import parse_route
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions
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


ROLES: Mapping[str, Callable[[Row], Any]] = {
    "rewrite": rewrite,
    "phrasings": phrasings,
    "sub_questions": sub_questions,
    "tools": tools,
    "route": route,
    "passage": passage,
    "step": step,
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['role']}: {row['form']}" for row in ROWS])
def test_reply_gives_expected_result(row: Row) -> None:
    read = ROLES[row["role"]]
    if row["expected"] == "ERROR":
        with pytest.raises(ValueError, match=r"answer|refused|JSON"):
            read(row)
    else:
        assert read(row) == row["expected"]
