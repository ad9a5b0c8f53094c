"""Prompts in two languages: what they take, and what they refuse."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.plans.prompting import Prompt, PromptMixin

PROMPT = Prompt("{count} 个：{query}", "{count} of {query}", ("query",), ("count",))


def test_values_stand_in_their_places_in_both_languages() -> None:
    assert PROMPT.fill("en", query="tea", count=3) == "3 of tea"
    assert PROMPT.fill("zh", query="茶", count=3) == "3 个：茶"
    assert (PROMPT.of("zh"), PROMPT.of("en")) == (PROMPT.zh, PROMPT.en)


@given(st.text(), st.text())
def test_what_is_put_in_is_no_prompt(query: str, count: str) -> None:
    assert PROMPT.fill("en", query=query, count=count) == f"{count} of {query}"


def test_other_braces_stay() -> None:
    prompt = Prompt('{"q": "{query}"} {0} {}', '{"q": "{query}"}', ("query",))
    assert prompt.fill("zh", query="{query}") == '{"q": "{query}"} {0} {}'


@pytest.mark.parametrize(
    ("zh", "en", "error", "says"),
    [
        ("{query}", "none", ValueError, r"'none' has no place for 'query'; write \{query\} in it"),
        ("", "{query}", ValueError, "has no place for 'query'"),
        (
            "{query}",
            "{query} {cuont}",
            ValueError,
            "place for 'cuont', which nothing .*'count'",
        ),
        ("{query}", 7, TypeError, "a prompt is a text, not 7"),
        (None, "{query}", TypeError, "a prompt is a text, not None"),
    ],
)
def test_a_prompt_is_checked_when_it_is_made(zh: Any, en: Any, error: Any, says: str) -> None:
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
def test_a_prompt_is_replaced_by_what_people_have(given: Any, zh: str, en: str) -> None:
    replaced = PROMPT.replaced(given)
    assert (replaced.zh, replaced.en) == (zh, en)
    assert (replaced.required, replaced.optional) == (("query",), ("count",))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (7, TypeError, "a prompt is a text, or texts by language .* not 7"),
        ({"fr": "{query}"}, ValueError, "no prompts in the language 'fr'; there is 'zh', 'en'"),
        ("nothing", ValueError, "no place for 'query'"),
        (Prompt("{text}", "{text}", ("text",)), ValueError, "no place for 'query'"),
        ({"zh": 3}, TypeError, "a prompt is a text, not 3"),
    ],
)
def test_a_replacement_is_checked(given: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        PROMPT.replaced(given)


class Asking(PromptMixin):
    def __init__(self) -> None:
        self._prompts = {"first": PROMPT, "second": Prompt("{text}", "{text}", ("text",))}


def test_prompts_are_replaced_one_by_one_in_a_copy() -> None:
    asking = Asking()
    other = asking.with_prompts({"first": {"en": "{query}?"}})
    assert (other.prompts["first"].en, other.prompts["first"].zh) == ("{query}?", PROMPT.zh)
    assert other.prompts["second"] == asking.prompts["second"]
    assert asking.prompts["first"] == PROMPT
    with pytest.raises(ValueError, match="no prompt 'frist'; there is 'first'"):
        asking.with_prompts({"frist": "{query}"})
    with pytest.raises(TypeError):
        asking.prompts["first"] = PROMPT  # type: ignore[index]
    assert not PromptMixin().prompts
