"""transform_query: steps that rewrite, expand, split and route a query."""

import pickle

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RouterRunnable, RunnablePassthrough
from support.langchain_peers import TEMPLATES, Recording
from support.langchain_runs import FinishedRuns, call, tree

from nodekin.adapters.langchain import NodeGraphRetriever, transform_query
from nodekin.nodegraph.models.llm import ModelError

PHRASINGS = "Here are some:\n1. fermented tea\n2、which leaves ferment\n3）发酵的茶"
ROUTES = {"rivers": "water", "drinks": "tea"}
TEXT = {"output": "text"}


def model(*answers):
    return FakeListChatModel(responses=list(answers))


def broken(prompt):
    raise RuntimeError("no idea")


CASES = [
    ("rewrite", TEXT, "tee black?", "**Which tea is black?**", "Which tea is black?"),
    ("rewrite", {}, "红茶咋做", "改写后的问题：红茶是怎样制作的？", ["红茶是怎样制作的？"]),
    ("expand", {}, "Which tea?", PHRASINGS,
     ["Which tea?", "fermented tea", "which leaves ferment", "发酵的茶"]),
    ("multi_query", {"include_query": False, "max_queries": 2}, "Which tea?", PHRASINGS,
     ["fermented tea", "which leaves ferment"]),
    ("decompose", {"include_query": False}, "绿茶和红茶哪个发酵？",
     "1、绿茶发酵吗？\n2、红茶发酵吗？", ["绿茶发酵吗？", "红茶发酵吗？"]),
    ("hyde", {**TEXT, "include_query": False}, "What is tea?", "Passage: Tea is a drink of leaves.",
     "Tea is a drink of leaves."),
    ("route", {**TEXT, "routes": ROUTES}, "Tea?", "I take: drinks.", "drinks"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "query", "answer", "expected"), CASES)
async def test_transform_returns_texts(mode, name, settings, query, answer, expected):
    step = transform_query(model(answer, "a second answer"), name, **settings)
    with blockbuster_ctx():
        assert await call(step, mode, query) == expected


async def test_failing_model_leaves_the_query(mode):
    for query in ("", "  \n", "tea?", "茶？"):
        assert await call(transform_query(broken, "rewrite", **TEXT), mode, query) == query
        assert await call(transform_query(broken, "expand"), mode, query) == [query]
    strict = transform_query(broken, "decompose", on_error="raise")
    with pytest.raises(ModelError, match="no idea"):
        await call(strict, mode, "tea?")
    safe = strict.with_fallbacks([transform_query(model("Better?"), "rewrite")])
    assert await call(safe, mode, "tea?") == ["Better?"]


async def test_steps_work_in_chains(mode, retriever, native):
    rewrite = transform_query(model("红茶"), "rewrite", **TEXT)
    chain = rewrite | retriever | (lambda found: [d.id for d in found])
    assert await call(chain, mode, "hong cha") == ["茶"]
    parts = transform_query(model("绿茶？\nrivers dry out?"), "decompose", include_query=False)
    found = await call(parts | retriever.map(), mode, "茶 and rivers?")
    assert [documents[0].id for documents in found] == ["茶", "rivers"]
    route = transform_query(model("all", "one"), "route", **TEXT, routes={"one": "", "all": ""})
    searches = RouterRunnable({"one": NodeGraphRetriever(native, k=1), "all": retriever})
    chain = {"key": route, "input": RunnablePassthrough()} | searches
    assert [len(await call(chain, mode, "tea")) for _ in range(2)] == [3, 1]


async def test_model_calls_have_runs(mode):
    tracer = FinishedRuns()
    step = transform_query(model("Tea?"), "rewrite", **TEXT)
    await call(step, mode, "tee", {"callbacks": [tracer]})
    asked = ("FakeListChatModel", [])
    stages = [("rewrite", [("ask", [asked])])] if mode == "sync" else [asked]
    assert tree(tracer.roots[0]) == ("transform_query:rewrite", stages)


def test_step_is_picklable():
    step = transform_query(model("green\nblack"), "expand", max_queries=1)
    assert pickle.loads(pickle.dumps(step)).invoke("tea") == ["tea", "green"]


@pytest.mark.parametrize(
    ("llm", "name", "settings", "error"),
    [
        (model("x"), "rewrite", {"retrys": 2}, TypeError),
        (model("x"), "rewrite", {"retries": -1}, ValueError),
        (model("x"), "rewrite", {"output": "list"}, ValueError),
        (model("x"), "route", {"routes": {}}, ValueError),
        (model("x"), "expnd", {}, ValueError),
        ("rewrite", model("x"), {}, ValueError),
        (3, "rewrite", {}, TypeError),
    ],
)
def test_wrong_arguments_raise(llm, name, settings, error):
    with pytest.raises(error):
        transform_query(llm, name, **settings)


def test_langchain_prompt_is_used():
    recording = Recording(responses=["green tea"])
    step = transform_query(recording, "rewrite", prompt=TEMPLATES[-1])
    assert step.invoke("gren tea") == ["green tea"]
    assert recording.sent == [[("system", "You search."), ("human", "Search for: gren tea")]]
