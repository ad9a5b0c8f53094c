"""Stages of any retriever are runs, where they happen."""

import asyncio
import threading

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_runs import FinishedRuns, call, tree

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import FusionRetriever, trace
from nodekin.retrievers.tracing import start_span

SEARCH = ("search", [])
FUSED = ("fuse", [SEARCH, SEARCH])
ASKED = ("ask", [("FakeListChatModel", [])])
WHOLE = (
    "NodeGraphRetriever",
    [
        (
            "rewrite",
            [ASKED, FUSED, ("rerank", [("model", [])])],
        )
    ],
)


@pytest.mark.parametrize("in_chain", [False, True])
async def test_every_stage_and_model_call_is_in_its_place(nested, mode, in_chain):
    runnable = RunnablePassthrough() | nested | RunnableLambda(len) if in_chain else nested
    tracer = FinishedRuns()
    await call(runnable, mode, "Which tea is fermented?", {"callbacks": [tracer]})
    (root,) = tracer.roots
    if in_chain:
        assert [each.name for each in root.child_runs][1] == "NodeGraphRetriever"
        root = root.child_runs[1]
    assert tree(root) == WHOLE
    (rewrite,) = root.child_runs
    assert rewrite.inputs == {"query": "Which tea is fermented?"}
    assert rewrite.outputs == {"rewritten": "fermented 茶 tea"}
    ask = rewrite.child_runs[0]
    assert ask.inputs == {"model": "fake", "prompt": "Which tea is fermented?"}
    assert ask.outputs == {"answer": "fermented 茶 tea"}
    assert ask.child_runs[0].run_type == "llm"
    assert len({run.trace_id for run in (root, rewrite, ask, ask.child_runs[0])}) == 1
    assert ask.dotted_order.startswith(rewrite.dotted_order)


async def test_tags_and_metadata_are_inherited_but_not_names_and_ids(nested, mode):
    tracer = FinishedRuns()
    config = {"tags": ["t"], "metadata": {"m": 1}, "run_name": "outer", "callbacks": [tracer]}
    await call(nested, mode, "tea", config)
    (root,) = tracer.roots
    (rewrite,) = root.child_runs
    assert (root.name, rewrite.name) == ("outer", "rewrite")
    for run in (rewrite, rewrite.child_runs[0], rewrite.child_runs[0].child_runs[0]):
        assert "t" in run.tags
        assert run.metadata["m"] == 1


@pytest.mark.parametrize("in_chain", [False, True])
async def test_stream_events(nested, in_chain):
    runnable = nested | RunnableLambda(len) if in_chain else nested
    with blockbuster_ctx():
        events = [each async for each in runnable.astream_events("tea", version="v2")]
    kinds = [each["event"] for each in events]
    names = {each["run_id"]: each["name"] for each in events}
    for name, number in (("rewrite", 1), ("ask", 1), ("fuse", 1), ("search", 2), ("rerank", 1)):
        kind = "retriever" if name in ("fuse", "search") else "chain"
        for event in (f"on_{kind}_start", f"on_{kind}_end"):
            assert [(e["event"], e["name"]) for e in events].count((event, name)) == number
    assert kinds.count("on_chat_model_start") == kinds.count("on_chat_model_end") == 1
    ids = {each["name"]: each["run_id"] for each in events}
    above = {
        each["name"]: [names[i] for i in each["parent_ids"]][-3:]
        for each in events
        if each["event"].endswith("_start")
    }
    assert above["FakeListChatModel"] == ["NodeGraphRetriever", "rewrite", "ask"]
    assert above["search"] == ["NodeGraphRetriever", "rewrite", "fuse"]
    assert above["model"] == ["NodeGraphRetriever", "rewrite", "rerank"]
    assert ids["search"] != ids["fuse"]
    order = [(each["event"], each["name"]) for each in events]
    before = [
        ("on_retriever_start", "NodeGraphRetriever"),
        ("on_chain_start", "rewrite"),
        ("on_chain_start", "ask"),
        ("on_chat_model_start", "FakeListChatModel"),
        ("on_chat_model_end", "FakeListChatModel"),
        ("on_chain_end", "ask"),
        ("on_retriever_start", "fuse"),
        ("on_retriever_end", "fuse"),
        ("on_chain_start", "rerank"),
        ("on_chain_end", "rerank"),
        ("on_chain_end", "rewrite"),
        ("on_retriever_end", "NodeGraphRetriever"),
    ]
    assert [each for each in order if each in before] == before


