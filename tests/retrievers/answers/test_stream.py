import asyncio

import pytest
from support.fixed_retriever import FixedRetriever, passage

from nodekin.retrievers.answers.answer import AnswerError
from nodekin.retrievers.answers.engine import QueryEngine

NILE = "How long is the Nile?"


@pytest.mark.parametrize("mode", ["stuff", "refine", "map_reduce"])
def test_stream_yields_texts_after_sources(mode, lines, scripted) -> None:
    stream = QueryEngine(lines, scripted(lambda _: "It is 6,650 km [1]."), mode).stream(NILE)
    assert (stream.sources, stream.answer.text, stream.ended) == ((), "", False)
    first = next(stream)
    assert first == "It"
    assert stream.sources[0].text == "The Nile is 6,650 km long."
    assert not stream.ended
    assert stream.answer.text == "It"
    assert "not complete" in stream.answer.notes[-1]
    assert len(list(stream)) > 3
    assert stream.ended
    assert stream.sources[0].cited
    assert stream.finish() is stream.answer


async def test_broken_stream_raises_and_keeps_the_text(lines, breaking) -> None:
    engine = QueryEngine(lines, breaking)
    stream, async_stream, streamed = engine.stream(NILE), engine.astream(NILE), []
    with pytest.raises(AnswerError, match="the line is dead") as caught:
        streamed.extend(stream)
    with pytest.raises(AnswerError, match="the line is dead"):
        await async_stream.afinish()
    assert "".join(streamed) == caught.value.answer.text == "The Nile is 6,6"
    for each in (stream, async_stream):
        assert each.answer.text == "The Nile is 6,6"
        assert each.sources
        assert not each.ended


async def test_stream_can_be_left_early(lines, scripted) -> None:
    ended = []

    class Model(scripted):
        def stream(self, prompt):
            try:
                yield from super().stream(prompt)
            finally:
                ended.append(True)

    engine = QueryEngine(lines, Model(lambda _: "It is 6,650 km [1]."))
    with engine.stream(NILE) as stream:
        assert next(stream) == "It"
    assert ended == [True]
    assert (stream.answer.text, stream.ended) == ("It", False)
    with pytest.raises(StopIteration):
        next(stream)
    async with engine.astream(NILE) as async_stream:
        assert await anext(async_stream) == "It"
    assert not async_stream.ended
    assert len(asyncio.all_tasks()) == 1
    assert (await engine.astream(NILE).afinish()).text == "It is 6,650 km [1]."


def test_markers_and_thoughts_are_not_streamed(lines, scripted) -> None:
    model = scripted(lambda _: "<think>What?\nNO_ANSWER?</think>\nIt is long [1].", 1)
    assert "".join(QueryEngine(lines, model).stream(NILE)) == "It is long [1]."
    model = scripted(lambda _: "They do not tell. NO_ANSWER", 1)
    stream = QueryEngine(lines, model).stream(NILE)
    assert "".join(stream) == "They do not tell."
    assert not stream.answer.answered


@pytest.mark.parametrize(
    ("last", "streamed"),
    [
        ("They do not help. NO_ANSWER", "They do not help.\n\n6,650 km [1]."),
        (RuntimeError("down"), "6,650 km [1]."),
    ],
)
def test_last_call_of_refine_without_answer_keeps_the_earlier(last, streamed, scripted) -> None:
    model = scripted(lambda prompt: last if "answer so far" in prompt else "6,650 km [1].")
    retriever = FixedRetriever([passage(f"The Nile {n}. {'word ' * 240}") for n in range(2)])
    engine = QueryEngine(retriever, model, "refine", context_window=700, num_output=50)
    stream = engine.stream(NILE)
    assert "".join(stream) == streamed
    assert (stream.answer.text, stream.answer.calls) == ("6,650 km [1].", 2)
    assert any("[2] failed" in note for note in stream.answer.notes) == isinstance(last, Exception)
