"""Steps of chains: query transforms, and fused lists of documents beside LangChain's own ways."""

import asyncio
import inspect
import json
import pickle

import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.load import dumpd, dumps, load
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RouterRunnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_peers import TEMPLATES, Listed, Recording
from langchain_runs import FinishedRuns, call, tree
from pydantic import Field, ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever, fuse_documents, transform_query
from nodekin.adapters.langchain.chain_steps import TransformQuery
from nodekin.nodegraph.models.llm import ModelError

PHRASINGS = "Here are some:\n1. fermented tea\n2、which leaves ferment\n3）发酵的茶"
ROUTES = {"rivers": "water", "drinks": "tea"}
TEXT = {"output": "text"}


class Told(BaseChatModel):
    """Answers what is in its prompt; can be serialised, as real models can."""

    answers: dict[str, str] = Field(default_factory=dict)
    begun: object = None  # set when it is asked, which then never ends

    @classmethod
    def is_lc_serializable(cls):
        return True

    @property
    def _llm_type(self):
        return "told"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        asked = messages[-1].text if isinstance(messages[-1].text, str) else messages[-1].text()
        answer = next((a for told, a in self.answers.items() if told in asked), None)
        if answer is None:
            raise RuntimeError("no idea")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        if self.begun is not None:
            self.begun.set()
            await asyncio.Event().wait()
        return self._generate(messages)


def model(*answers):
    return FakeListChatModel(responses=list(answers))


CASES = [
    ("rewrite", TEXT, "tee black?", "**Which tea is black?**", "Which tea is black?"),
    ("rewrite", {}, "红茶咋做", "改写后的问题：红茶是怎样制作的？", ["红茶是怎样制作的？"]),
    ("expand", {}, "Which tea?", PHRASINGS,
     ["Which tea?", "fermented tea", "which leaves ferment", "发酵的茶"]),
    ("multi_query", {"include_query": False, "max_queries": 2, "retries": 0}, "Which tea?",
     PHRASINGS, ["fermented tea", "which leaves ferment"]),
    ("decompose", {"include_query": False}, "绿茶和红茶哪个发酵？",
     "1、绿茶发酵吗？\n2、红茶发酵吗？", ["绿茶发酵吗？", "红茶发酵吗？"]),
    ("decompose", {}, "Tea or rivers?", "1. What is tea?\n* What is it?\n2. Where are rivers?",
     ["Tea or rivers?", "What is tea?", "What is it?", "Where are rivers?"]),
    ("decompose", {}, "What is tea?", "NONE", ["What is tea?"]),
    ("hyde", {**TEXT, "include_query": False}, "What is tea?", "Passage: Tea is a drink of leaves.",
     "Tea is a drink of leaves."),
    ("route", {**TEXT, "routes": ROUTES}, "Tea?", "I take: drinks.", "drinks"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "query", "answer", "expected"), CASES)
async def test_what_the_steps_make_of_a_query(mode, name, settings, query, answer, expected):
    step = transform_query(model(answer, "a second answer"), name, **settings)
    with blockbuster_ctx():
        assert await call(step, mode, query) == expected


async def test_blank_queries_and_failing_models_leave_the_query(mode):
    for query in ("", "  \n", "tea?", "茶？"):
        assert await call(transform_query(Told(), "rewrite", **TEXT), mode, query) == query
        assert await call(transform_query(Told(), "expand"), mode, query) == [query]
    route = transform_query(Told(), "route", **TEXT, routes=ROUTES, default="drinks")
    assert await call(route, mode, "tea?") == "drinks"
    with pytest.raises(ModelError, match="no idea"):
        await call(transform_query(Told(), "decompose", on_error="raise"), mode, "tea?")


async def test_steps_are_composed(mode, retriever, native):
    rewrite = transform_query(model("红茶"), "rewrite", **TEXT)
    chain = rewrite | retriever | (lambda found: [d.id for d in found])
    assert await call(chain, mode, "hong cha") == ["茶"]
    parts = transform_query(model("绿茶？\nrivers dry out?"), "decompose", include_query=False)
    found = await call(parts | retriever.map(), mode, "茶 and rivers?")
    assert [documents[0].id for documents in found] == ["茶", "rivers"]
    single = NodeGraphRetriever(retriever=native, k=1)
    route = transform_query(model("all", "one"), "route", **TEXT, routes={"one": "", "all": ""})
    searches = RouterRunnable({"one": single, "all": retriever})
    chain = {"key": route, "input": RunnablePassthrough()} | searches
    assert [len(await call(chain, mode, "tea")) for _ in range(2)] == [3, 1]


