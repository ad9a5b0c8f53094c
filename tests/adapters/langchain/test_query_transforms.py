"""Query strategies as steps of chains."""

import asyncio
import inspect
import pickle
from functools import partial

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField, RouterRunnable, RunnablePassthrough
from langchain_runs import FinishedRuns, call
from pydantic import Field, ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.langchain.query_transforms import (
    ExpandQuery,
    decompose_query,
    expand_query,
    hypothesize,
    rewrite_query,
    route_query,
    transform_query,
)
from nodekin.nodegraph import ModelError
from nodekin.retrievers import MultiQueryRetriever

PHRASINGS = "Here are some:\n1. fermented tea\n2、which leaves ferment\n3）发酵的茶"


class Told(BaseChatModel):
    """Answers what is in its prompt, after its own delay; can be serialised, as real models can."""

    answers: dict[str, str] = Field(default_factory=dict)
    delay: float = 0.0
    begun: object = None  # set when it is asked, which then never ends

    @classmethod
    def is_lc_serializable(cls):
        return True

    @property
    def _llm_type(self):
        return "told"

    def _answer(self, messages):
        asked = messages[-1].text if isinstance(messages[-1].text, str) else messages[-1].text()
        answer = next((a for told, a in self.answers.items() if told in asked), None)
        if answer is None:
            raise RuntimeError("no idea")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return self._answer(messages)

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.begun is not None:
            self.begun.set()
            await asyncio.Event().wait()
        await asyncio.sleep(self.delay)
        return self._answer(messages)


def tree(run):
    return (run.name, [tree(child) for child in run.child_runs])


def model(*answers):
    return FakeListChatModel(responses=list(answers))


CASES = [
    (rewrite_query, {}, "tee black?", "**Which tea is black?**", "Which tea is black?"),
    (rewrite_query, {}, "红茶咋做", "改写后的问题：红茶是怎样制作的？", "红茶是怎样制作的？"),
    (expand_query, {}, "Which tea?", PHRASINGS,
     ["Which tea?", "fermented tea", "which leaves ferment", "发酵的茶"]),
    (expand_query, {"include_query": False, "count": 2}, "Which tea?", PHRASINGS,
     ["fermented tea", "which leaves ferment"]),
    (decompose_query, {}, "绿茶和红茶哪个发酵？", "1、绿茶发酵吗？\n2、红茶发酵吗？",
     ["绿茶发酵吗？", "红茶发酵吗？"]),
    (decompose_query, {"include_query": True}, "Tea or rivers?", "What is tea?\nWhere are rivers?",
     ["Tea or rivers?", "What is tea?", "Where are rivers?"]),
    (decompose_query, {}, "What is tea?", "NONE", ["What is tea?"]),
    (hypothesize, {}, "What is tea?", "Passage: Tea is a drink made of leaves.",
     "Tea is a drink made of leaves."),
    (route_query, {"routes": {"rivers": "water", "drinks": "tea"}}, "Tea?", "I take: drinks.",
     "drinks"),
    (partial(transform_query, transform="multi_query"), {"count": 1, "retries": 0}, "Which tea?",
     PHRASINGS, ["Which tea?", "fermented tea"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "settings", "query", "answer", "expected"), CASES)
async def test_what_the_steps_make_of_a_query(mode, make, settings, query, answer, expected):
    step = make(model(answer), **settings)
    assert await call(step, mode, query) == expected


async def test_one_question_to_a_model_that_has_no_structured_output(mode):
    answers = model("Which tea is black?", "wrong: asked twice")
    assert await call(rewrite_query(answers), mode, "black tee") == "Which tea is black?"


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_blank_queries_ask_no_model(mode, query):
    assert await call(rewrite_query(Told()), mode, query) == query
    assert await call(expand_query(Told()), mode, query) == [query]


async def test_a_model_that_fails_leaves_the_query_or_raises(mode):
    assert await call(rewrite_query(Told()), mode, "tea?") == "tea?"
    assert await call(hypothesize(Told()), mode, "茶？") == "茶？"
    assert await call(route_query(Told(), {"a": "", "b": ""}, default="b"), mode, "tea?") == "b"
    with pytest.raises(ModelError, match="no idea"):
        await call(decompose_query(Told(), on_error="raise"), mode, "tea?")


async def test_steps_are_composed(mode, retriever):
    chain = rewrite_query(model("红茶")) | retriever | (lambda found: [d.id for d in found])
    assert await call(chain, mode, "hong cha") == ["茶"]
    each = decompose_query(model("绿茶？\nrivers dry out?")) | retriever.map()
    found = await call(each, mode, "茶 and rivers?")
    assert [documents[0].id for documents in found] == ["茶", "rivers"]
    imagined = hypothesize(model("A press that prints books.")) | retriever
    assert (await call(imagined, mode, "Gutenberg?"))[0].id == "press"


async def test_a_route_chooses_what_runs(mode, retriever, native):
    one = NodeGraphRetriever(retriever=native, k=1)
    route = route_query(model("zwei", "eins"), {"eins": "one", "zwei": "all"})
    searches = RouterRunnable({"eins": one, "zwei": retriever})
    chain = {"key": route, "input": RunnablePassthrough()} | searches
    assert len(await call(chain, mode, "tea")) == 3
    assert len(await call(chain, mode, "tea")) == 1


async def test_every_question_to_a_model_has_a_run(mode):
    trace = FinishedRuns()
    await call(rewrite_query(model("Tea?")), mode, "tee", {"callbacks": [trace]})
    ask = ("rewrite", [("ask", [("FakeListChatModel", [])])])
    assert [tree(run) for run in trace.roots] == [("RewriteQuery", [ask])]
    assert trace.roots[0].outputs == {"output": "Tea?"}
    trace = FinishedRuns()
    chain = rewrite_query(model("Tea?")) | expand_query(model("Which leaves?"))
    await call(chain, mode, "tee", {"callbacks": [trace], "run_name": "both"})
    (root,) = trace.roots
    expanding = ("ExpandQuery", [("expand", ask[1])])
    assert tree(root) == ("both", [("RewriteQuery", [ask]), expanding])


async def test_a_batch_answers_each(mode):
    step = rewrite_query(Told(answers={"绿": "绿茶？", "river": "Rivers?"}, delay=0.01))
    queries = ["绿", "river", "neither"]
    trace = FinishedRuns()
    config = {"callbacks": [trace], "max_concurrency": 2}
    made = step.batch(queries, config) if mode == "sync" else await step.abatch(queries, config)
    assert made == ["绿茶？", "Rivers?", "neither"]
    assert [run.name for run in trace.roots] == ["RewriteQuery"] * 3


async def test_streams_and_their_events(retriever):
    step = rewrite_query(model("红茶"))
    assert list(step.stream("hong cha")) == ["红茶"]
    assert [piece async for piece in step.astream("hong cha")] == ["红茶"]
    events = [e async for e in (step | retriever).astream_events("hong cha", version="v2")]
    told = {(e["event"], e["name"]): e for e in events}
    start = told["on_chain_start", "RewriteQuery"]
    asked = told["on_chat_model_start", "FakeListChatModel"]
    assert start["run_id"] in asked["parent_ids"]
    assert told["on_chain_end", "RewriteQuery"]["data"]["output"] == "红茶"


async def test_nothing_blocks_the_event_loop():
    steps = [make(Told(answers={"": answer}), **kw) for make, kw, _, answer, _ in CASES]
    with blockbuster_ctx():
        made = [await step.ainvoke(case[2]) for step, case in zip(steps, CASES, strict=True)]
    assert made == [case[4] for case in CASES]


async def test_a_cancelled_step_is_reported():
    seen = set()

    class Errors(BaseCallbackHandler):
        def on_chain_error(self, error, **kwargs):
            seen.add(type(error).__name__)

    begun = asyncio.Event()
    step = rewrite_query(Told(answers={"": "late"}, begun=begun))
    task = asyncio.create_task(step.ainvoke("tea", {"callbacks": [Errors()]}))
    await begun.wait()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.01)
    assert seen == {"CancelledError"}


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_pickled_and_serialised():
    step = expand_query(Told(answers={"": "green\nblack"}), count=1, prompt="{query}: {count}!")
    assert pickle.loads(pickle.dumps(step)).invoke("tea") == ["tea", "green"]
    told = dumpd(step)
    assert told["id"] == ["nodekin", "adapters", "langchain", "query_transforms", "ExpandQuery"]
    assert told["kwargs"]["count"] == 1
    assert told["kwargs"]["prompt"] == "{query}: {count}!"
    assert told["kwargs"]["llm"]["type"] == "constructor"
    told["kwargs"]["llm"] = model("green\nblack")
    # Since core 1.2 the classes have to be named as well.
    known = inspect.signature(load).parameters.keys() & {"allowed_objects"}
    named = {key: [ExpandQuery] for key in known}
    again = load(told, valid_namespaces=["nodekin"], **named)
    assert again.invoke("tea") == ["tea", "green"]


