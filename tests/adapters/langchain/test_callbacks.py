"""What a handler, a trace or a page that shows sources sees of a call."""

import asyncio
import logging
import threading
import time
import uuid
from functools import partial

import pytest
from blockbuster import blockbuster_ctx
from fixed_retriever import EndlessRetriever, FunctionRetriever
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers.context import collect_runs
from langchain_peers import LOADED, theirs
from langchain_runs import FinishedRuns, call, tree
from letters import Letters

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.retrievers import FusionRetriever, QueryEngine, Retriever, trace
from nodekin.retrievers.strategies.strategy_registry import make_strategy
from nodekin.retrievers.tracing import start_span

QUERY = "Which tea is fermented?"
SEARCH = ("search", [])
ASKED = ("ask", [("FakeListChatModel", [])])
STAGES = [ASKED, ("fuse", [SEARCH, SEARCH]), ("rerank", [("model", [])])]
WHOLE = ("NodeGraphRetriever", [("rewrite", STAGES)])


class Retrievals(BaseCallbackHandler):
    """Notes what happens to retriever runs, as pages that show sources do."""

    latest = None

    def __init__(self):
        self.queries, self.events, self.ended = {}, [], []
        Retrievals.latest = self

    def on_retriever_start(self, serialized, query, *, run_id, name=None, **kwargs):
        self.queries[run_id] = (name, query)
        self.events.append("start")

    def on_retriever_end(self, documents, *, run_id, **kwargs):
        self.ended.append((*self.queries[run_id], documents))
        self.events.append("end")

    def on_retriever_error(self, error, *, run_id, **kwargs):
        assert run_id in self.queries
        self.events.append(type(error).__name__)


async def test_the_search_is_a_child_of_the_retriever(retriever, tracer, mode):
    documents = await call(retriever, mode, "fermented tea", {"callbacks": [tracer]}, k=2)
    (run,) = tracer.roots
    assert (run.run_type, run.name) == ("retriever", "NodeGraphRetriever")
    assert run.outputs["documents"] == documents
    (search,) = run.child_runs
    assert (search.run_type, search.name, search.error) == ("chain", "search", None)
    names = {"query": "fermented tea", "group": "sentence", "similarity": "bm25", "target": "ROOT"}
    assert search.inputs == names
    assert search.outputs == {"results": 2, "documents": documents}
    assert run.start_time <= search.start_time <= search.end_time <= run.end_time


@pytest.mark.parametrize("in_chain", [False, True])
async def test_every_stage_and_model_call_is_in_its_place(nested, mode, tracer, in_chain):
    runnable = RunnablePassthrough() | nested | RunnableLambda(len) if in_chain else nested
    config = {"tags": ["t"], "metadata": {"m": 1}, "callbacks": [tracer]}
    await call(runnable, mode, QUERY, config)
    (root,) = tracer.roots
    if in_chain:
        assert [child.run_type for child in root.child_runs] == ["chain", "retriever", "chain"]
        root = root.child_runs[1]
    assert tree(root) == WHOLE
    (rewrite,) = root.child_runs
    assert (rewrite.inputs, rewrite.outputs) == (
        {"query": QUERY},
        {"rewritten": "fermented 茶 tea"},
    )
    ask = rewrite.child_runs[0]
    assert ask.inputs == {"model": "fake", "prompt": QUERY}
    assert ask.outputs == {"answer": "fermented 茶 tea"}
    (model,) = ask.child_runs
    assert model.run_type == "llm"
    assert len({run.trace_id for run in (root, rewrite, ask, model)}) == 1
    assert ask.dotted_order.startswith(rewrite.dotted_order)
    for run in (rewrite, ask, model):
        assert "t" in run.tags
        assert run.metadata["m"] == 1


