import pytest

from nodekin.nodegraph.models.output.questions import is_own, is_query, split_questions


@pytest.mark.parametrize(
    "text",
    [
        "What is [[Prototype]] in JavaScript?",
        "{{ user.name }} in Jinja",
        'dict["key"] raises KeyError',
        "a << 2",
        "x = 5",
    ],
)
def test_code_is_query(text: str) -> None:
    assert is_query(text, "What did he mean?")


@pytest.mark.parametrize("text", ['"question": "Who', "Hi", "x", "[{", "none", "yes"])
def test_remains_and_signals_are_no_queries(text: str) -> None:
    assert not is_query(text, "What did he mean?")


@pytest.mark.parametrize(
    ("text", "query", "own"),
    [
        ("I Don't Know How She Does It", "i dont know how she does it", True),
        ("None", "none", True),
        ("none", "none of the rivers", False),
        ("the long river", "how long is it", False),
    ],
)
def test_words_of_question_are_own(text: str, query: str, own: bool) -> None:
    assert is_own(text, query) is own


def test_words_between_questions_are_left_out() -> None:
    text = "Who wrote it? Then who painted it? 然后：谁画的？"
    assert split_questions(text) == ["Who wrote it?", "who painted it?", "谁画的？"]
