from types import SimpleNamespace

import pytest

from nodekin.retrievers.answers.chat_history import format_history, parse_history
from nodekin.retrievers.answers.engine import QueryEngine


def test_messages_that_do_not_alternate() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": [{"type": "text", "text": "Tea?"}, {"type": "image"}]},
        {"role": "user", "content": "Green?"},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "{}"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And?"},
    ]
    pairs = parse_history(messages)
    assert pairs == [("", "Hello!"), ("Tea?\nGreen?", "Yes."), ("And?", "")]
    assert format_history(pairs, "en").startswith("Assistant: Hello!\nUser: Tea?")
    assert parse_history(None) == parse_history([]) == []
    of_langchain = [
        SimpleNamespace(type="human", content="Who?"),
        SimpleNamespace(type="ai", content="Lu."),
    ]
    assert parse_history(of_langchain) == parse_history([["Who?", "Lu."]]) == [("Who?", "Lu.")]


@pytest.mark.parametrize(
    ("history", "error", "words"),
    [
        ("text", TypeError, "list of pairs"),
        ([("a", 5)], TypeError, "two strings"),
        ([5], TypeError, "pairs"),
        ([{"role": "king", "content": "x"}], ValueError, "'king'"),
    ],
)
def test_invalid_histories_raise(history, error, words) -> None:
    with pytest.raises(error, match=words):
        parse_history(history)


def test_follow_up_question_is_condensed(lines, scripted, four_ways) -> None:
    def reply(prompt: str) -> str:
        if "对话" in prompt:
            return "改写后的问题：长江有多长？"
        if "Conversation" in prompt:
            return "Rewritten question: How long is the Nile?"
        return "It is long [1]."

    model = scripted(reply)
    engine = QueryEngine(lines, model)
    for answer in four_ways(engine, "How long?", history=[("Where is the Nile?", "In Africa.")]):
        assert (answer.question, answer.searched) == ("How long?", "How long is the Nile?")
        assert answer.sources[0].title == "Nile"
        assert answer.calls == 2
    assert "User: Where is the Nile?\nAssistant: In Africa." in model.prompts[0]
    assert "Question: How long is the Nile?" in model.prompts[1]
    assert engine.query("How long is the Nile?", history=[]).calls == 1
    answer = engine.query("它有多长？", history=[("长江在哪里？", "在中国。")])
    assert (answer.searched, answer.sources[0].title) == ("长江有多长？", "长江")


@pytest.mark.parametrize("reply", [RuntimeError("down"), "", "I cannot help with that."])
def test_failed_condensing_searches_the_question(reply, lines, scripted, four_ways) -> None:
    model = scripted(lambda p: reply if "Conversation:" in p else "6,650 km [1].")
    engine = QueryEngine(lines, model)
    for answer in four_ways(engine, "How long is the Nile?", history=[("Hi", "Hello")]):
        assert answer.searched == "How long is the Nile?"
        assert answer.text == "6,650 km [1]."
        assert "condensing the question failed" in answer.notes[0]


def test_long_history_is_truncated_with_a_note(lines, scripted) -> None:
    model = scripted(lambda _: "How long is the Nile?")
    engine = QueryEngine(lines, model, history_window=60)
    history = [(f"Question {n}", "word " * 20) for n in range(9)]
    answer = engine.query("How long?", history=history)
    assert "Question 8" in model.prompts[0]
    assert "Question 5" not in model.prompts[0]
    note = "the history's first 7 of 9 pairs were left out: they are too long for the prompt"
    assert note in answer.notes
    answer = engine.query("How long?", history=[("Where is the Nile?", "word. " * 200)])
    assert "the last answer in the history was cut: it is too long for the prompt" in answer.notes