@pytest.mark.parametrize("in_chain", [False, True])
async def test_stream_events(nested, in_chain):
    runnable = nested | RunnableLambda(len) if in_chain else nested
    with blockbuster_ctx():
        events = [each async for each in runnable.astream_events("tea", version="v2")]
    order = [(each["event"], each["name"]) for each in events]
    for name, number in (("rewrite", 1), ("ask", 1), ("fuse", 1), ("search", 2), ("rerank", 1)):
        for event in ("on_chain_start", "on_chain_end"):
            assert order.count((event, name)) == number
    names = {each["run_id"]: each["name"] for each in events}
    above = {
        each["name"]: [names[i] for i in each["parent_ids"]][-3:]
        for each in events
        if each["event"].endswith("_start")
    }
    assert above["FakeListChatModel"] == ["NodeGraphRetriever", "rewrite", "ask"]
    assert above["search"] == ["NodeGraphRetriever", "rewrite", "fuse"]
    assert above["model"] == ["NodeGraphRetriever", "rewrite", "rerank"]
    before = [
        *[("on_retriever_start", "NodeGraphRetriever"), ("on_chain_start", "rewrite")],
        *[("on_chain_start", "ask"), ("on_chat_model_start", "FakeListChatModel")],
        *[("on_chat_model_end", "FakeListChatModel"), ("on_chain_end", "ask")],
        *[("on_chain_start", "fuse"), ("on_chain_end", "fuse")],
        *[("on_chain_start", "rerank"), ("on_chain_end", "rerank"), ("on_chain_end", "rewrite")],
        ("on_retriever_end", "NodeGraphRetriever"),
    ]
    assert [each for each in order if each in before] == before


# One retriever run for each retriever of the user's


async def test_a_default_search_is_one_retriever_run_without_a_probe(mode, tracer):
    model = Letters()
    retriever = NodeGraphRetriever.from_documents(LOADED, model)
    seen = Retrievals()
    documents = await call(retriever, mode, "green tea", {"callbacks": [seen, tracer]})
    assert seen.ended == [("NodeGraphRetriever", "green tea", documents)]
    assert model.queries + model.async_queries == ["green tea"]
    runs = tracer.roots
    while runs:
        assert {run.inputs.get("query") for run in runs} <= {"green tea", None}
        runs = [child for run in runs for child in run.child_runs]


async def test_a_strategy_is_one_and_a_retriever_of_langchain_another(loaded_graph, mode, tracer):
    """What each phrasing found is in the run of its search."""
    model = FakeListChatModel(responses=["steamed tea\nroasted beans"])
    strategy = make_strategy("multi_query", Retriever(loaded_graph, "ROOT", "bm25"), model)
    seen = Retrievals()
    config = {"callbacks": [seen, tracer]}
    documents = await call(NodeGraphRetriever(retriever=strategy), mode, "drinks", config)
    assert seen.ended == [("NodeGraphRetriever", "drinks", documents)]
    search = tracer.roots[0].child_runs[0].child_runs[-1]
    assert [d.id for d in search.outputs["documents"]] == ["1", "2", "4"]
    fusion = FusionRetriever([theirs().as_retriever(), Retriever(loaded_graph, "ROOT")])
    seen = Retrievals()
    await call(NodeGraphRetriever(retriever=fusion), mode, "tea", {"callbacks": [seen]})
    names = ["VectorStoreRetriever", "NodeGraphRetriever"]
    assert [(name, query) for name, query, _ in seen.ended] == [(name, "tea") for name in names]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_query_engine_has_one_with_its_documents(loaded_graph, way):
    model = FakeListChatModel(responses=["It is steamed [1]."])
    search = FusionRetriever([Retriever(loaded_graph, "ROOT", "bm25", top_k=2)])
    answers = NodeGraphQueryEngine(engine=QueryEngine(search, model), output="dict")
    seen = Retrievals()
    answer = await call(answers, way, "green tea", {"callbacks": [seen]})
    assert seen.ended == [("retrieve", "green tea", answer["context"])]
    events = answers.astream_events("green tea", version="v2", include_types=["retriever"])
    assert [event["event"] async for event in events] == ["on_retriever_start", "on_retriever_end"]