def test_fields_are_configurable():
    step = expand_query(Told(answers={"": "a\nb\nc"})).configurable_fields(
        count=ConfigurableField("how_many"), llm=ConfigurableField("model")
    )
    assert len(step.invoke("tea")) == 4
    assert len(step.with_config(configurable={"how_many": 1}).invoke("tea")) == 2
    other = {"configurable": {"model": model("x")}}
    assert step.invoke("tea", other) == ["tea", "x"]


def test_retries_and_fallbacks():
    strict = rewrite_query(Told(), on_error="raise")
    step = strict.with_fallbacks([rewrite_query(model("Better?"))])
    assert step.invoke("tea") == "Better?"


def test_they_say_what_they_take_and_give():
    assert rewrite_query(model("x")).get_input_jsonschema()["type"] == "string"
    assert rewrite_query(model("x")).get_output_jsonschema()["type"] == "string"
    assert expand_query(model("x")).get_output_jsonschema()["type"] == "array"


async def test_a_step_and_the_retriever_ask_for_the_same_phrasings(native):
    answers = model(PHRASINGS)
    strategy = MultiQueryRetriever(native, answers)
    assert expand_query(answers).invoke("Which tea?") == strategy.transform("Which tea?")


@pytest.mark.parametrize(
    ("make", "settings", "error"),
    [
        (rewrite_query, {"retrys": 2}, ValidationError),
        (rewrite_query, {"retries": -1}, ValidationError),
        (rewrite_query, {"prompt": "no place"}, ValidationError),
        (rewrite_query, {"on_error": "ignore"}, ValidationError),
        (expand_query, {"count": 0}, ValidationError),
        (route_query, {"routes": {}}, ValidationError),
        (transform_query, {"transform": "expnd"}, ValidationError),
        (transform_query, {"transform": "expand", "cuont": 1}, TypeError),
        (route_query, {"routes": {"a": ""}, "default": "b"}, ValidationError),
    ],
)
def test_settings_are_checked(make, settings, error):
    with pytest.raises(error):
        make(model("x"), **settings)


async def test_what_is_no_query_or_model_is_refused(mode):
    with pytest.raises(TypeError, match="model"):
        rewrite_query(3)
    with pytest.raises(TypeError, match="a query is a str"):
        await call(rewrite_query(model("x")), mode, {"question": "tea"})
    with pytest.raises(TypeError, match="count"):
        await call(expand_query(model("x")), mode, "tea", count=3)