async def test_every_question_to_a_model_has_a_run(mode):
    trace = FinishedRuns()
    hyde = transform_query(model("Tea is a drink made of leaves."), "hyde")
    chain = transform_query(model("Tea?"), "rewrite", **TEXT) | hyde
    await call(chain, mode, "tee", {"callbacks": [trace], "run_name": "both"})
    asked = [("ask", [("FakeListChatModel", [])])]
    steps = [("TransformQuery", [(name, asked)]) for name in ("hyde", "rewrite")]
    assert tree(trace.roots[0]) == ("both", steps)


async def test_batches_and_streams(mode):
    step = transform_query(Told(answers={"绿": "绿茶？", "river": "Rivers?"}), "rewrite", **TEXT)
    queries, config = ["绿", "river", "neither"], {"max_concurrency": 2}
    rewritten = step.batch(queries, config) if mode == "sync" else await step.abatch(queries)
    assert rewritten == ["绿茶？", "Rivers?", "neither"]
    assert list(step.stream("river")) == ["Rivers?"]
    assert [piece async for piece in step.astream("river")] == ["Rivers?"]


async def test_a_cancelled_step_is_reported():
    seen = set()

    class Errors(BaseCallbackHandler):
        def on_chain_error(self, error, **kwargs):
            seen.add(type(error).__name__)

    begun = asyncio.Event()
    step = transform_query(Told(answers={"": "late"}, begun=begun), "rewrite")
    task = asyncio.create_task(step.ainvoke("tea", {"callbacks": [Errors()]}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == {"CancelledError"}


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_pickled_and_serialised():
    told = Told(answers={"": "green\nblack"})
    step = transform_query(told, "expand", max_queries=1, prompt="{query}: {count}!")
    assert pickle.loads(pickle.dumps(step)).invoke("tea") == ["tea", "green"]
    written = dumpd(step)
    assert written["id"] == ["nodekin", "adapters", "langchain", "chain_steps", "TransformQuery"]
    assert written["kwargs"]["options"] == {"max_queries": 1, "prompt": "{query}: {count}!"}
    assert written["kwargs"]["llm"]["type"] == "constructor"
    written["kwargs"]["llm"] = model("green\nblack")
    # Since core 1.2 the classes have to be named as well.
    known = inspect.signature(load).parameters.keys() & {"allowed_objects"}
    named = {key: [TransformQuery] for key in known}
    again = load(written, valid_namespaces=["nodekin"], **named)
    assert again.invoke("tea") == ["tea", "green"]


def test_they_are_configured_and_have_fallbacks():
    step = transform_query(Told(answers={"": "green\nblack\nwhite"}), "expand").configurable_fields(
        options=ConfigurableField("options"), llm=ConfigurableField("model")
    )
    assert len(step.invoke("tea")) == 4
    assert len(step.with_config(configurable={"options": {"max_queries": 1}}).invoke("tea")) == 2
    assert step.invoke("tea", {"configurable": {"model": model("milk")}}) == ["tea", "milk"]
    strict = transform_query(Told(), "rewrite", **TEXT, on_error="raise")
    safe = strict.with_fallbacks([transform_query(model("Better?"), "rewrite", **TEXT)])
    assert safe.invoke("tea") == "Better?"
    assert strict.get_input_jsonschema()["type"] == strict.get_output_jsonschema()["type"]
    assert step.get_output_jsonschema()["type"] == "array"


@pytest.mark.parametrize(
    ("name", "settings", "error"),
    [
        ("rewrite", {"retrys": 2}, TypeError),
        ("rewrite", {"retries": -1}, ValueError),
        ("rewrite", {"prompt": "no place"}, ValueError),
        ("rewrite", {"on_error": "ignore"}, ValueError),
        ("rewrite", {"output": "list"}, ValidationError),
        ("expand", {"max_queries": 0}, ValueError),
        ("route", {"routes": {}}, ValueError),
        ("route", {"routes": ROUTES, "default": "b"}, ValueError),
        ("expnd", {}, ValueError),
    ],
)
async def test_settings_and_queries_are_checked(name, settings, error, mode):
    with pytest.raises(error):
        transform_query(model("x"), name, **settings)
    with pytest.raises(TypeError, match="model"):
        transform_query(3, "rewrite")
    with pytest.raises(TypeError, match="a query is a str"):
        await call(transform_query(model("x"), "rewrite"), mode, {"question": "tea"})
    with pytest.raises(TypeError, match="max_queries"):
        await call(transform_query(model("x"), "expand"), mode, "tea", max_queries=3)


def test_a_prompt_of_langchain():
    recording = Recording(responses=["green tea"])
    step = transform_query(recording, "rewrite", prompt=TEMPLATES[-1])
    assert step.invoke("gren tea") == ["green tea"]
    assert recording.sent == [[("system", "You search."), ("human", "Search for: gren tea")]]
    for text, says in (
        ("Search.", r"no place for 'query'; write \{query\} in it"),
        ("{topic} {query}", r"a place 'topic', which nothing fills; .*\.partial\("),
    ):
        with pytest.raises(ValueError, match=says):
            transform_query(recording, "rewrite", prompt=PromptTemplate.from_template(text))


A, B, C = (Document(f"{name} is a letter.", metadata={"name": name}) for name in "ABC")


def test_the_lists_of_a_mapped_retriever_are_fused_without_duplicates():
    """As in LangChain's RAG-Fusion recipe, which keys on the JSON of whole documents."""

    def reciprocal_rank_fusion(results, k=61):
        fused = {}
        for documents in results:
            for rank, document in enumerate(documents):
                key = dumps(document)
                fused[key] = fused.get(key, 0) + 1 / (rank + k)
        ordered = sorted(fused.items(), key=lambda item: -item[1])
        return [Document(**json.loads(key)["kwargs"]) for key, _ in ordered]

    retriever = RunnableLambda({"Is it a?": [A, B], "Is it b?": [B, C, A]}.__getitem__)
    parts = transform_query(model("Is it a?\nIs it b?"), "decompose", include_query=False)
    expected = (parts | retriever.map() | reciprocal_rank_fusion).invoke("a or b?")
    assert (parts | retriever.map() | fuse_documents()).invoke("a or b?") == expected == [B, A, C]


async def test_branches_fuse_as_in_langchains_ensemble(mode):
    retrievers = [Listed(documents=[A, B, C]), Listed(documents=[C, B])]
    weights = [0.7, 0.3]
    theirs = EnsembleRetriever(retrievers=retrievers, weights=weights).invoke("?")
    branches = RunnableParallel(one=retrievers[0], other=retrievers[1])
    assert await call(branches | fuse_documents(weights=weights), mode, "?") == theirs


def test_documents_come_back_as_they_were():
    document = Document("a", id="1", metadata={"relevance_score": 0.4})
    (fused,) = fuse_documents().invoke([[document], [document]])
    assert fused == document
    assert fused is not document
    (detailed,) = fuse_documents(details=True).invoke([[document], [document]])
    assert detailed.metadata["score"] == pytest.approx(2 / 61)
    old, new = (Document(text, metadata={"key": 1}, id=text) for text in ("A", "A!"))
    assert fuse_documents(merge_by="key").invoke([[old], [new]]) == [old]
    assert len(fuse_documents().invoke([[old], [new]])) == 2
    assert fuse_documents().invoke([]) == fuse_documents().invoke([[], []]) == []
    step = fuse_documents(mode="concat", k=2, weights=[1, 2])
    assert pickle.loads(pickle.dumps(step)) == step
    assert step.is_lc_serializable()


@pytest.mark.parametrize(
    ("step", "lists", "error", "message"),
    [
        (fuse_documents(), [A, B], TypeError, "lists of documents"),
        (fuse_documents(), "tea", TypeError, "lists of documents"),
        (fuse_documents(), [["tea"]], TypeError, "no document"),
        (fuse_documents(weights=[1.0]), [[A], [B]], ValueError, "1 weights .* for 2 lists"),
    ],
)
def test_what_can_not_be_fused_is_refused(step, lists, error, message):
    with pytest.raises(error, match=message):
        step.invoke(lists)