async def test_a_search_that_fails_ends_its_run(mode):
    def down(query):
        raise ConnectionError("down")

    search = FunctionRetriever(down)
    answers = NodeGraphQueryEngine(engine=QueryEngine(search, FakeListChatModel(responses=["x"])))
    for runnable in (answers, NodeGraphRetriever(retriever=search)):
        seen = Retrievals()
        with pytest.raises(ConnectionError):
            await call(runnable, mode, "tea", {"callbacks": [seen]})
        assert seen.events == ["start", "ConnectionError"]


async def test_a_retriever_within_a_retriever_is_told_once(native, mode, tracer):
    class Outer:
        inner = NodeGraphRetriever(retriever=native, name="inner")

        def retrieve(self, query, *, top_k=None, filters=None):
            with start_span("outer work"):
                return self.inner.invoke(query)[:0]

        async def aretrieve(self, query, *, top_k=None, filters=None):
            with start_span("outer work"):
                return (await self.inner.ainvoke(query))[:0]

    await call(NodeGraphRetriever(retriever=Outer()), mode, "tea", {"callbacks": [tracer]})
    expected = ("NodeGraphRetriever", [("outer work", [("inner", [SEARCH])])])
    assert tree(tracer.roots[0]) == expected


# Names and ids


async def test_the_run_id_is_the_runs(retriever, tracer, mode):
    wanted = uuid.uuid4()
    await call(retriever, mode, "tea", {"run_id": wanted, "callbacks": [tracer]})
    await call(retriever, mode, "tea", {"callbacks": [tracer]}, run_id=wanted)
    chain = retriever | RunnableLambda(len)
    await call(chain, mode, "tea", {"run_id": wanted, "run_name": "all", "callbacks": [tracer]})
    assert {run.id for run in tracer.roots} == {wanted}
    assert wanted not in {child.id for run in tracer.roots for child in run.child_runs}
    root = tracer.roots[-1]
    assert (root.name, root.child_runs[0].name) == ("all", "NodeGraphRetriever")


async def test_name_tags_and_metadata(native, tracer, mode):
    settings = {"tags": ["mine"], "metadata": {"corpus": "tea"}, "name": "TeaSearch"}
    retriever = NodeGraphRetriever(retriever=native, **settings)
    await call(retriever, mode, "tea", {"callbacks": [tracer]})
    config = {"run_name": "look up", "tags": ["t1"], "metadata": {"user": "u1"}}
    await call(retriever, mode, "tea", {**config, "callbacks": [tracer]})
    own, named = tracer.roots
    assert (own.name, own.tags, own.metadata["corpus"]) == ("TeaSearch", ["mine"], "tea")
    (search,) = named.child_runs
    assert (named.name, search.name) == ("look up", "search")
    for run in (named, search):
        assert "t1" in run.tags
        assert run.metadata["user"] == "u1"


# Errors


@pytest.mark.parametrize(("wrong", "error"), [({"k": 0}, ValueError), ({"kk": 1}, TypeError)])
async def test_an_error_is_reported_once_and_raised(retriever, tracer, mode, wrong, error):
    seen = Retrievals()
    with pytest.raises(error):
        await call(retriever, mode, "tea", {"callbacks": [seen, tracer]}, **wrong)
    assert seen.events == ["start", error.__name__]
    assert tracer.roots[0].error


async def test_a_cancelled_call_is_reported_and_raises(tracer):
    endless, later = EndlessRetriever(), []

    class Slow(AsyncCallbackHandler):
        async def on_retriever_error(self, error, **kwargs):
            await asyncio.sleep(0)
            later.append(error)

    seen = Retrievals()
    retriever = NodeGraphRetriever(retriever=endless)
    task = asyncio.create_task(retriever.ainvoke("tea", {"callbacks": [seen, tracer, Slow()]}))
    await endless.started.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen.events == ["start", "CancelledError"]
    assert isinstance(later[0], asyncio.CancelledError)
    (run,) = tracer.roots
    (work,) = run.child_runs
    assert ["CancelledError" in each.error for each in (run, work)] == [True, True]


