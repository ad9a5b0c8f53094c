"""Prompts in two languages, and parsed answers of models."""

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import LLM, ModelError
from nodekin.nodegraph.errors import ModelTimeoutError
from nodekin.nodegraph.models.templates import Language
from nodekin.retrievers.plans.plan import arun, run
from nodekin.retrievers.plans.prompting import Prompt, ask_and_parse

PROMPT = Prompt("{count} 个：{query}", "{count} of {query}", ("query",), ("count",))


@given(st.text(), st.text())
def test_values_are_not_filled_again(query: str, count: str) -> None:
    assert PROMPT.fill("en", query=query, count=count) == f"{count} of {query}"


def test_other_braces_stay() -> None:
    prompt = Prompt('{"q": "{query}"} {0} {}', '{"q": "{query}"}', ("query",))
    assert prompt.fill("zh", query="{query}") == '{"q": "{query}"} {0} {}'


@pytest.mark.parametrize(
    ("zh", "en", "error", "says"),
    [
        ("{query}", "none", ValueError, r"'none' must contain \{query\}"),
        ("", "{query}", ValueError, r"must contain \{query\}"),
        (
            "{query}",
            "{query} {cuont}",
            ValueError,
            "placeholder 'cuont'; known: .*'count'",
        ),
        ("{query}", 7, TypeError, "a prompt must be a string, got 7"),
        (None, "{query}", TypeError, "a prompt must be a string, got None"),
    ],
)
def test_invalid_prompt_raises(zh: Any, en: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        Prompt(zh, en, ("query",), ("count",))


@pytest.mark.parametrize(
    ("given", "zh", "en"),
    [
        (None, PROMPT.zh, PROMPT.en),
        ("{query}!", "{query}!", "{query}!"),
        ({"zh": "{query}！"}, "{query}！", PROMPT.en),
        ({"en": "{query}!", "zh": "{query}！"}, "{query}！", "{query}!"),
        (Prompt("{query}？", "{query}?", ("query",)), "{query}？", "{query}?"),
        ({}, PROMPT.zh, PROMPT.en),
    ],
)
def test_prompt_accepts_texts_mappings_and_templates(given: Any, zh: str, en: str) -> None:
    replaced = PROMPT.replaced(given)
    assert (replaced.zh, replaced.en) == (zh, en)
    assert (replaced.required, replaced.optional) == (("query",), ("count",))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (7, TypeError, "a prompt must be a text with .*query.*, or a prompt template .* got 7"),
        ({"fr": "{query}"}, ValueError, "the language of a prompt must be 'zh' or 'en', got 'fr'"),
        ("nothing", ValueError, r"must contain \{query\}"),
        (Prompt("{text}", "{text}", ("text",)), ValueError, r"must contain \{query\}"),
        ({"zh": 3}, TypeError, "a prompt must be a text with .*, got 3"),
    ],
)
def test_invalid_replacement_raises(given: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        PROMPT.replaced(given)


class Model:
    """A model that gives one answer after the other, and raises errors among them."""

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
    """A model with a value for calls with a schema."""

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


def ask(model: Any, language: Language = "en", **options: Any) -> int:
    llm = LLM(model, "model")
    return run(partial(ask_and_parse, llm, "How many?", number, language, **options))


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_retries_limit_the_calls(retries: int) -> None:
    model = Model(*["many"] * 9)
    with pytest.raises(ModelError, match="can be used: 'many' is no number; it answered 'many'"):
        ask(model, retries=retries)
    assert len(model.prompts) == 1 + retries


@pytest.mark.parametrize(
    ("model", "options", "calls"),
    [
        (lambda: Held(42), {"schema": {}}, 1),
        (lambda: Model("42"), {"schema": {}}, 1),
        (lambda: Held(7, "42"), {}, 1),  # without a schema it is asked for text
        (lambda: Held("many", "42"), {"schema": {}}, 2),
        (lambda: Held(None, "42"), {"schema": {}}, 2),
        (lambda: Held(RuntimeError("no schemas"), "42"), {"schema": {}}, 2),
    ],
)
def test_useless_schema_answer_falls_back_to_text(model: Any, options: Any, calls: int) -> None:
    made = model()
    assert ask(made, **options) == 42
    assert len(made.prompts) == calls


def test_refused_schema_is_not_a_retry() -> None:
    assert ask(Held(RuntimeError("no schemas"), "42"), schema={}, retries=0) == 42
    with pytest.raises(ModelError, match="gone"):
        ask(Held(RuntimeError("no schemas"), ConnectionError("gone")), schema={})


def test_late_answer_is_not_retried() -> None:
    release, prompts = threading.Event(), []

    def late(prompt: str) -> str:
        prompts.append(prompt)
        release.wait(300)
        return "42"

    with pytest.raises(ModelTimeoutError, match="did not answer within"):
        ask(late, timeout=0.05)
    release.set()
    assert prompts == ["How many?"]


def test_timeout_of_the_model_is_not_retried() -> None:
    for drive in (run, lambda plan: asyncio.run(arun(plan))):
        model = Held(TimeoutError("read"), "42")
        with pytest.raises(ModelTimeoutError, match="TimeoutError: read"):
            drive(partial(ask_and_parse, LLM(model, "m"), "?", number, "en", schema={}))
        assert model.prompts == ["?"]
