import pytest
from support.fixed_retriever import FixedRetriever, passage

from nodekin.retrievers.answers.engine import QueryEngine
from nodekin.retrievers.answers.ranked_answer import parse_ranked_answer


@pytest.mark.parametrize(
    ("raw", "text", "confidence"),
    [
        ("Answer: Tea [1].\nConfidence: 80", "Tea [1].", 80),
        ("Answer: Tea [1].\n\n**Confidence:** 80 (clear, but short)", "Tea [1].", 80),
        ("回答：茶[1]。\n把握：90", "茶[1]。", 90),
        ("茶[1]。\n置信度：９０％", "茶[1]。", 90),
        ("Tea.\nConfidence: 250", "Tea.", None),
        ("Tea.\nConfidence: 40\nConfidence: 70", "Tea.\nConfidence: 40", 70),
        ("Confidence: 70\nAnswer: Tea.", "Tea.", 70),
        ("Tea came in 1610.", "Tea came in 1610.", None),
        ("The score was 3:2 in the end.", "The score was 3:2 in the end.", None),
        ("Tea.\nConfidence: unclear", "Tea.", None),
        ('{"answer": "Tea [1].", "confidence": 80}', "Tea [1].", 80),
        ('```json\n{"answer": "Tea", "confidence": 50}\n```', "Tea", 50),
        ("<think>Confidence: 1</think>\nAnswer: Tea.\nConfidence: 60", "Tea.", 60),
    ],
)
def test_parse_ranked_answer_accepts_json_and_lines(raw, text, confidence) -> None:
    answer, said = parse_ranked_answer(raw)
    assert (answer.text, answer.answered, said) == (text, True, confidence)


@pytest.mark.parametrize(
    "raw", ["NO_ANSWER\nConfidence: 0", "回答：无答案\n把握：0", '{"answer": "NO_ANSWER"}']
)
def test_no_answer_is_not_answered(raw) -> None:
    assert not parse_ranked_answer(raw)[0].answered


@pytest.mark.parametrize("raw", ["", "Confidence: 80", '{"answer": "", "confidence": 1}'])
def test_empty_answer_raises(raw) -> None:
    with pytest.raises(ValueError, match="empty"):
        parse_ranked_answer(raw)


def test_map_rerank_chooses_the_highest_confidence(scripted, four_ways) -> None:
    results = [passage("One."), passage("Two."), passage("Three."), passage("Four.")]
    replies = {
        "One.": "Answer: first\nConfidence: 70",
        "Two.": "Answer: second\nConfidence: 95%",
        "Three.": "third, with no number",
        "Four.": "Answer: fourth\nConfidence: 9.5",
    }
    model = scripted(lambda p: next(replies[text] for text in replies if f"\n{text}\n</p" in p))
    for answer in four_ways(QueryEngine(FixedRetriever(results), model, "map_rerank"), "Which?"):
        assert (answer.text, answer.confidence) == ("second", 95.0)
        assert [source.number for source in answer.cited] == [2]
        assert answer.notes == ("the answer from [3] came without a confidence",)
