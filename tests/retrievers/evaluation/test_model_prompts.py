"""The prompts of judges."""

import re

import pytest

from nodekin.retrievers.evaluation.judges import JUDGE_PROMPTS


@pytest.mark.parametrize("name", JUDGE_PROMPTS)
def test_prompt_has_language_and_material_in_tags(name: str) -> None:
    prompt = JUDGE_PROMPTS[name]
    assert "请" in prompt.zh
    assert prompt.en.isascii()
    for text in (prompt.zh, prompt.en):
        assert all(f"{{{field}}}" in text for field in prompt.required)
        assert sorted(re.findall(r"<(\w+)>", text)) == sorted(re.findall(r"</(\w+)>", text)) != []
        assert "\n\n\n" not in text
        assert text == text.strip()
