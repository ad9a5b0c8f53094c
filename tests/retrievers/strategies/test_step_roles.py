"""The three roles of a step, each a call of its own."""

import pytest

from nodekin.nodegraph import ModelError
from nodekin.retrievers.strategies.step_roles import (
    AnsweredJudge,
    NextQuestion,
    StepAnswer,
    StepRoles,
)

QUESTION = "In which town was the author of Brand born?"


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Who wrote Brand?", "Who wrote Brand?"),
        ("Next question: **Who wrote Brand?**", "Who wrote Brand?"),
        ("下一个小问题：《红楼梦》是谁写的？", "《红楼梦》是谁写的？"),
        ('```json\n{"question": "Who?"}\n```', "Who?"),
        ("1. Who?\n2. Where?\n3. When?", "Who?"),
        ("NONE", None),
        ("无", None),
    ],
)
def test_next_questions(reply: str, question: str | None) -> None:
    assert NextQuestion(lambda prompt: reply)(QUESTION, []) == question


@pytest.mark.parametrize("reply", ["", "asdf", "I'm sorry, I can't.", "What " * 200 + "?"])
async def test_what_is_no_next_question(reply: str) -> None:
    with pytest.raises(ModelError, match="no answer of the language model"):
        await NextQuestion(lambda prompt: reply).acall(QUESTION)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Skien", "Skien"),
        ("Answer: Skien.", "Skien"),
        ("答案：南京", "南京"),
        ("unknown", None),
        ("未知", None),
        ("资料中没有提到出生地。", None),
        ("The passages do not say where he was born.", None),
        ("Unknown Pleasures", "Unknown Pleasures"),
        ("x" * 400, "x" * 296 + " ..."),
    ],
)
def test_answers_of_a_step(reply: str, answer: str | None) -> None:
    assert StepAnswer(lambda prompt: reply)("Where?") == answer


def test_roles_are_checked() -> None:
    with pytest.raises(TypeError, match="judge is a function of a question and steps, not 'yes'"):
        StepRoles(str.upper, judge="yes")
    with pytest.raises(ValueError, match="give a role its own"):
        StepRoles(str.upper, judge=len, prompt="{question}")
    with pytest.raises(TypeError, match="model"):
        StepRoles(judge=len)


def test_prompts_of_roles_can_be_replaced() -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "yes"

    roles = StepRoles(model, judge=AnsweredJudge(model, prompt="Done? {question}"))
    other = roles.with_prompts({"step answer": {"en": "{passages} {question}"}})
    assert other.prompts["judge"].en == "Done? {question}"
    assert other.prompts["step answer"].en == "{passages} {question}"
    assert roles.prompts["step answer"].en != other.prompts["step answer"].en
    judge = other.roles["judge"]
    assert isinstance(judge, AnsweredJudge)
    assert judge(QUESTION)
    assert prompts == [f"Done? {QUESTION}"]
