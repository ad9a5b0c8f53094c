"""Steps: which questions are the same, and how the results of all become one ranking."""

from nodekin.retrievers.strategies.steps import same_question


def test_same_questions() -> None:
    assert same_question("Who wrote the Brand?", "who  wrote Brand")
    assert same_question("请问他的父亲是谁呢？", "他父亲是谁")
    assert not same_question("Who was born in 1990?", "Who was born in 1991?")
    assert not same_question("Where was he born?", "When was he born?")
    assert not same_question("?", "!")
