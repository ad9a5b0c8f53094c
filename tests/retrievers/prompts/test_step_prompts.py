import pytest

from nodekin.retrievers.prompts.step_prompts import STEP, STEP_ANSWER, STEP_JUDGE, STEP_QUESTION


@pytest.mark.parametrize("prompt", [STEP, STEP_ANSWER, STEP_JUDGE, STEP_QUESTION])
def test_step_prompt_begins_with_form_and_has_example(prompt) -> None:
    assert prompt.en.startswith("Write only")
    assert "\n\nExample" in prompt.en
    assert prompt.zh.startswith("只")
    assert "\n\n例" in prompt.zh
