"""Answers are cached by model and prompt, in graphs and in ``CachedLLM``."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import (
    CachedLLM,
    Document,
    LLMExtractor,
    ModelError,
    NodeGraph,
    TransformError,
)
from nodekin.nodegraph.models.answer_cache import AnswerCache
from nodekin.nodegraph.models.llm import as_llm

TEXTS = [f"Passage {n} is about tea and its {n} leaves." for n in range(20)]


class Counting:
    """A model that records its prompts."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.prompts: list[str] = []
        self.reply = "1. tea\n2. leaves"
        self.wait = lambda: None

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        self.wait()
        return self.reply


def keywords(graph: NodeGraph, model: Any, name: str = "keyword", workers: int = 0) -> list[str]:
    graph.create_node_group(name, LLMExtractor(model, "keywords"), num_workers=workers)
    return [node.text for node in graph.nodes(name)]


@pytest.mark.parametrize("stored", [False, True])
def test_equal_texts_and_other_groups_reuse_answers(tmp_path: Path, stored: bool) -> None:
    model, other = Counting(), Counting("other")
    graph = NodeGraph(store=tmp_path / "graph" if stored else None, progress=False)
    graph.add([Document(text, id=f"{n}") for n, text in enumerate(TEXTS)])
    assert (len(keywords(graph, model)), len(model.prompts)) == (40, 20)
    graph.add([Document(text, id=f"copy {n}") for n, text in enumerate(TEXTS)])
    assert len(graph.nodes("keyword")) == 80
    graph.remove([f"copy {n}" for n in range(20)])
    graph.remove(["3"])
    graph.add(Document(TEXTS[3], id="3"))
    assert len(graph.nodes("keyword")) == 40
    assert len(keywords(graph, model, "again")) == 40
    assert len(keywords(graph, CachedLLM(model), "again")) == 40
    assert len(keywords(graph, other, "other model")) == 40
    assert (len(model.prompts), len(other.prompts)) == (20, 20)
    graph.compact()
    assert len(keywords(graph, model, "after")) == 40
    assert len(model.prompts) == 40
    graph.close()


def test_threads_with_equal_prompts_call_once() -> None:
    model, go = Counting(), threading.Event()
    model.wait = lambda: go.wait(60) and None
    llm = CachedLLM(model)
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(llm.complete("p"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert (answers, len(model.prompts)) == ([model.reply] * 8, 1)
    assert (llm.hits, llm.misses) == (7, 1)


def test_invalid_answers_are_not_cached() -> None:
    model = Counting()
    model.reply = "I'm sorry, but I can't help with that."
    graph = NodeGraph(progress=False)
    graph.add("Tea.")
    with pytest.raises(TransformError):
        keywords(graph, model)
    model.reply = "tea"
    assert [node.text for node in graph.nodes("keyword")] == ["tea"]


class Numbering(Counting):
    """A model that numbers its answers and supports schemas."""

    fails = False

    def complete(self, prompt: str) -> str:
        super().complete(prompt)
        if self.fails:
            raise OSError("no line")
        return f"{prompt}茶{len(self.prompts)}"

    async def acomplete(self, prompt: str) -> str:
        return self.complete(prompt)

    def complete_json(self, prompt: str, schema: Any) -> Any:
        return {"answer": self.complete(prompt), "schema": schema}


async def test_all_methods_share_cached_answers() -> None:
    model = Numbering()
    llm = as_llm(CachedLLM(model))
    assert llm.name == "counting"
    assert llm.complete("a") == await llm.acomplete("a") == "a茶1"
    assert list(llm.stream("a")) == [chunk async for chunk in llm.astream("a")] == ["a茶1"]
    assert [chunk async for chunk in llm.astream("b")] == list(llm.stream("b")) == ["b茶2"]
    assert model.prompts == ["a", "b"]


async def test_schema_is_part_of_key() -> None:
    llm = as_llm(CachedLLM(Numbering()))
    first = llm.complete("a", {"type": "object"})
    assert await llm.acomplete("a", {"type": "object"}) == first
    assert llm.complete("a", {"type": "array"}) != first
    assert llm.complete("a") == "a茶3"
    assert not as_llm(CachedLLM(lambda prompt: '{"a": 1}')).structured


def test_stored_answers_are_read_until_cleared(tmp_path: Path) -> None:
    first = CachedLLM(Numbering(), tmp_path / "answers.db")
    assert first.complete("\ud800 a") == "\ud800 a茶1"
    first.close()
    again = CachedLLM(Numbering(), tmp_path / "answers.db")
    assert again.complete("\ud800 a") == "\ud800 a茶1"
    assert (again.hits, again.misses) == (1, 0)
    again.clear()
    assert again.complete("\ud800 a") == "\ud800 a茶1"
    assert (again.hits, again.misses) == (1, 1)
    again.close()


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}, [None], {"a": None}, "null", 1.5])
@pytest.mark.parametrize("stored", [False, True])
async def test_any_json_value_is_asked_once(tmp_path: Path, answer: Any, stored: bool) -> None:
    cache = AnswerCache(tmp_path / "answers.nodekin" if stored else None)
    calls: list[str] = []

    def call() -> Any:
        calls.append("call")
        return answer

    async def acall() -> Any:
        return call()

    assert [cache.ask("a", call) for _ in range(3)] == [answer] * 3
    assert [await cache.aask("b", acall) for _ in range(3)] == [answer] * 3
    assert await cache.aask("a", acall) == answer
    assert (len(calls), cache.misses, cache.hits) == (2, 2, 5)
    cache.close()


def test_failures_are_not_cached() -> None:
    model = Numbering()
    llm = CachedLLM(model)
    model.fails = True
    for _ in range(2):
        with pytest.raises(ModelError, match="no line"):
            llm.complete("a")
    model.fails = False
    assert llm.complete("a") == "a茶3"


def test_cached_llm_does_not_block_event_loop(tmp_path: Path) -> None:
    from blockbuster import blockbuster_ctx

    async def ask(llm: CachedLLM) -> list[str]:
        return [await llm.acomplete(text) for text in ("a", "a", "b")]

    llm = CachedLLM(Numbering(), tmp_path / "answers.db")
    with blockbuster_ctx():
        assert asyncio.run(ask(llm)) == ["a茶1", "a茶1", "b茶2"]
    llm.close()
