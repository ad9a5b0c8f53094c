"""Prompts: language, replacement, and models that fail with schemas."""

from typing import Any

import pytest

from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

QUERY, QUERY_ZH = "Is the Nile longer than the Amazon?", "尼罗河比亚马孙河长吗？"
KINDS: list[Any] = [s.transform for s in STRATEGIES.values() if s.transform]


@pytest.mark.parametrize("kind", KINDS)
def test_language_defaults_to_that_of_the_query(kind: Any, scripted: Any) -> None:
    for query, language, expected in [
        (QUERY, None, "en"),
        (QUERY_ZH, None, "zh"),
        (QUERY, "zh", "zh"),
        (QUERY_ZH, "en", "en"),
    ]:
        model = scripted("Nile?")
        kind(model, language=language)(query)
        before, _, _ = kind.PROMPT.of(expected).partition("{")
        assert model.prompts[0].startswith(before)
        assert query in model.prompts[0]


@pytest.mark.parametrize("kind", KINDS)
def test_custom_prompts_replace_and_are_checked(kind: Any, scripted: Any) -> None:
    model = scripted("How long is the Nile?\nIt is long.")
    kind(model, prompt={"en": "Mine: {query}"})(QUERY)
    assert model.prompts == [f"Mine: {QUERY}"]
    other = kind(model)
    changed = other.with_prompts({other.name: {"en": "Other: {query}"}})
    changed(QUERY)
    assert model.prompts[1] == f"Other: {QUERY}"
    assert other.prompts[other.name].en == kind.PROMPT.en
    with pytest.raises(ValueError, match=r"must contain \{query\}"):
        kind(model, prompt="nothing")
    with pytest.raises(ValueError, match=r"unknown placeholder 'qeury'"):
        kind(model, prompt="{query} {qeury}")
    with pytest.raises(ValueError, match="unknown prompt 'rewritten'"):
        other.with_prompts({"rewritten": "{query}"})