class Barrier:
    """Two of it run only when both do."""

    def __init__(self, name, barrier):
        self.name, self.barrier = name, barrier

    def retrieve(self, query, *, top_k=None, filters=None):
        with start_span("branch", of=self.name):
            self.barrier.wait(300)
            with start_span("within", of=self.name):
                RunnableLambda(str.lower, name=f"lower {self.name}").invoke(query)
                self.barrier.wait(300)
        return []

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await asyncio.to_thread(self.retrieve, query)


async def test_branches_at_once_are_below_their_own(mode):
    barrier = threading.Barrier(2)
    fusion = FusionRetriever([Barrier("a", barrier), Barrier("b", barrier)])
    tracer = FinishedRuns()
    await call(NodeGraphRetriever(retriever=fusion), mode, "tea", {"callbacks": [tracer]})
    (root,) = tracer.roots
    (fuse,) = root.child_runs
    assert sorted(each.inputs["of"] for each in fuse.child_runs) == ["a", "b"]
    for branch in fuse.child_runs:
        (within,) = branch.child_runs
        (lower,) = within.child_runs
        assert within.inputs == branch.inputs
        assert lower.name == f"lower {branch.inputs['of']}"


async def test_a_stage_that_fails_is_a_run_with_an_error(native, mode):
    class Failing:
        def retrieve(self, query, *, top_k=None, filters=None):
            with start_span("work"):
                raise ConnectionError("gone")

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return self.retrieve(query)

    tracer = FinishedRuns()
    fusion = FusionRetriever([native, Failing()], on_error="skip")
    found = await call(NodeGraphRetriever(retriever=fusion), mode, "tea", {"callbacks": [tracer]})
    assert len(found) == 3
    (root,) = tracer.roots
    assert root.error is None
    failed = [each for each in root.child_runs[0].child_runs if each.name == "work"]
    assert "gone" in failed[0].error
    with pytest.raises(ConnectionError):
        await call(NodeGraphRetriever(retriever=Failing()), mode, "tea", {"callbacks": [tracer]})
    assert "gone" in tracer.roots[1].error
    assert "gone" in tracer.roots[1].child_runs[0].error


async def test_a_retriever_within_a_retriever_is_told_once(native, mode):
    class Outer:
        inner = NodeGraphRetriever(retriever=native, name="inner")

        def retrieve(self, query, *, top_k=None, filters=None):
            with start_span("outer work"):
                self.inner.invoke(query)
            return []

        async def aretrieve(self, query, *, top_k=None, filters=None):
            with start_span("outer work"):
                await self.inner.ainvoke(query)
            return []

    tracer = FinishedRuns()
    await call(NodeGraphRetriever(retriever=Outer()), mode, "tea", {"callbacks": [tracer]})
    (root,) = tracer.roots
    expected = ("NodeGraphRetriever", [("outer work", [("inner", [SEARCH])])])
    assert tree(root) == expected


async def test_a_trace_of_nodekins_own_goes_on_beside(nested, mode):
    with trace() as traced:
        await call(nested, mode, "tea", {"callbacks": [FinishedRuns()]})
    assert [each.name for each in traced.children] == ["rewrite"]


async def test_where_nobody_is_told_nobody_observes(mode):
    class Nosy:
        def retrieve(self, query, *, top_k=None, filters=None):
            with start_span("work") as done, start_span("within"):
                pass
            self.seen = done
            return []

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return self.retrieve(query)

    engine = Nosy()
    await call(NodeGraphRetriever(retriever=engine), mode, "tea")
    assert (engine.seen.children, engine.seen.seconds) == ([], None)


async def test_many_at_once_keep_apart(nested):
    await nested.ainvoke("tea")  # a retrieval during which another one builds begins anew
    tracers = [FinishedRuns() for _ in range(20)]
    await asyncio.gather(*(nested.ainvoke("tea", {"callbacks": [tracer]}) for tracer in tracers))
    assert all(tree(tracer.roots[0]) == WHOLE for tracer in tracers)
