import pytest

from nodekin.nodegraph.models.output.additions import without_additions


@pytest.mark.parametrize(
    ("question", "text", "kept"),
    [
        ("hw long is teh nile", "Bot: How long is the Nile?", "How long is the Nile?"),
        ("hw long is teh nile", "Got it! How long is the Nile?", "How long is the Nile?"),
        ("hw long is teh nile", "How long is the Nile? [corrected]", "How long is the Nile?"),
        ("hw long is teh nile", 'r = f("How long is the Nile?", 5)', "How long is the Nile?"),
        ("尼罗河多长", "机器人：尼罗河有多长？", "尼罗河有多长？"),
        ("尼罗河多长", "尼罗河有多长？——已改正", "尼罗河有多长？"),
    ],
)
def test_words_that_question_lacks_are_removed(question: str, text: str, kept: str) -> None:
    assert without_additions(text, question) == kept


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("c++: what is a move", "C++: what is a move?"),
        ("my laptop doesnt start what can i do", "My laptop does not start. What can I do?"),
        ("star wars where was it made", "Star Wars: where was it made?"),
        ("what does => mean in ruby", "What does => mean in Ruby?"),
        ("ibsn?", "Python: how is a list sorted?"),
        ("尼罗河：多长", "尼罗河：有多长？"),
    ],
)
def test_words_of_question_stay(question: str, text: str) -> None:
    assert without_additions(text, question) == text
