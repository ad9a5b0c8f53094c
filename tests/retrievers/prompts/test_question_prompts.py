import pytest

from nodekin.retrievers.prompts.question_prompts import (
    DECOMPOSITION,
    PARTIAL_ANSWER,
    TOOL_QUESTIONS_PROMPT,
)


@pytest.mark.parametrize("prompt", [DECOMPOSITION, TOOL_QUESTIONS_PROMPT])
def test_question_prompt_begins_with_form_and_has_example(prompt) -> None:
    assert prompt.en.startswith("Write ")
    assert "\n\nExample" in prompt.en
    assert prompt.zh.startswith("每行只写")
    assert "\n\n例" in prompt.zh


def test_partial_answer_prompt_begins_with_form_and_has_whole_sentence_as_example() -> None:
    english, _, _ = PARTIAL_ANSWER.en.partition("\n\n")
    assert english.startswith("Answer the question in one sentence")
    assert "for example: Leo Tolstoy was born in Tula\nProvince." in english
    assert PARTIAL_ANSWER.zh.startswith("只写答案，用一句完整的话")
    assert "\n答案：列夫·托尔斯泰出生在图拉省。" in PARTIAL_ANSWER.zh
