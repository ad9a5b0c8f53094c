import pytest

from nodekin.retrievers.prompts.choice_prompts import ROUTE, SELF_QUERY


@pytest.mark.parametrize("prompt", [ROUTE, SELF_QUERY])
def test_choice_prompt_has_form_and_example(prompt) -> None:
    assert "Write only" in prompt.en
    assert "\n\nExample\n" in prompt.en
    assert "只输出" in prompt.zh
    assert "\n\n例\n" in prompt.zh
