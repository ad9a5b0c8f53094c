"""What someone who traces a call sees."""

import asyncio
import uuid

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_runs import FinishedRuns, call

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers.tracing import start_span


class Events(BaseCallbackHandler):
    """Notes what happens to retriever runs."""

    def __init__(self):
        self.seen = []

    def on_retriever_start(self, serialized, query, *, run_id, **kwargs):
        self.seen.append(("start", run_id))

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.seen.append(("end", run_id))

    def on_retriever_error(self, error, *, run_id, **kwargs):
        self.seen.append((type(error).__name__, run_id))


@pytest.fixture
def trace():
    return FinishedRuns()


async def test_the_search_is_a_child_of_the_retriever(retriever, trace, mode):
    documents = await call(retriever, mode, "fermented tea", {"callbacks": [trace]}, k=2)
    (run,) = trace.roots
    assert (run.run_type, run.name) == ("retriever", "NodeGraphRetriever")
    assert run.outputs["documents"] == documents
    (search,) = run.child_runs
    assert (search.run_type, search.name) == ("chain", "search")
    assert search.inputs == {
        "query": "fermented tea",
        "group": "sentence",
        "similarity": "bm25",
        "target": "ROOT",
    }
    assert search.outputs == {"results": 2}
    assert search.error is None
    assert run.start_time <= search.start_time <= search.end_time <= run.end_time


async def test_inside_a_chain_the_search_is_below_the_retriever(retriever, trace, mode):
    chain = RunnablePassthrough() | retriever | RunnableLambda(len)
    assert await call(chain, mode, "fermented tea", {"callbacks": [trace]}) == 3
    (root,) = trace.roots
    assert [child.run_type for child in root.child_runs] == ["chain", "retriever", "chain"]
    assert [child.name for child in root.child_runs[1].child_runs] == ["search"]


async def test_work_inside_the_retriever_stays_below_it(native, trace, mode):
    class Rewriting:
        """A strategy that calls a LangChain runnable."""

        rewrite = RunnableLambda(str.lower, name="rewrite")

        def retrieve(self, query, *, top_k=None, filters=None):
            return native.retrieve(self.rewrite.invoke(query), top_k=top_k, filters=filters)

        async def aretrieve(self, query, *, top_k=None, filters=None):
            rewritten = await self.rewrite.ainvoke(query)
            return await native.aretrieve(rewritten, top_k=top_k, filters=filters)

    retriever = NodeGraphRetriever(retriever=Rewriting())
    await call(retriever, mode, "FERMENTED TEA", {"callbacks": [trace]})
    (run,) = trace.roots
    assert [child.name for child in run.child_runs] == ["rewrite", "search"]


async def test_the_run_id_of_the_config_is_the_runs(retriever, trace, mode):
    wanted = uuid.uuid4()
    await call(retriever, mode, "tea", {"run_id": wanted, "callbacks": [trace]})
    (run,) = trace.roots
    assert run.id == wanted
    assert run.child_runs[0].id != wanted


async def test_the_run_id_can_be_a_keyword(retriever, trace, mode):
    wanted = uuid.uuid4()
    await call(retriever, mode, "tea", {"callbacks": [trace]}, run_id=wanted)
    assert trace.roots[0].id == wanted


async def test_a_chains_run_id_stays_the_chains(retriever, trace, mode):
    wanted = uuid.uuid4()
    chain = retriever | RunnableLambda(len)
    await call(chain, mode, "tea", {"run_id": wanted, "run_name": "all", "callbacks": [trace]})
    (root,) = trace.roots
    assert (root.id, root.name) == (wanted, "all")
    assert root.child_runs[0].id != wanted
    assert root.child_runs[0].name == "NodeGraphRetriever"


