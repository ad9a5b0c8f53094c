import asyncio
import gc

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
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


def test_broken_stream_raises_and_keeps_the_text(lines, breaking) -> None:
    for on_error in ("raise", "extract"):  # streamed text stays
        stream = QueryEngine(lines, breaking, on_error=on_error).stream(NILE)
        streamed = []
        with pytest.raises(AnswerError, match="the line is dead") as caught:
            streamed.extend(stream)
        assert "".join(streamed) == "The Nile is 6,6"
        assert stream.answer.text == caught.value.answer.text == "The Nile is 6,6"
        assert stream.sources
        assert not stream.ended


async def test_an_async_stream_that_breaks_does_the_same(lines, breaking) -> None:
    breaking.chunk = 100

    async def astream(prompt: str):
        for chunk in ("The Nile ", "is 6,6"):
            yield chunk
        raise RuntimeError("the line is dead")

    breaking.astream = astream
    stream = QueryEngine(lines, breaking).astream(NILE)
    streamed = [await anext(stream), await anext(stream)]
    with pytest.raises(AnswerError, match="the line is dead"):
        await anext(stream)
    assert "".join(streamed) == stream.answer.text == "The Nile is 6,6"


def test_a_stream_can_be_left_early(lines, scripted) -> None:
    ended = []

    class Model(scripted):
        def stream(self, prompt):
            try:
                yield from super().stream(prompt)
            finally:
                ended.append(True)

    model = Model(lambda _: "It is 6,650 km [1].")
    with QueryEngine(lines, model).stream(NILE) as stream:
        next(stream)
    assert ended == [True]
    assert (stream.answer.text, stream.ended) == ("It", False)
    with pytest.raises(StopIteration):
        next(stream)


async def test_an_async_stream_can_be_left_early(lines, scripted) -> None:
    model = scripted(lambda _: "It is 6,650 km [1].")
    async with QueryEngine(lines, model).astream(NILE) as stream:
        first = await anext(stream)
    assert first == "It"
    assert not stream.ended
    assert len(asyncio.all_tasks()) == 1
    answer = await QueryEngine(lines, model).astream(NILE).finish()
    assert answer.text == "It is 6,650 km [1]."


def test_a_stream_that_nobody_reads_asks_nothing(lines, scripted) -> None:
    model = scripted(lambda _: "It is 6,650 km [1].")
    stream = QueryEngine(lines, model).stream(NILE)
    with pytest.raises(TypeError):
        QueryEngine(lines, model).stream(5)
    del stream
    gc.collect()
    assert model.prompts == []


def test_marks_and_thoughts_are_never_streamed(lines, scripted) -> None:
    model = scripted(lambda _: "<think>What?\nNO_ANSWER?</think>\nAnswer: It is long [1].", 1)
    assert "".join(QueryEngine(lines, model).stream(NILE)) == "It is long [1]."
    model = scripted(lambda _: "They do not tell. NO_ANSWER", 1)
    stream = QueryEngine(lines, model).stream(NILE)
    assert "".join(stream) == "They do not tell."
    assert not stream.answer.answered


def test_different_answer_follows_the_streamed_text(scripted) -> None:
    # The last call of refine writes in words, and by the mark, that it does not help.
    def reply(prompt: str) -> str:
        return "They do not help. NO_ANSWER" if "answer so far" in prompt else "6,650 km [1]."

    graph = NodeGraph(progress=False)
    graph.add([f"The Nile {n}. {'word ' * 240}" for n in range(2)])
    retriever = Retriever(graph, "ROOT", "bm25")
    engine = QueryEngine(
        retriever,
        scripted(reply),
        "refine",
        context_window=700,
        num_output=50,
    )
    stream = engine.stream("How long is the Nile?")
    streamed = "".join(stream)
    assert stream.answer.calls == 2
    assert stream.answer.text == "6,650 km [1]."
    assert streamed == "They do not help.\n\n6,650 km [1]."


def test_failed_last_call_keeps_the_earlier_answer(scripted) -> None:
    def reply(prompt: str):
        return RuntimeError("down") if "answer so far" in prompt else "6,650 km [1]."

    graph = NodeGraph(progress=False)
    graph.add([f"The Nile {n}. {'word ' * 240}" for n in range(2)])
    retriever = Retriever(graph, "ROOT", "bm25")
    engine = QueryEngine(
        retriever,
        scripted(reply),
        "refine",
        context_window=700,
        num_output=50,
    )
    stream = engine.stream("How long is the Nile?")
    assert "".join(stream) == "6,650 km [1]."
    assert stream.answer.calls == 2
    assert "[2] failed" in stream.answer.notes[0]
