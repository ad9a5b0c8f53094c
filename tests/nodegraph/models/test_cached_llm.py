import asyncio
import threading

import pytest
from stores import memory_store

from nodekin.nodegraph import LLM, CachedLLM, LLMExtractor, ModelError, NodeGraph
from nodekin.nodegraph.models.llm import as_llm


class Model:
    """Say what it was asked, and how often it has been asked; hold to schemas and stream."""

    name = "scripted"

    def __init__(self):
        self.asked = []
        self.fails = False

    def complete(self, prompt):
        self.asked.append(prompt)
        if self.fails:
            raise OSError("no line")
        return f"{prompt}茶{len(self.asked)}"

    async def acomplete(self, prompt):
        return self.complete(prompt)

    def stream(self, prompt):
        for at, letter in enumerate(self.complete(prompt)):
            if self.fails and at:
                raise OSError("no line")
            yield letter

    async def astream(self, prompt):
        for piece in self.stream(prompt):
            yield piece

    def complete_json(self, prompt, schema):
        return {"answer": self.complete(prompt), "schema": schema}


@pytest.fixture
def model():
    return Model()


async def test_every_way_of_asking_gets_the_same_answer(model):
    llm = as_llm(CachedLLM(model))
    assert llm.name == "scripted"
    assert llm.complete("a") == "a茶1"
    assert await llm.acomplete("a") == "a茶1"
    assert list(llm.stream("a")) == ["a茶1"]
    assert [piece async for piece in llm.astream("a")] == ["a茶1"]
    assert list(llm.stream("b")) == ["b", "茶", "2"]
    assert [piece async for piece in llm.astream("b")] == ["b茶2"]
    assert model.asked == ["a", "b"]


async def test_schemas_are_asked_about_apart(model):
    llm = as_llm(CachedLLM(model))
    first = llm.json("a", {"type": "object"})
    assert await llm.ajson("a", {"type": "object"}) == first
    assert llm.json("a", {"type": "array"}) != first
    assert llm.complete("a") == "a茶3"


def test_a_model_without_schemas_has_none():
    cached = CachedLLM(lambda prompt: '{"a": 1}')
    assert not as_llm(cached).structured
    assert as_llm(cached).json("?", {}) == {"a": 1}


def test_a_file_outlasts_the_model(model, tmp_path):
    first = CachedLLM(model, tmp_path / "answers.db")
    assert first.complete("\ud800 a") == "\ud800 a茶1"
    first.close()
    again = CachedLLM(Model(), tmp_path / "answers.db")
    assert again.complete("\ud800 a") == "\ud800 a茶1"
    assert (again.hits, again.misses) == (1, 0)
    assert again.complete("other") == "other茶1"
    again.clear()
    assert again.complete("\ud800 a") == "\ud800 a茶2"
    again.close()


def test_models_with_other_names_have_other_answers(model):
    store = memory_store()
    one, other = (CachedLLM(LLM(model, name), store) for name in ("one", "other"))
    assert one.complete("a") == "a茶1"
    assert other.complete("a") == "a茶2"
    assert one.complete("a") == "a茶1"


def test_a_failure_is_not_kept(model):
    llm = CachedLLM(model)
    model.fails = True
    for _ in range(2):
        with pytest.raises(ModelError, match="no line"):
            llm.complete("a")
    model.fails = False
    assert llm.complete("a") == "a茶3"


def test_half_a_stream_is_not_kept(model):
    llm = CachedLLM(model)
    pieces = llm.stream("a")
    assert next(pieces) == "a"
    pieces.close()
    assert llm.complete("a") == "a茶2"


def test_many_threads(model, tmp_path):
    llm = CachedLLM(model, tmp_path / "answers.db")
    heard = []

    def ask():
        for at in range(20):
            heard.append((at, llm.complete(str(at))))
        llm.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heard) == 80
    before = len(model.asked)
    for at in range(20):
        assert llm.complete(str(at)) in [said for number, said in heard if number == at]
    assert len(model.asked) == before
    assert llm.hits + llm.misses == 100
    llm.close()


def test_asked_in_an_event_loop_it_does_not_block_it(model, tmp_path):
    from blockbuster import blockbuster_ctx

    async def ask(llm):
        return [await llm.acomplete(text) for text in ("a", "a", "b")]

    llm = CachedLLM(model, tmp_path / "answers.db")
    with blockbuster_ctx():
        assert asyncio.run(ask(llm)) == ["a茶1", "a茶1", "b茶2"]
    llm.close()


def test_a_group_made_with_it_is_the_models(model):
    graph = NodeGraph(progress=False)
    ids = graph.add(["tea"])
    graph.create_node_group("summary", LLMExtractor(model))
    (node,) = graph.nodes("summary")
    graph.create_node_group("summary", LLMExtractor(CachedLLM(model)))
    assert graph.nodes("summary") == [node]
    assert len(model.asked) == 1
    assert len(ids) == 1


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="is no language model"):
        CachedLLM(3)
