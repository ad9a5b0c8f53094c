"""Callbacks and tracing: the tree of runs, names and tags, errors, and listeners."""

import uuid

import pytest
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from support.langchain_programs import QUESTIONS, RETRIEVERS, THEIRS, check, joined, renamed
from support.letters import Letters

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


def tree(run):
    """A run without the stages of a retriever."""
    children = [] if run.run_type == "retriever" else run.child_runs
    return (
        renamed(run.name),
        run.run_type,
        sorted(run.inputs),
        sorted(run.outputs),
        [tree(c) for c in children],
    )


def runs(make, config):
    collector = RunCollectorCallbackHandler()
    chain = make() | joined | RunnableLambda(str.upper, name="upper")
    chain.invoke(QUESTIONS[0], {"callbacks": [collector], "run_name": "tea", "tags": ["x"]})
    return [tree(run) for run in collector.traced_runs]


def named_runs(make, config):
    collector = RunCollectorCallbackHandler()
    run_id = uuid.UUID(int=7)
    retriever = make().with_config(run_name="my search", tags=["mine"], metadata={"user": 1})
    retriever.invoke(QUESTIONS[0], {"callbacks": [collector]}, run_id=run_id)
    (run,) = collector.traced_runs
    return run.name, run.id, "mine" in run.tags, run.extra["metadata"]["user"], run.inputs


class Broken(Letters):
    def embed_query(self, text):
        raise ConnectionError("the model is down")


def failures(make, config):
    chain = make(embedding=Broken()) | joined
    fallback = chain.with_fallbacks([RunnableLambda(lambda question: "no model")])
    with pytest.raises(Exception, match="the model is down"):
        chain.invoke(QUESTIONS[0], config)
    return fallback.invoke(QUESTIONS[0], config)


def listeners(make, config):
    seen = []
    retriever = make().with_listeners(
        on_start=lambda run: seen.append(("start", run.run_type, run.inputs)),
        on_end=lambda run: seen.append(("end", run.run_type, sorted(run.outputs))),
    )
    retriever.invoke(QUESTIONS[0], config)
    return seen


@ours
@pytest.mark.parametrize("program", [runs, named_runs, failures, listeners])
def test_traces_equal_those_of_langchains_retriever(program, ours):
    check(program, THEIRS, ours)
