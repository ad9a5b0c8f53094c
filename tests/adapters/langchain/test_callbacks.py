"""Runs of a retriever, of its stages, and of the models inside."""

import ast
import asyncio
import threading
import uuid
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tracers.context import collect_runs
from support.fixed_retriever import EndlessRetriever, FunctionRetriever
from support.langchain_peers import theirs
from support.langchain_runs import FinishedRuns, call, tree

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.tracing import start_span

QUERY = "Which tea is fermented?"
SEARCH = ("search", [])
ASKED = ("ask", [("FakeListChatModel", [])])
STAGES = [("fuse", [SEARCH, SEARCH]), ("rerank", [("model", [])]), ("rewrite", [ASKED])]
WHOLE = {  # stages are runs in sync calls
    "sync": ("NodeGraphRetriever", [("rewrite search", STAGES)]),
    "async": ("NodeGraphRetriever", [("FakeListChatModel", [])]),
}


def test_search_is_a_child_run(retriever, tracer):
    documents = retriever.invoke("fermented tea", {"callbacks": [tracer]}, k=2)
    (run,) = tracer.roots
    assert (run.run_type, run.name) == ("retriever", "NodeGraphRetriever")
    assert run.outputs["documents"] == documents
    (search,) = run.child_runs
    assert (search.run_type, search.name, search.error) == ("chain", "search", None)
    names = {"query": "fermented tea", "group": "sentence", "similarity": "bm25", "target": "ROOT"}
    assert names.items() <= search.inputs.items()
    assert [d.id for d in search.outputs["documents"]] == [d.id for d in documents]


@pytest.mark.parametrize("in_chain", [False, True])
async def test_stages_and_models_are_nested_runs(nested, mode, tracer, in_chain):
    runnable = RunnablePassthrough() | nested | RunnableLambda(len) if in_chain else nested
    config = {"tags": ["t"], "metadata": {"m": 1}, "callbacks": [tracer]}
    await call(runnable, mode, QUERY, config)
    (root,) = tracer.roots
    if in_chain:
        assert [child.run_type for child in root.child_runs] == ["chain", "retriever", "chain"]
        root = root.child_runs[1]
    assert tree(root) == WHOLE[mode]
    model = root
    while model.run_type != "llm":
        model = model.child_runs[0]
        assert "t" in model.tags
        assert model.metadata["m"] == 1
        assert model.trace_id == tracer.roots[0].id


async def test_traced_results_equal_untraced(nested, mode):
    assert await call(nested, mode, QUERY, {"callbacks": [FinishedRuns()]}) == await call(
        nested, mode, QUERY
    )


async def test_stream_events_have_retriever_and_model(nested):
    with blockbuster_ctx():
        events = [each async for each in nested.astream_events("tea", version="v2")]
    names = [(each["event"], each["name"]) for each in events]
    assert names[0] == ("on_retriever_start", "NodeGraphRetriever")
    assert names[-1] == ("on_retriever_end", "NodeGraphRetriever")
    assert ("on_chat_model_end", "FakeListChatModel") in names


async def test_langchain_retriever_inside_has_own_run(graph, mode, tracer):
    fusion = FusionRetriever([theirs().as_retriever(), Retriever(graph, "ROOT")])
    await call(NodeGraphRetriever(fusion), mode, "tea", {"callbacks": [tracer]})
    assert "('VectorStoreRetriever', [])" in str(tree(tracer.roots[0]))


def test_nested_retriever_reports_stages_once(native, tracer):
    inner = NodeGraphRetriever(native, name="inner")

    def outer(query):
        with start_span("outer work"):
            return inner.invoke(query)[:0]

    NodeGraphRetriever(FunctionRetriever(outer)).invoke("tea", {"callbacks": [tracer]})
    expected = ("NodeGraphRetriever", [("outer work", [("inner", [SEARCH])])])
    assert tree(tracer.roots[0]) == expected


# Names and ids


async def test_run_id_of_config_is_the_runs(retriever, tracer, mode):
    wanted = uuid.uuid4()
    await call(retriever, mode, "tea", {"run_id": wanted, "callbacks": [tracer]})
    await call(retriever, mode, "tea", {"callbacks": [tracer]}, run_id=wanted)
    chain = retriever | RunnableLambda(len)
    await call(chain, mode, "tea", {"run_id": wanted, "run_name": "all", "callbacks": [tracer]})
    assert {run.id for run in tracer.roots} == {wanted}
    assert wanted not in {child.id for run in tracer.roots for child in run.child_runs}
    root = tracer.roots[-1]
    assert (root.name, root.child_runs[0].name) == ("all", "NodeGraphRetriever")


