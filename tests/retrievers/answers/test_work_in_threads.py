"""Measuring and parsing do not run in the thread of an event loop."""

import threading
from typing import Any, get_args

import pytest
from support.fixed_retriever import FixedRetriever, passage

from nodekin.nodegraph.splitters.chunking import count_tokens
from nodekin.retrievers import QueryEngine
from nodekin.retrievers.prompts.answer_prompts import AnswerMode

QUESTION = "Where does tea grow?"

TEXT = "In place {} tea is dried and rolled by hand, and much of it is sent to other places."


class Length:
    """A token counter that records its threads."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def __call__(self, text: str) -> int:
        self.threads.add(threading.get_ident())
        return count_tokens(text)


def engine(mode: AnswerMode, count: int, length: Length, window: int, model: Any) -> QueryEngine:
    retriever = FixedRetriever([passage(TEXT.format(number)) for number in range(count)])
    options: dict[str, Any] = {"context_window": window, "length": length}
    return QueryEngine(retriever, model, mode, top_k=count, **options)


@pytest.mark.parametrize("mode", get_args(AnswerMode))
async def test_event_loop_thread_counts_no_tokens(mode: AnswerMode) -> None:
    async def model(prompt: str) -> str:
        return "It grows in hills [1].\n" * 200

    length = Length()
    asked = engine(mode, 40, length, 4096, model)
    length.threads.clear()  # the constructor measured the prompts
    assert (await asked.aquery(QUESTION)).answered
    assert threading.get_ident() not in length.threads
