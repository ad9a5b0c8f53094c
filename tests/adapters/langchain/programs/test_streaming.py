"""Streaming and async: pieces of a chain, events of a stream, and batches."""

import asyncio

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnablePassthrough
from support.langchain_programs import (
    PROMPT,
    QUESTIONS,
    RETRIEVERS,
    THEIRS,
    check,
    joined,
    model,
    renamed,
)

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


def chain(make):
    step = {"context": make() | joined, "input": RunnablePassthrough()}
    return step | PROMPT | model("Green tea is steamed.") | StrOutputParser()


def pieces(make, config):
    async def collect():
        return [piece async for piece in chain(make).astream(QUESTIONS[0], config)]

    return list(chain(make).stream(QUESTIONS[0], config)), asyncio.run(collect())


def stream_events(make, config):
    async def collect():
        events = chain(make).astream_events(QUESTIONS[0], config, version="v2")
        return [
            (event["event"], renamed(event["name"]), sorted(event["data"]))
            async for event in events
        ]

    return sorted(asyncio.run(collect()))  # branches run in parallel


def batches(make, config):
    retriever = make()

    async def collect():
        found = await retriever.abatch(QUESTIONS, config)
        return found, [await retriever.ainvoke(question, config) for question in QUESTIONS]

    return retriever.batch(QUESTIONS, {**config, "max_concurrency": 2}), asyncio.run(collect())


@ours
@pytest.mark.parametrize("program", [pieces, stream_events, batches])
def test_stream_runs_as_with_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
