"""Asking a model until its answer can be used."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nodekin.nodegraph import LLM, ModelError
from nodekin.nodegraph.errors import ModelTimeoutError
from nodekin.nodegraph.models.language import Language
from nodekin.retrievers.plans.plan import Plan, arun, run
from nodekin.retrievers.plans.prompting import ask_and_parse, strip_prompt


class Model:
    """Give one answer after the other; raise those that are errors."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)


class Held(Model):
    """The same, held to a schema first."""

    def __init__(self, value: Any, *answers: Any) -> None:
        super().__init__(*answers)
        self.value = value

    def complete_json(self, prompt: str, schema: Any) -> Any:
        self.prompts.append(prompt)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def number(answer: str) -> int:
    if not answer.strip().isdigit():
        raise ValueError(f"{answer!r} is no number")
    return int(answer)


def ask(model: Any, language: Language = "en", **settings: Any) -> int:
    return run(ask_and_parse(LLM(model, "model"), "How many?", number, language, **settings))


def test_an_answer_that_can_be_read_is_the_first() -> None:
    model = Model("42")
    assert ask(model) == 42
    assert model.prompts == ["How many?"]
    assert asyncio.run(arun(ask_and_parse(LLM(Model("42"), "m"), "?", number, "en"))) == 42


@pytest.mark.parametrize(("language", "words"), [("en", "could not be used"), ("zh", "无法使用")])
def test_a_model_is_told_why_it_is_asked_again(language: Language, words: str) -> None:
    model = Model("many", "42")
    assert ask(model, language) == 42
    assert model.prompts[1].startswith("How many?")
    assert words in model.prompts[1]
    assert "'many' is no number" in model.prompts[1]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_it_is_asked_so_often_and_then_given_up(retries: int) -> None:
    model = Model(*["many"] * 9)
    with pytest.raises(ModelError, match="can be used: 'many' is no number; it answered 'many'"):
        ask(model, retries=retries)
    assert len(model.prompts) == 1 + retries


def test_a_model_that_fails_is_not_asked_again() -> None:
    model = Model(ConnectionError("gone"), "42")
    with pytest.raises(ModelError, match="gone"):
        ask(model)
    assert len(model.prompts) == 1


def test_a_schema_is_for_models_that_take_one() -> None:
    schema = {"type": "integer"}
    assert ask(Held(42), schema=schema) == 42
    assert ask(Model("42"), schema=schema) == 42
    assert ask(Held(7, "42")) == 42  # not asked for JSON where there is no schema


@pytest.mark.parametrize("value", ["many", None, RuntimeError("no schemas here")])
def test_after_a_schema_it_answers_in_its_own_words(value: Any) -> None:
    model = Held(value, "42")
    assert ask(model, schema={"type": "integer"}) == 42
    assert len(model.prompts) == 2


def test_a_schema_that_is_refused_takes_none_of_the_tries() -> None:
    assert ask(Held(RuntimeError("no schemas"), "42"), schema={}, retries=0) == 42
    with pytest.raises(ModelError, match="gone"):
        ask(Held(RuntimeError("no schemas"), ConnectionError("gone")), schema={})


def test_a_model_may_repeat_its_prompt_also_when_asked_again() -> None:
    assert run(ask_and_parse(LLM(lambda p: p + " 42", "base"), "How many?", number, "en")) == 42
    told = iter(["many", "42"])
    echo = LLM(lambda prompt: f"{prompt}\n{next(told)}", "base")
    assert run(ask_and_parse(echo, "How many?", number, "en")) == 42


def test_only_the_whole_prompt_is_taken_away() -> None:
    assert strip_prompt("How many? 42", "How many?") == " 42"
    assert strip_prompt("How many are there? 42", "How many?") == "How many are there? 42"
    assert strip_prompt("42", "") == "42"
    assert strip_prompt("", "How many?") == ""


def test_an_error_of_the_reader_that_is_none_of_the_answer_leaves() -> None:
    def broken(answer: str) -> int:
        raise KeyError(answer)

    with pytest.raises(KeyError):
        run(ask_and_parse(LLM(Model("42"), "m"), "?", broken, "en"))


class Late(Held):
    """Never answer where it is held to a schema, until it is let go."""

    def __init__(self, value: Any, *answers: Any) -> None:
        super().__init__(value, *answers)
        self.begun, self.let_go = threading.Event(), threading.Event()

    def complete_json(self, prompt: str, schema: Any) -> Any:
        self.prompts.append(prompt)
        self.begun.set()
        self.let_go.wait(300)
        return self.value


@pytest.fixture
def late() -> Iterator[Late]:
    model = Late(42, "42")
    yield model
    model.let_go.set()


def test_a_model_that_takes_too_long_is_not_asked_again(late: Late) -> None:
    def plan() -> Plan[int]:
        return ask_and_parse(LLM(late, "m"), "?", number, "en", schema={}, timeout=0.05)

    with pytest.raises(ModelTimeoutError, match="did not answer within"):
        run(plan())
    assert late.begun.wait(300)
    assert late.prompts == ["?"]
    late.begun.clear()

    async def ask_and_let_go() -> None:
        try:
            await arun(plan())
        finally:  # the loop waits for its threads
            await asyncio.to_thread(late.begun.wait, 300)
            late.let_go.set()

    with pytest.raises(ModelTimeoutError):
        asyncio.run(ask_and_let_go())
    assert late.prompts == ["?", "?"]


def test_a_time_out_of_the_models_own_is_not_asked_again() -> None:
    for drive in (run, lambda plan: asyncio.run(arun(plan))):
        model = Held(TimeoutError("read"), "42")
        with pytest.raises(ModelTimeoutError, match="TimeoutError: read"):
            drive(ask_and_parse(LLM(model, "m"), "?", number, "en", schema={}))
        assert model.prompts == ["?"]


def test_a_schema_that_fails_is_left_out() -> None:
    assert ask(Held(RuntimeError("no schemas"), "42"), schema={}) == 42
