"""What a model said is paid for once: by prompt and model, whatever asks for it and when."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import LLM, CachedLLM, Document, LLMExtractor, NodeGraph, TransformError

TEXTS = [f"Passage {n} is about tea and its {n} leaves." for n in range(20)]


class Paid:
    """A model that says what it was asked; it can be made to wait, or to fail."""

    def __init__(self, name: str = "paid") -> None:
        self.name = name
        self.prompts: list[str] = []
        self.reply = "1. tea\n2. leaves"
        self.meanwhile = lambda: None

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        self.meanwhile()
        return self.reply


def keywords(graph: NodeGraph, model: Any, name: str = "keyword", workers: int = 0) -> list[str]:
    graph.create_node_group(name, LLMExtractor(model, "keywords"), num_workers=workers)
    return [node.text for node in graph.nodes(name)]


@pytest.mark.parametrize("stored", [False, True])
def test_copies_other_groups_and_earlier_models_cost_nothing(tmp_path: Path, stored: bool) -> None:
    model, other = Paid(), Paid("other")
    graph = NodeGraph(store=tmp_path / "graph" if stored else None, progress=False)
    graph.add([Document(text, id=f"{n}") for n, text in enumerate(TEXTS)])
    first = keywords(graph, model)
    assert (len(first), len(model.prompts)) == (40, 20)
    graph.add([Document(text, id=f"copy {n}") for n, text in enumerate(TEXTS)])
    assert len(graph.nodes("keyword")) == 80
    graph.remove([f"copy {n}" for n in range(20)])
    graph.remove(["3"])
    graph.add(Document(TEXTS[3], id="3"))
    assert len(graph.nodes("keyword")) == 40
    assert len(keywords(graph, model, "again")) == 40
    assert len(model.prompts) == 20
    assert len(keywords(graph, other, "by another")) == len(other.prompts) * 2 == 40
    assert len(keywords(graph, model, "by the first")) == 40
    assert (len(model.prompts), len(other.prompts)) == (20, 20)
    graph.close()


def test_answers_outlive_the_graph_and_go_when_it_is_compacted(tmp_path: Path) -> None:
    model = Paid()
    for group in ("one", "two"):
        with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
            if group == "one":
                graph.add(TEXTS)
            keywords(graph, model, group)
    assert len(model.prompts) == 20
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.compact()
        keywords(graph, model, "three")
    assert len(model.prompts) == 40


@pytest.mark.parametrize("cached", [False, True])
def test_workers_on_equal_texts_pay_once(cached: bool) -> None:
    paid = Paid()
    started = threading.Semaphore(0)
    paid.meanwhile = lambda: (started.release(), threading.Event().wait(0.01))[1]
    graph = NodeGraph(progress=False)
    graph.add([Document(TEXTS[n % 10], id=str(n)) for n in range(80)])
    model = CachedLLM(paid) if cached else paid
    assert len(keywords(graph, model, workers=8)) == 160
    assert len(paid.prompts) == 10


def test_threads_and_tasks_with_the_same_prompt_ask_once() -> None:
    paid = Paid()
    go = threading.Event()
    paid.meanwhile = lambda: go.wait(60) and None
    llm = CachedLLM(paid)
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(llm.complete("the same"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert (answers, len(paid.prompts)) == ([paid.reply] * 8, 1)
    assert (llm.hits, llm.misses) == (7, 1)

    async def many() -> list[str]:
        return await asyncio.gather(*(llm.acomplete("another") for _ in range(8)))

    assert (asyncio.run(many()), len(paid.prompts)) == ([paid.reply] * 8, 2)


def test_a_task_that_is_cancelled_leaves_the_others_their_answer() -> None:
    async def both() -> str:
        gate, asked = asyncio.Event(), []

        async def acomplete(prompt: str) -> str:
            asked.append(prompt)
            await gate.wait()
            return "tea"

        class Model:
            name = "async"

            def complete(self, prompt: str) -> str:
                raise AssertionError(prompt)

        model = Model()
        model.acomplete = acomplete  # type: ignore[attr-defined]
        llm = CachedLLM(model)
        first = asyncio.ensure_future(llm.acomplete("p"))
        while not asked:
            await asyncio.sleep(0)
        second = asyncio.ensure_future(llm.acomplete("p"))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        answer = await second
        assert asked == ["p", "p"]
        return answer

    assert asyncio.run(both()) == "tea"


def test_what_can_not_be_used_is_not_kept() -> None:
    paid = Paid()
    paid.reply = "I'm sorry, but I can't help with that."
    graph = NodeGraph(progress=False)
    graph.add("Tea.")
    with pytest.raises(TransformError):
        keywords(graph, paid)
    paid.reply = "tea"
    assert [node.text for node in graph.nodes("keyword")] == ["tea"]


def test_a_model_that_asks_itself_does_not_wait_for_itself() -> None:
    llm: CachedLLM
    depth: list[int] = []

    def model(prompt: str) -> str:
        depth.append(1)
        return "tea" if len(depth) > 1 else llm.complete(prompt)

    llm = CachedLLM(LLM(model, "nested"))
    assert llm.complete("p") == "tea"
