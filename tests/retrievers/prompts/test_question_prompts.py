import pytest

from nodekin.retrievers.prompts.question_prompts import (
    DECOMPOSITION,
    PARTIAL_ANSWER,
    TOOL_QUESTIONS_PROMPT,
)


@pytest.mark.parametrize("prompt", [DECOMPOSITION, PARTIAL_ANSWER, TOOL_QUESTIONS_PROMPT])
def test_question_prompt_begins_with_form_and_has_example(prompt) -> None:
    assert prompt.en.startswith("Write ")
    assert "\n\nExample" in prompt.en
    assert prompt.zh.startswith(("只用", "每行只写"))
    assert "\n\n例" in prompt.zh
