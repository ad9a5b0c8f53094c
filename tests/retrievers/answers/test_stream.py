import asyncio

import pytest
from support.fixed_retriever import FixedRetriever, passage
from support.streams import afinish

from nodekin.retrievers.answers.answer import AnswerError
from nodekin.retrievers.answers.engine import QueryEngine

NILE = "How long is the Nile?"


@pytest.mark.parametrize("mode", ["stuff", "refine", "map_reduce"])
def test_stream_yields_texts_after_sources(mode, lines, scripted) -> None:
    stream = QueryEngine(lines, scripted(lambda _: "It is 6,650 km [1]."), mode).stream(NILE)
    assert (stream.answer.sources, stream.answer.text) == ((), "")
    first = next(stream)
    assert first == "It"
    assert stream.answer.sources[0].text == "The Nile is 6,650 km long."
    assert stream.answer.text == "It"
    assert "not complete" in stream.answer.notes[-1]
    assert len(list(stream)) > 3
    assert stream.answer.sources[0].cited
    assert not stream.answer.notes


async def test_broken_stream_raises_and_keeps_the_text(lines, breaking) -> None:
    engine = QueryEngine(lines, breaking)
    stream, async_stream, streamed = engine.stream(NILE), engine.astream(NILE), []
    with pytest.raises(AnswerError, match="the line is dead") as caught:
        streamed.extend(stream)
    with pytest.raises(AnswerError, match="the line is dead"):
        await afinish(async_stream)
    assert "".join(streamed) == caught.value.answer.text == "The Nile is 6,6"
    for each in (stream, async_stream):
        assert each.answer.text == "The Nile is 6,6"
        assert each.answer.sources
        assert "not complete" in each.answer.notes[-1]


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
    assert stream.answer.text == "It"
    assert "not complete" in stream.answer.notes[-1]
    with pytest.raises(StopIteration):
        next(stream)
    async with engine.astream(NILE) as async_stream:
        assert await anext(async_stream) == "It"
    assert async_stream.answer.text == "It"
    assert len(asyncio.all_tasks()) == 1
    assert (await afinish(engine.astream(NILE))).text == "It is 6,650 km [1]."


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
def test_refine_without_last_answer_keeps_earlier_answer(last, streamed, scripted) -> None:
    model = scripted(lambda prompt: last if "answer so far" in prompt else "6,650 km [1].")
    retriever = FixedRetriever([passage(f"The Nile {n}. {'word ' * 240}") for n in range(2)])
    engine = QueryEngine(retriever, model, "refine", context_window=700, num_output=50)
    stream = engine.stream(NILE)
    assert "".join(stream) == streamed
    assert (stream.answer.text, stream.answer.calls) == ("6,650 km [1].", 2)
    assert any("[2] failed" in note for note in stream.answer.notes) == isinstance(last, Exception)
