import pytest

from nodekin.retrievers.prompts.answer_prompts import PROMPTS


@pytest.mark.parametrize("name", ["answer", "partial", "rank", "reduce", "refine"])
def test_answer_prompt_shows_citation_without_example_sentence(name: str) -> None:
    """A small model copies the sentences of an example into its answer, with their numbers."""
    prompt = PROMPTS[name]
    assert "[1]" in prompt.en
    assert "[1]" in prompt.zh
    assert "for example: " not in prompt.en
    assert "例如：" not in prompt.zh


def test_condensing_prompt_has_example() -> None:
    prompt = PROMPTS["condense"]
    assert "\n\nExample\n" in prompt.en
    assert "\n\n例\n" in prompt.zh
