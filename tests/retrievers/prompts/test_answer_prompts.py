import pytest

from nodekin.retrievers.prompts.answer_prompts import PROMPTS


@pytest.mark.parametrize("name", sorted(PROMPTS.keys() - {"not_found"}))
def test_answer_prompt_has_an_example(name: str) -> None:
    prompt = PROMPTS[name]
    english = "Green tea is not oxidized [1]." in prompt.en
    chinese = "绿茶没有发酵[1]。" in prompt.zh
    assert english or "\n\nExample\n" in prompt.en
    assert chinese or "\n\n例\n" in prompt.zh
