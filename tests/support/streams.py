"""Read streamed answers until they are complete."""

from nodekin.retrievers.answers.answer import Answer
from nodekin.retrievers.answers.stream import AnswerStream


def finish(stream: AnswerStream) -> Answer:
    """Read a stream until it ends, and return the complete answer."""
    "".join(stream)
    return stream.answer


async def afinish(stream: AnswerStream) -> Answer:
    """Async version of ``finish``."""
    async for _ in stream:
        pass
    return stream.answer
