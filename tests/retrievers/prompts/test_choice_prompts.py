import pytest

from nodekin.retrievers.prompts.choice_prompts import ROUTE, SELF_QUERY


@pytest.mark.parametrize("prompt", [ROUTE, SELF_QUERY])
def test_choice_prompt_has_form(prompt) -> None:
    assert "Write only" in prompt.en
    assert "只输出" in prompt.zh


def test_prompt_for_filters_has_example() -> None:
    assert "\n\nExample\n" in SELF_QUERY.en
    assert "\n\n例\n" in SELF_QUERY.zh


def test_prompt_for_routes_has_no_example() -> None:
    # A small model chose the names in the example.
    assert ROUTE.en.endswith("(one name from the list above):")
    assert "Example" not in ROUTE.en
    assert "例" not in ROUTE.zh