async def test_name_tags_and_metadata_of_the_config(retriever, trace, mode):
    config = {
        "run_name": "look up",
        "tags": ["t1"],
        "metadata": {"user": "u1"},
        "callbacks": [trace],
    }
    await call(retriever, mode, "tea", config)
    (run,) = trace.roots
    (search,) = run.child_runs
    assert run.name == "look up"
    assert search.name == "search"
    for each in (run, search):
        assert each.tags == ["t1"]
        assert each.metadata["user"] == "u1"


def test_tags_and_metadata_of_the_retriever(native, trace):
    retriever = NodeGraphRetriever(
        retriever=native, tags=["mine"], metadata={"corpus": "tea"}, name="TeaSearch"
    )
    retriever.invoke("tea", {"callbacks": [trace]})
    (run,) = trace.roots
    assert run.name == "TeaSearch"
    assert run.tags == ["mine"]
    assert run.metadata["corpus"] == "tea"


async def test_an_error_is_reported_once_and_raised(retriever, trace, mode):
    events = Events()
    with pytest.raises(ValueError, match="k must be 1"):
        await call(retriever, mode, "tea", {"callbacks": [events, trace]}, k=0)
    assert [what for what, _ in events.seen] == ["start", "ValueError"]
    assert "k must be 1" in trace.roots[0].error


async def test_a_typo_is_reported_as_an_error(retriever, mode):
    events = Events()
    with pytest.raises(TypeError):
        await call(retriever, mode, "tea", {"callbacks": [events]}, kk=1)
    assert [what for what, _ in events.seen] == ["start", "TypeError"]


async def test_a_cancelled_call_is_reported_and_raises(trace):
    class Endless:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise NotImplementedError

        async def aretrieve(self, query, *, top_k=None, filters=None):
            with start_span("work"):
                self.started.set()
                await asyncio.Event().wait()

    engine = Endless()
    engine.started = asyncio.Event()
    events = Events()
    later = []

    class Slow(AsyncCallbackHandler):
        async def on_retriever_error(self, error, **kwargs):
            await asyncio.sleep(0)
            later.append(error)

    retriever = NodeGraphRetriever(retriever=engine)
    config = {"callbacks": [events, trace, Slow()]}
    task = asyncio.create_task(retriever.ainvoke("tea", config))
    await engine.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (start, error) = events.seen
    assert (start[0], error[0]) == ("start", "CancelledError")
    assert start[1] == error[1]
    assert isinstance(later[0], asyncio.CancelledError)
    (run,) = trace.roots
    assert "CancelledError" in run.error
    (working,) = run.child_runs
    assert (working.name, "CancelledError" in working.error) == ("work", True)


async def test_a_call_that_times_out_is_reported():
    class Endless:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise NotImplementedError

        async def aretrieve(self, query, *, top_k=None, filters=None):
            begun.set()
            await asyncio.Event().wait()

    begun = asyncio.Event()
    events = Events()
    call = NodeGraphRetriever(retriever=Endless()).ainvoke("tea", {"callbacks": [events]})
    task = asyncio.create_task(call)
    await begun.wait()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.01)
    assert [what for what, _ in events.seen] == ["start", "CancelledError"]


@pytest.mark.parametrize("in_chain", [False, True])
async def test_stream_events(retriever, in_chain):
    runnable = retriever | RunnableLambda(len) if in_chain else retriever
    events = [each async for each in runnable.astream_events("fermented tea", version="v2")]
    by_name = {(each["event"], each["name"]): each for each in events}
    start = by_name["on_retriever_start", "NodeGraphRetriever"]
    end = by_name["on_retriever_end", "NodeGraphRetriever"]
    search = by_name["on_chain_end", "search"]
    assert start["data"]["input"] == ({"query": "fermented tea"} if in_chain else "fermented tea")
    assert [d.id for d in end["data"]["output"]] == ["tea", "rivers", "press"]
    assert search["data"]["output"] == {"results": 3}
    assert search["data"]["input"]["query"] == "fermented tea"
    assert search["parent_ids"][-1] == start["run_id"] == end["run_id"]
