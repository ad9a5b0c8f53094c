import pytest

from nodekin.retrievers.prompts.query_prompts import EXPANSION, PASSAGE, REWRITE


@pytest.mark.parametrize("prompt", [EXPANSION, PASSAGE, REWRITE])
def test_query_prompt_begins_with_form_and_has_example(prompt) -> None:
    assert prompt.en.startswith("Write ")
    assert "\n\nExample\n" in prompt.en
    assert prompt.zh.startswith(("只输出", "写 {count} 行"))
    assert "\n\n例\n" in prompt.zh
