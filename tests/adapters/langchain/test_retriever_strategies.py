"""nodekin's query strategies in LangChain, with LangChain's models."""

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.language_models import FakeListChatModel
from langchain_runs import FinishedRuns

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers.strategies.hyde import HyDERetriever
from nodekin.retrievers.strategies.multi_query import MultiQueryRetriever
from nodekin.retrievers.strategies.multi_step import MultiStepRetriever
from nodekin.retrievers.strategies.rewrite import QueryRewriteRetriever
from nodekin.retrievers.strategies.sub_question import SubQuestionRetriever

QUESTION = "Which tea is fermented?"
ANSWERS = {
    QueryRewriteRetriever: ["fermented tea"],
    MultiQueryRetriever: ["1. fermented tea\n2. black tea"],
    HyDERetriever: ["Black tea is fermented."],
    SubQuestionRetriever: ["1. What is green tea?\n2. What is black tea?"],
    MultiStepRetriever: ["What is black tea?", "yes"],
}


def runs_below(run):
    for child in run.child_runs:
        yield run, child
        yield from runs_below(child)


@pytest.fixture(params=ANSWERS, ids=lambda kind: kind.__name__)
def retriever(request, native):
    model = FakeListChatModel(responses=ANSWERS[request.param] * 20)
    return NodeGraphRetriever(retriever=request.param(native, model))


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_every_call_of_the_model_is_below_its_stage(retriever, mode):
    tracer = FinishedRuns()
    if mode == "sync":
        found = retriever.invoke(QUESTION, {"callbacks": [tracer]})
    else:
        with blockbuster_ctx():
            found = await retriever.ainvoke(QUESTION, {"callbacks": [tracer]})
    assert found
    (root,) = tracer.roots
    pairs = list(runs_below(root))
    models = [(above.name, run.run_type) for above, run in pairs if run.run_type == "llm"]
    assert models
    assert set(models) == {("ask", "llm")}
    asks = [run for _, run in pairs if run.name == "ask"]
    assert all(ask.child_runs for ask in asks)
    assert any(run.name == "search" for _, run in pairs)
    assert {run.trace_id for _, run in pairs} == {root.id}


async def test_in_events(retriever):
    events = [each async for each in retriever.astream_events(QUESTION, version="v2")]
    names = {each["run_id"]: each["name"] for each in events}
    models = [each for each in events if each["event"] == "on_chat_model_start"]
    assert models
    for each in models:
        above = [names[run_id] for run_id in each["parent_ids"]]
        assert (above[0], above[-1]) == ("NodeGraphRetriever", "ask")


async def test_in_a_batch_each_question_has_its_own(retriever):
    tracer = FinishedRuns()
    questions = [QUESTION, "Do rivers dry out?"]
    found = await retriever.abatch(questions, {"callbacks": [tracer]}, k=1)
    assert [len(each) for each in found] == [1, 1]
    assert sorted(run.inputs["query"] for run in tracer.roots) == sorted(questions)
    for root in tracer.roots:
        assert any(run.run_type == "llm" for _, run in runs_below(root))


def test_they_are_drawn_before_what_they_ask(retriever):
    graph = retriever.get_graph()
    names = {id: node.name for id, node in graph.nodes.items()}
    drawn = {(names[edge.source], names[edge.target]) for edge in graph.edges}
    strategy = type(retriever.retriever).__name__
    assert {(strategy, "Retriever"), ("Retriever", "NodeGraphRetriever")} <= drawn
