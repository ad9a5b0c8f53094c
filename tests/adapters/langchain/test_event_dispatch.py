"""Handlers get all events, in order, and block nothing."""

import asyncio
import logging
import threading
import time

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from langchain_runs import FinishedRuns, call, tree

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers.tracing import start_span


@pytest.fixture
def whole(nested):
    """The runs of a call without other handlers."""
    tracer = FinishedRuns()
    nested.invoke("tea", {"callbacks": [tracer]})
    return tree(tracer.roots[0])


STARTS = {
    "on_chat_model_start": "model call",
    **dict.fromkeys(["on_chain_start", "on_retriever_start"]),
}
ENDS = ("on_chain_end", "on_llm_end", "on_retriever_end")


class Diary(AsyncCallbackHandler):
    """Writes down what begins and ends, slowly."""

    def __init__(self):
        self.lines = []


class BlockingDiary(BaseCallbackHandler):
    """Does the same, and blocks the thread it is in."""

    def __init__(self):
        self.lines = []
        self.threads = set()


def noting(event):
    what = "start" if event in STARTS else "end"

    def note(self, *args, run_id, name=None, **kwargs):
        time.sleep(0.002)
        self.lines.append((what, STARTS.get(event) or name, run_id))
        self.threads.add(threading.get_ident())

    async def anote(self, *args, run_id, name=None, **kwargs):
        await asyncio.sleep(0.002)
        self.lines.append((what, STARTS.get(event) or name, run_id))

    setattr(Diary, event, anote)
    setattr(BlockingDiary, event, note)


for event in (*STARTS, *ENDS):
    noting(event)


@pytest.mark.parametrize("make", [Diary, BlockingDiary])
async def test_slow_handlers_are_told_in_order_and_block_nobody(nested, mode, make):
    diary = make()
    if mode == "sync":
        await asyncio.to_thread(nested.invoke, "tea", {"callbacks": [diary]})
    else:
        with blockbuster_ctx():
            await nested.ainvoke("tea", {"callbacks": [diary]})
    started = [name for what, name, _ in diary.lines if what == "start"]
    assert started[:5] == ["NodeGraphRetriever", "rewrite", "ask", "model call", "fuse"]
    assert started[5:] == ["search", "search", "rerank", "model"]
    names = {run_id: name for what, name, run_id in diary.lines if what == "start"}
    ended = [names[run_id] for what, _, run_id in diary.lines if what == "end"]
    assert ended[:2] == ["model call", "ask"]
    assert ended[2:-1] == ["search", "search", "fuse", "model", "rerank", "rewrite"]
    assert ended[-1] == "NodeGraphRetriever"
    if mode == "async" and make is BlockingDiary:
        assert threading.get_ident() not in diary.threads


async def test_a_handler_that_runs_something_of_its_own_is_not_waited_for_by_itself(nested):
    class Running(AsyncCallbackHandler):
        seen = 0

        async def on_chain_start(self, serialized, inputs, *, name=None, **kwargs):
            if name == "rewrite":
                await RunnableLambda(str.lower).ainvoke("X")
                Running.seen += 1

    await asyncio.wait_for(nested.ainvoke("tea", {"callbacks": [Running()]}), 300)
    assert Running.seen == 1


async def test_a_handler_that_fails_is_logged_and_harms_nobody(nested, mode, caplog, whole):
    class Failing(AsyncCallbackHandler):
        async def on_chain_start(self, *args, **kwargs):
            raise KeyError("oops")

    tracer = FinishedRuns()
    with caplog.at_level(logging.WARNING):
        await call(nested, mode, "tea", {"callbacks": [Failing(), tracer]})
    assert "oops" in caplog.text
    assert tree(tracer.roots[0]) == whole


@pytest.mark.parametrize("inline", [False, True])
async def test_a_handler_that_is_to_be_heard_is_heard(nested, mode, inline):
    class Loud(BaseCallbackHandler):
        raise_error = True
        run_inline = inline

        def on_chain_start(self, serialized, inputs, *, name=None, **kwargs):
            if name == "fuse":
                raise KeyError("loud")

    with pytest.raises(KeyError, match="loud"):
        await call(nested, mode, "tea", {"callbacks": [Loud()]})


async def test_a_thread_that_outlives_its_cancelled_call(native):
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        def retrieve(self, query, *, top_k=None, filters=None):
            with start_span("slow"):
                begun.set()
                release.wait(300)
            ended.set()
            return []

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return await asyncio.to_thread(self.retrieve, query)

    tracer = FinishedRuns()
    task = asyncio.create_task(
        NodeGraphRetriever(retriever=Slow()).ainvoke("tea", {"callbacks": [tracer, Diary()]})
    )
    assert await asyncio.to_thread(begun.wait, 300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert await asyncio.to_thread(ended.wait, 300)
    assert "CancelledError" in tracer.roots[0].error
