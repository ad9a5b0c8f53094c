"""Verdicts on numbered items, in the forms in which models write them."""

import pytest

from nodekin.nodegraph.models.output.verdicts import Verdict, parse_numbers, parse_verdicts


@pytest.mark.parametrize(
    "answer",
    [
        '{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 2, "verdict": "no"}]}',
        '{"verdicts": [{"number": 2, "verdict": "no"}, {"number": 1, "verdict": "yes"}]}',
        '```json\n[{"statement": "a", "attributed": 1}, {"statement": "b", "attributed": 0}]\n```',
        '["yes", "no"]',
        "[true, false]",
        '{"1": "yes", "2": "No, because it is not there"}',
        '{"1": {"verdict": "yes"}, "2": {"verdict": false}}',
        "{verdicts: [{number: 1, verdict: 'yes'}, {number: 2, verdict: 'no'},]}",
        "1. yes - the passage says that it is not fermented\n2) **No**: nothing of it",
        "1: Yes, it does not say otherwise.\n2: partially supported",
        "[1] 支持：原文\n[2] 不支持",
        "1：是\n2：否，没有提到",
        "Statement 1: supported. Why.\nStatement 2: not supported",
        "<think>2 might be yes</think>Here are the verdicts:\n\n1 yes\n2 no",
        "| 1 | yes |\n| 2 | no |",
    ],
)
def test_a_verdict_for_each_number(answer):
    assert [verdict.yes for verdict in parse_verdicts(answer, 2)] == [True, False]


def test_the_words_of_the_judge():
    answer = '{"verdicts": [{"number": 1, "quote": "Tea.", "verdict": "yes"}]}'
    assert parse_verdicts(answer, 1) == [Verdict(True, "Tea.")]
    assert parse_verdicts("1. no - it says nothing", 1) == [Verdict(False, "it says nothing")]
    assert len(parse_verdicts(f"1. no - {'x' * 999}", 1)[0].words) == 300


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        ("Yes.", True),
        ("No. It is about another tea.", False),
        ("Yes, the passage says that it is not.", True),
        ("The passage describes tea.\nVerdict: yes", True),
        ('{"quote": "q", "verdict": "no"}', False),
        ("是的，段落提到了。", True),
        ("不相关", False),
        ("irrelevant", False),
    ],
)
def test_one_item_needs_no_number(answer, yes):
    assert parse_verdicts(answer, 1)[0].yes is yes


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ("", 1),
        ("asdf", 1),
        ("Unclear.", 1),
        ("Yes, but only half of it", 1),
        ("Yes.\nNo.", 1),
        ("I'm sorry, but I can't help with that.", 1),
        ("yes", 2),
        ("yes\nno", 2),
        ("1. yes", 2),
        ("1. yes\n1. no", 1),
        ('{"a": 1}', 1),
        ('["yes"]', 2),
        ('{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 1, "verdict": "no"}]}', 2),
        ('{"verdicts": [{"number": 1, "verdict": "perhaps"}]}', 1),
        ('{"verdicts": [{"number": 1, "verd', 1),
    ],
)
def test_what_is_not_clear_is_no_verdict(answer, count):
    with pytest.raises(ValueError, match=r"\w"):
        parse_verdicts(answer, count)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ('{"numbers": [3, 1, 3]}', [1, 3]),
        ('["1", "2"]', [1, 2]),
        ("1, 3", [1, 3]),
        ("Sentences 1 and 2.", [1, 2]),
        ("[1] and [2] are relevant", [1, 2]),
        ("None.", []),
        ("[]", []),
        ('{"numbers": []}', []),
        ("There are no relevant sentences.", []),
        ("没有相关的句子", []),
    ],
)
def test_the_numbers_that_a_judge_lists(answer, numbers):
    assert parse_numbers(answer, 3) == numbers


@pytest.mark.parametrize(
    "answer",
    ["", "asdf", "4", "[0]", '{"numbers": ["tea"]}', "The tea of 1 came first to us in the city"],
)
def test_what_lists_no_numbers(answer):
    with pytest.raises(ValueError, match=r"\w"):
        parse_numbers(answer, 3)
