"""What a model reads in a step in one call, as it likes to write it."""

import pytest

from nodekin.retrievers.strategies.step_reader import StepReader, StepReading

QUESTION = "In which town was the author of Brand born?"
NEXT = "Where did Henrik Ibsen come into the world?"


@pytest.mark.parametrize(
    ("answer", "reading"),
    [
        (
            f"Answer: Henrik Ibsen\nAnswered: no\nNext question: {NEXT}",
            StepReading("Henrik Ibsen", False, NEXT),
        ),
        (
            "**Answer:** Skien\n**Answered:** Yes\n**Next question:** None",
            StepReading("Skien", True),
        ),
        ("1. Answer: Skien\n2. Answered: yes\n3. Next question: NONE", StepReading("Skien", True)),
        ("答案：南京。\n已回答：是。\n下一个问题：无", StepReading("南京", True)),
        (
            "答案:未知\n已回答:不能\n下一个问题:他的父亲是谁？",
            StepReading(None, False, "他的父亲是谁？"),
        ),
        (
            "Known: Ibsen wrote it.\nMissing: his town\nNext question: Where was Ibsen born?\n"
            "Answered: yes\nAnswer: Norway",
            StepReading("Norway", False, "Where was Ibsen born?"),
        ),
        (
            "Known: Ibsen wrote it.\nMissing: NONE\nNext question: Where was he born?\n"
            "Answered: yes\nAnswer: Skien",
            StepReading("Skien", True),
        ),
        (
            "已知：他生于南京。\n还缺：无\n下一个问题：无\n已回答：是\n答案：南京",
            StepReading("南京", True),
        ),
        (
            '{"missing": "父亲", "question": "他的父亲是谁？", "answered": "yes", "answer": "x"}',
            StepReading("x", False, "他的父亲是谁？"),
        ),
        ('{"answer": "x", "answered": true, "question": "y?"}', StepReading("x", True)),
        (
            'Here:\n```json\n{"answer": null, "answered": false, "question": "y?"}\n```',
            StepReading(None, False, "y?"),
        ),
        (
            "Answer:\nSkien\nAnswered:\nno\nNext question:\nWho?",
            StepReading("Skien", False, "Who?"),
        ),
        (
            "Answer: not mentioned in the passages\nAnswered: no\nNext question: Who?",
            StepReading(None, False, "Who?"),
        ),
        (
            "<think>Answered: yes</think>Answered: no\nNext question: Who?",
            StepReading(None, False, "Who?"),
        ),
        ("Answered: no", StepReading()),
        ("Who wrote Brand?", StepReading(None, False, "Who wrote Brand?")),
        (
            "Sure! Here is the next question:\n\n1. Who wrote Brand?",
            StepReading(None, False, "Who wrote Brand?"),
        ),
    ],
)
def test_readings(answer: str, reading: StepReading) -> None:
    assert StepReader(lambda prompt: answer)(QUESTION) == reading
