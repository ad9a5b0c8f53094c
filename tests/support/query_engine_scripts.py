"""A scripted decomposition and its questions, for tests of LlamaIndex's query engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodekin.retrievers import Retriever

BOTH = "Is green tea fermented, and is black tea?"
PARTS = "Is green tea fermented?\nIs black tea fermented?"
DECOMPOSE: dict[str, Any] = {
    "prompt": {"en": "Take apart: {query}", "zh": "分解：{query}"},
    "answers": True,
    "answer_prompt": {"en": "Part: {query} {context}", "zh": "部分：{query} {context}"},
}
STEP: dict[str, Any] = {"prompt": "Step: {question} {passages}"}
Scripted = Callable[[Any], Any]


def decompose_and_answer(prompt: str) -> str:
    """Return what a model answers: sub-questions, the answer to one, or the final answer."""
    if prompt.startswith("Take apart"):
        return PARTS
    if prompt.startswith("Part"):
        return "Green: no." if "Is green tea" in prompt else "Black: yes."
    return "Only black tea."


def ids(nodes: Any) -> list[str]:
    return [node.node.node_id for node in nodes]


def step(answer: str, answered: str, question: str) -> str:
    return f"Answer: {answer}\nAnswered: {answered}\nNext question: {question}"


class FailingFor:
    """A retriever that fails for some queries."""

    def __init__(self, inner: Retriever, *words: str) -> None:
        self.inner, self.words = inner, words

    def retrieve(self, query: str, **settings: Any) -> Any:
        if any(word in query for word in self.words):
            raise OSError(f"no disk for {query}")
        return self.inner.retrieve(query, **settings)

    async def aretrieve(self, query: str, **settings: Any) -> Any:
        return self.retrieve(query, **settings)