async def test_a_stage_that_fails_is_a_run_with_an_error(native, mode, tracer):
    def failing(query):
        with start_span("work"):
            raise ConnectionError("gone")

    fusion = FusionRetriever([native, FunctionRetriever(failing)], on_error="skip")
    found = await call(NodeGraphRetriever(retriever=fusion), mode, "tea", {"callbacks": [tracer]})
    assert len(found) == 3
    (root,) = tracer.roots
    assert root.error is None
    (failed,) = (each for each in root.child_runs[0].child_runs if each.name == "work")
    assert "gone" in failed.error


# Branches, and who listens


async def test_branches_at_once_are_below_their_own(mode, tracer):
    barrier = threading.Barrier(2)  # either branch runs only when both do

    def branch(name, query):
        with start_span("branch", of=name):
            barrier.wait(300)
            with start_span("within", of=name):
                RunnableLambda(str.lower, name=f"lower {name}").invoke(query)
                barrier.wait(300)
        return []

    fusion = FusionRetriever([FunctionRetriever(partial(branch, name)) for name in "ab"])
    await call(NodeGraphRetriever(retriever=fusion), mode, "tea", {"callbacks": [tracer]})
    (fuse,) = tracer.roots[0].child_runs
    assert sorted(each.inputs["of"] for each in fuse.child_runs) == ["a", "b"]
    for branch in fuse.child_runs:
        (within,) = branch.child_runs
        (lower,) = within.child_runs
        assert within.inputs == branch.inputs
        assert lower.name == f"lower {branch.inputs['of']}"


async def test_a_trace_of_nodekins_own_goes_on_beside(nested, mode, tracer):
    with trace() as traced:
        await call(nested, mode, "tea", {"callbacks": [tracer]})
    assert [each.name for each in traced.children] == ["rewrite"]


async def test_where_nobody_is_told_nobody_observes(mode):
    seen = []

    def nosy(query):
        with start_span("work") as done, start_span("within"):
            seen.append(done)
        return []

    await call(NodeGraphRetriever(retriever=FunctionRetriever(nosy)), mode, "tea")
    assert [(span.children, span.seconds) for span in seen] == [([], None)]


async def test_many_at_once_keep_apart(nested):
    await nested.ainvoke("tea")  # a retrieval during which another one builds begins anew
    tracers = [FinishedRuns() for _ in range(20)]
    await asyncio.gather(*(nested.ainvoke("tea", {"callbacks": [tracer]}) for tracer in tracers))
    assert all(tree(tracer.roots[0]) == WHOLE for tracer in tracers)


async def test_a_handler_of_the_context_hears(retriever, mode):
    silent = await call(retriever, mode, "tea")
    with collect_runs() as heard:
        assert await call(retriever, mode, "tea") == silent
    assert [run.name for run in heard.traced_runs] == ["NodeGraphRetriever"]


# Handlers get all events, in order, and block nothing


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


async def test_a_handler_that_fails_is_logged_and_harms_nobody(nested, mode, caplog):
    class Failing(AsyncCallbackHandler):
        async def on_chain_start(self, *args, **kwargs):
            raise KeyError("oops")

    tracer = FinishedRuns()
    with caplog.at_level(logging.WARNING):
        await call(nested, mode, "tea", {"callbacks": [Failing(), tracer]})
    assert "oops" in caplog.text
    assert tree(tracer.roots[0]) == WHOLE


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

    def slow(query):
        with start_span("slow"):
            begun.set()
            release.wait(300)
        ended.set()
        return []

    tracer, retriever = FinishedRuns(), NodeGraphRetriever(retriever=FunctionRetriever(slow))
    task = asyncio.create_task(retriever.ainvoke("tea", {"callbacks": [tracer, Diary()]}))
    assert await asyncio.to_thread(begun.wait, 300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert await asyncio.to_thread(ended.wait, 300)
    assert "CancelledError" in tracer.roots[0].error