async def test_name_tags_and_metadata_are_the_runs(native, tracer, mode):
    settings = {"tags": ["mine"], "metadata": {"corpus": "tea"}, "name": "TeaSearch"}
    retriever = NodeGraphRetriever(native, **settings)
    await call(retriever, mode, "tea", {"callbacks": [tracer]})
    config = {"run_name": "look up", "tags": ["t1"], "metadata": {"user": "u1"}}
    await call(retriever, mode, "tea", {**config, "callbacks": [tracer]})
    own, named = tracer.roots
    assert (own.name, own.tags, own.metadata["corpus"]) == ("TeaSearch", ["mine"], "tea")
    assert (named.name, named.metadata["user"]) == ("look up", "u1")
    assert "t1" in named.tags


# Errors


async def test_error_is_reported_once_and_raised(tracer, mode):
    def down(query):
        raise ConnectionError("down")

    retriever = NodeGraphRetriever(FunctionRetriever(down))
    with pytest.raises(ConnectionError):
        await call(retriever, mode, "tea", {"callbacks": [tracer]})
    (root,) = tracer.roots
    assert "down" in root.error


async def test_cancelled_call_reports_an_error(tracer):
    endless, later = EndlessRetriever(), []

    class Slow(AsyncCallbackHandler):
        async def on_retriever_error(self, error, **kwargs):
            await asyncio.sleep(0)
            later.append(error)

    config = {"callbacks": [tracer, Slow()]}
    task = asyncio.create_task(NodeGraphRetriever(endless).ainvoke("tea", config))
    await endless.started.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [type(error) for error in later] == [asyncio.CancelledError]
    (root,) = tracer.roots
    assert "CancelledError" in root.error


def test_failed_stage_is_a_run_with_an_error(native, tracer):
    def failing(query):
        with start_span("work"):
            raise ConnectionError("gone")

    fusion = FusionRetriever([native, FunctionRetriever(failing)], on_error="skip")
    assert len(NodeGraphRetriever(fusion).invoke("tea", {"callbacks": [tracer]})) == 3
    (root,) = tracer.roots
    assert root.error is None
    (failed,) = (each for each in root.child_runs[0].child_runs if each.name == "work")
    assert "gone" in failed.error


# Concurrency and handlers


async def test_max_concurrency_limits_branches(mode):
    running, most = [], []

    def branch(query):
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.01)
        running.pop()
        return []

    fusion = NodeGraphRetriever(FusionRetriever([FunctionRetriever(branch) for _ in range(4)]))
    await call(fusion, mode, "tea", {"max_concurrency": 1})
    assert max(most) == 1


async def test_concurrent_calls_have_own_runs(nested):
    tracers = [FinishedRuns() for _ in range(20)]
    await asyncio.gather(*(nested.ainvoke("tea", {"callbacks": [tracer]}) for tracer in tracers))
    assert all(tree(tracer.roots[0]) == WHOLE["async"] for tracer in tracers)


async def test_batch_has_a_run_for_each_query(retriever, tracer, mode):
    way = {"sync": "batch", "async": "abatch"}[mode]
    config = {"callbacks": [tracer]}
    results = getattr(retriever, way)(["fermented tea", "rivers"], config)
    results = results if mode == "sync" else await results
    assert [found[0].id for found in results] == ["tea", "rivers"]
    assert [run.name for run in tracer.roots] == ["NodeGraphRetriever"] * 2


async def test_handler_of_context_is_used(retriever, mode):
    with collect_runs() as heard:
        await call(retriever, mode, "tea")
    assert [run.name for run in heard.traced_runs] == ["NodeGraphRetriever"]


def test_private_interfaces_of_langchain_are_used_in_one_function():
    folder = Path(__file__).parents[3] / "adapters" / "langchain"
    users = []
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                code = ast.unparse(function)
                if "var_child_runnable_config" in code or "_call_with_config" in code:
                    users.append((path.name, function.name))
    assert users == [("callbacks.py", "set_config")]
