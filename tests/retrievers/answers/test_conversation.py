import threading

import pytest

from nodekin.retrievers.answers import AnswerError, QueryEngine


@pytest.fixture
def model(scripted):
    def reply(prompt: str) -> str:
        if "Conversation:" in prompt:
            return "How long is the Nile?"
        return "It is 6,650 km long [1]."

    return scripted(reply)


async def test_all_ways_keep_what_was_said(lines, model) -> None:
    chat = QueryEngine(lines, model).conversation([("Hi", "Hello")])
    assert chat.query("Where is the Nile?").searched == "How long is the Nile?"
    await chat.aquery("And how long is it?")
    assert "".join(chat.stream("In miles?")) == "It is 6,650 km long [1]."
    assert [p async for p in chat.astream("Really?")]
    asked = [question for question, _ in chat.history]
    assert asked == ["Hi", "Where is the Nile?", "And how long is it?", "In miles?", "Really?"]
    assert chat.history[1][1] == "It is 6,650 km long [1]."
    chat.clear()
    assert chat.history == ()


def test_conversations_know_nothing_of_each_other(lines, model) -> None:
    engine = QueryEngine(lines, model)
    first, second = engine.conversation(), engine.conversation()
    first.query("How long is the Nile?")
    assert second.history == ()
    assert second.query("How long is the Nile?").calls == 1
    assert first.query("And?").calls == 2


def test_what_fails_or_is_not_read_to_the_end_is_not_kept(lines, model, breaking) -> None:
    chat = QueryEngine(lines, breaking).conversation()
    with pytest.raises(AnswerError):
        chat.query("How long is the Nile?")
    with pytest.raises(AnswerError):
        list(chat.stream("How long is the Nile?"))
    assert chat.history == ()
    chat = QueryEngine(lines, model).conversation()
    with chat.stream("How long is the Nile?") as stream:
        next(stream)
    assert chat.history == ()


def test_threads_may_share_a_conversation(lines, model) -> None:
    chat = QueryEngine(lines, model).conversation()
    threads = [
        threading.Thread(target=chat.query, args=(f"How long is the Nile? {n}",)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(question for question, _ in chat.history) == [
        f"How long is the Nile? {n}" for n in range(8)
    ]
