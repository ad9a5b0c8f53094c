"""What a written question is checked by."""

import pytest

from nodekin.retrievers.evaluation import Question
from nodekin.retrievers.evaluation.generation import (
    agree,
    answer_position,
    copied_share,
    gives_away,
    names_passage,
    same_question,
)


@pytest.mark.parametrize(
    ("question", "passage", "share"),
    [
        ("Which tea is not fermented?", "Green tea is not fermented.", 0.8),
        ("WHICH TEA?", "which tea", 1.0),
        ("哪种茶不发酵？", "绿茶不发酵。", 4 / 6),
        ("Where?", "", 0.0),
        ("?", "tea", 0.0),
    ],
)
def test_the_share_of_a_question_that_is_copied_in_one_run(question, passage, share):
    assert copied_share(question, passage) == pytest.approx(share)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does the passage say?", True),
        ("Who wrote this article?", True),
        ("According to both passages, who won?", True),
        ("本文讲了什么？", True),
        ("文中提到的河叫什么？", True),
        ("What is the tool in the code snippet called?", True),
        ("What does the given code print?", True),
        ("What is a code of conduct?", False),
        ("What is a passage grave?", False),
        ("Who is the author of Brand?", True),  # may be the passage's; better one too few
        ("这条河在哪里？", False),
        ("语文课本是谁编的？", False),
    ],
)
def test_questions_that_speak_of_the_passage(question, names):
    assert names_passage(question) is names


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("in 1828", "1828.", True),
        ("１８２８", "in 1828", True),
        ("the Alps of Switzerland", "Swiss Alps", False),
        ("Alps of Switzerland", "the Alps in Switzerland", True),
        ("18", "1828", False),
        ("四百米", "约四百米宽", True),
        ("科隆", "波恩", False),
        ("", "Tea", False),
        ("!", "?", False),
    ],
)
def test_answers_that_say_the_same(one, other, same):
    assert agree(one, other) is same
    assert agree(other, one) is same


@pytest.mark.parametrize(
    ("question", "answer", "gives"),
    [
        ("What is Alû's name in Akkadian?", "Alû", True),
        ("What are the Alps called?", "the alps.", True),
        ("科隆大教堂在哪个城市？", "科隆", True),
        ("哪个城市有大教堂？", "科隆", False),
        ("What was there in 1880?", "188", False),
        ("What?", "", False),
    ],
)
def test_questions_that_have_their_answer_in_them(question, answer, gives):
    assert gives_away(question, answer) is gives


def test_of_several_places_it_is_that_in_the_sentence_of_the_question():
    text = "Bonn is old. The Rhine runs past Bonn. Bonn has a university."
    at = text.index("Bonn", 20)
    assert answer_position("Bonn.", text, "Which town is on the Rhine?") == (at, at + 4)
    assert answer_position("bonn  has", text, "What?") == (
        text.index("Bonn has"),
        text.index("Bonn has") + 8,
    )
    assert answer_position("Cologne", text, "What?") is None
    assert answer_position("。", text, "What?") is None


@pytest.mark.parametrize(
    ("one", "other", "answers", "same"),
    [
        ("Who was it?", "who was it", ((), ()), True),
        (
            "What is the name of the play by Ibsen that was staged in Stockholm in 1885?",
            "What is the name of the play written by Ibsen that was staged in Stockholm in 1885?",
            (("Brand",), ("brand.",)),
            True,
        ),
        (
            "What is the name of the play by Ibsen that was staged in Stockholm in 1885?",
            "What is the name of the play by Ibsen that was staged in Bergen in 1885?",
            (("Brand",), ("The Feast",)),
            False,
        ),
        (
            "What is the name of the play by Ibsen that was staged in Stockholm in 1885?",
            "What is the name of the play by Ibsen that was staged in Stockholm in 1886?",
            ((), ()),
            False,
        ),
        ("Who wrote Brand?", "Who wrote Peer Gynt?", (("Ibsen",), ("Ibsen",)), False),
        ("《布兰德》是谁写的？", "《布兰德》是谁写的", (("易卜生",), ("易卜生",)), True),
    ],
)
def test_questions_that_are_one(one, other, answers, same):
    first, second = Question("1", one, (), answers[0]), Question("2", other, (), answers[1])
    assert same_question(first, second) is same
    assert same_question(second, first) is same
