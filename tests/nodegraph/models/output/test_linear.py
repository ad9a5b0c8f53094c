"""Parsers take linear time: four times the text takes less than ten times the CPU time."""

import contextlib
import importlib
import pkgutil
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.answer_readers import READERS
from support.stress import LONG

from nodekin.nodegraph.models import output

SIZE = 3_000

MOST = 10
"""Maximum ratio of the times of a text and a text of four times its length."""

LITTLE = 0.03
"""Shorter times are too inaccurate, in seconds."""

QUICK = ("\n", " ", "_", "? ", "1. ", "x: 1\n", '{"', "[", "*", "- a\n")

MORE = (
    *("a ", "what ", "?", "。", "\n\n", "\t", "{", "[{", '{"a":', '"', "'", "['a',", "**"),
    *("#", "(", "Answer: ", "Question: ", "Q: ", "Q:\nA:\n", "No ", "</a>", "</answer>"),
    *("<think>", "</think>", "<", "Sure! ", "好的，", "以下是", "是", "的", "问题"),
    *("Here is ", "here is the: ", "the ", "、", "there is no ", "the passage ", "```\n"),
    *("```", "((", "yes ", "yes, but ", "80 ", "8/10 ", "|", "Confidence: 8\n"),
    *("NO_ANSWER ", "无答案", "first, ", "> ", "~~~", "\\", "'a ", ",", ":", "：", ". "),
    *("A. ", "...", "0", "a", "茶", "next question: ", "q ", "and ", "以及", "can't "),
    *("无", "没有"),
)

HEADS = ("", "1. ", "What is tea? ") if LONG else ("1. ",)
"""Starts of answers."""


def seconds(read: Callable[[str], Any], text: str) -> float:
    begin = time.thread_time()
    with contextlib.suppress(ValueError):  # the text has no answer
        read(text)
    return time.thread_time() - begin


def is_linear(read: Callable[[str], Any], head: str, unit: str) -> bool:
    short, long = (head + unit * (size // len(unit)) + "x" for size in (SIZE, 4 * SIZE))
    for _ in range(4):  # another process may have taken the time
        first, second = seconds(read, short), seconds(read, long)
        if second < LITTLE or second < MOST * first:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("units", [QUICK, MORE], ids=["common", "more"])
@pytest.mark.parametrize("name", READERS)
def test_parsers_are_linear(name: str, units: tuple[str, ...]) -> None:
    found = [(h, u) for h in HEADS for u in units if not is_linear(READERS[name], h, u)]
    assert found == []


def test_every_parser_is_measured() -> None:
    modules = {module.name for module in pkgutil.iter_modules(output.__path__)}
    names = {
        name
        for module in modules
        for name in vars(importlib.import_module(f"{output.__name__}.{module}"))
        if name.startswith("parse_") and name != "parse_list"
    }
    assert names <= set(READERS)
