import pytest

from nodekin.retrievers.strategies.outcome import (
    StepReading,
)
from nodekin.retrievers.strategies.step_reader import parse_step

NEXT = "Where did Henrik Ibsen come into the world?"


@pytest.mark.parametrize(
    ("text", "answer", "answered", "question"),
    [
        (f"Answer: Ibsen\nAnswered: no\nNext question: {NEXT}", "Ibsen", False, NEXT),
        ("**Answer:** Skien\n**Answered:** Yes\n**Next question:** None", "Skien", True, None),
        ("1. Answer: Skien\n2. Answered: yes\n3. Next question: NONE", "Skien", True, None),
        ("答案：南京。\n已回答：是。\n下一个问题：无", "南京", True, None),
        ("答案:未知\n已回答:不能\n下一个问题:他是谁？", None, False, "他是谁？"),
        (
            "Known: Ibsen wrote it.\nMissing: his town\nNext question: Where was Ibsen born?\n"
            "Answered: yes\nAnswer: Norway",
            *("Norway", False, "Where was Ibsen born?"),
        ),
        (
            "Known: Ibsen wrote it.\nMissing: NONE\nNext question: Where was he born?\n"
            "Answered: yes\nAnswer: Skien",
            *("Skien", True, None),
        ),
        ("已知：他。\n还缺：无\n下一个问题：无\n已回答：是\n答案：南京", "南京", True, None),
        (
            '{"missing": "父亲", "question": "他是谁？", "answered": "yes", "answer": "x"}',
            *("x", False, "他是谁？"),
        ),
        ('{"answer": "x", "answered": true, "question": "y?"}', "x", True, None),
        (
            'Here:\n```json\n{"answer": null, "answered": false, "question": "y?"}\n```',
            *(None, False, "y?"),
        ),
        ("Answer:\nSkien\nAnswered:\nno\nNext question:\nWho?", "Skien", False, "Who?"),
        (
            "Answer: not mentioned in the passages\nAnswered: no\nNext question: Who?",
            *(None, False, "Who?"),
        ),
        ("<think>Answered: yes</think>Answered: no\nNext question: Who?", None, False, "Who?"),
        ("Answer: Skien [2]\nAnswered: yes", "Skien", True, None),
        ("答案：南京[1][3]。\n已回答：是", "南京", True, None),
        ("Answer: a[2]\nAnswered: yes", "a[2]", True, None),
        (
            "<known>x</known>\n<next_question>Who?</next_question>\n<answered>no</answered>\n"
            "<answer>Skien</answer>",
            *("Skien", False, "Who?"),
        ),
        (
            "**Next question**\nWho?\n\n**Answered**\nno\n\n**Answer**\n**Skien**.",
            *("Skien", False, "Who?"),
        ),
        ("「下一个问题」他是谁？\n「已回答」否\n「答案」南京", "南京", False, "他是谁？"),
        ("还缺：父亲；下一个问题：他是谁？；已回答：否；答案：南京", "南京", False, "他是谁？"),
        ("Answered: no", None, False, None),
        ("Who wrote Brand?", None, False, "Who wrote Brand?"),
        ("Sure! The next question:\n\n1. Who wrote Brand?", None, False, "Who wrote Brand?"),
    ],
)
def test_parse_step_accepts_many_forms(
    text: str, answer: str | None, answered: bool, question: str | None
) -> None:
    assert parse_step(text) == StepReading(answer, answered, question)


@pytest.mark.parametrize("reply", ["", "asdf", "I'm sorry, I can't.", "What " * 200 + "?"])
def test_useless_answers_raise(reply: str) -> None:
    with pytest.raises(ValueError, match=r"refused|answer|question"):
        parse_step(reply)
