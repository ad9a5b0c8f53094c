"""Any nodekin retriever as a LangChain retriever: arguments, documents, and as a Runnable."""

import asyncio
import pickle
import threading

import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import create_retriever_tool
from langchain_peers import face, ids, texts
from langchain_runs import call
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.adapters.langchain.documents import to_document
from nodekin.nodegraph import Node
from nodekin.retrievers import (
    FusionRetriever,
    RerankRetriever,
    Retriever,
    RetrieverSettings,
    ScoredNode,
)

QUESTION = "Which tea is fermented?"


def equal_scores(query, passages):
    return [1.0] * len(passages)


async def test_documents_are_the_native_results(native, mode):
    found = native.retrieve(QUESTION)
    documents = await call(face(native, details=True), mode, QUESTION)
    assert ids(documents) == [each.node.id for each in found]
    assert texts(documents) == [each.node.content for each in found]
    assert [d.metadata["score"] for d in documents] == [each.score for each in found]


async def test_k_in_the_constructor_and_in_the_call(native, mode):
    for k, of_call, expected in ((2, {}, 2), (2, {"k": 1}, 1), (2, {"k": 3}, 3), (None, {}, 3)):
        assert len(await call(face(native, k=k), mode, "tea", **of_call)) == expected


async def test_filter_in_the_constructor_and_in_the_call(native, mode):
    tea, others = {"topic": "tea"}, {"topic": ["rivers", "printing"]}
    for filter, of_call, query, expected in (
        (tea, None, "tea", ["tea"]),
        (tea, others, "tea", []),
        (tea, {"topic": ["rivers", "tea"]}, "tea", ["tea"]),
        (others, None, "tea", ["rivers", "press"]),
        (tea, {"language": "zh"}, "茶", ["茶"]),
    ):
        found = await call(face(native, filter=filter), mode, query, filter=of_call)
        assert ids(found) == expected


async def test_score_threshold_in_the_constructor_and_in_the_call(native, mode):
    found = native.retrieve("tea by rivers")
    best = found[0].score
    assert best > found[-1].score
    retriever = face(native, score_threshold=best)
    for of_call, expected in ((None, 1), (-1, len(found)), (best + 1, 0)):
        documents = await call(retriever, mode, "tea by rivers", score_threshold=of_call)
        assert len(documents) == expected


async def test_child_k_in_the_constructor_and_in_the_call(native, mode):
    for k, child_k, of_call, expected in (
        (1, None, {}, [("tea", 1)]),
        (1, 3, {}, [("tea", 3)]),
        (1, 3, {"k": 9, "child_k": 1}, [("tea", 1)]),
    ):
        retriever = face(native, details="nested", k=k, child_k=child_k)
        documents = await call(retriever, mode, QUESTION, **of_call)
        assert [(d.id, len(d.metadata["nodekin"]["evidence"])) for d in documents] == expected


async def test_arguments_of_a_call_reach_what_others_hold(native, graph, mode):
    fusion = FusionRetriever(
        [
            native,
            Retriever(graph, "sentence", target="ROOT", settings=RetrieverSettings(lift="sum")),
        ]
    )
    retriever = face(RerankRetriever(fusion, "ModuleReranker", model=equal_scores))
    assert ids(await call(retriever, mode, QUESTION, k=5, child_k=1)) == ["tea"]
    others = {"filter": {"topic": ["rivers", "printing"]}}
    assert len(await call(retriever, mode, "tea", k=1, **others)) == 1
    assert {*ids(await call(retriever, mode, "tea", k=9, **others))} == {"rivers", "press"}


async def test_weights_in_the_call_reach_a_fusion_within(graph, mode):
    tea = Retriever(graph, "ROOT", "bm25", filters={"topic": "tea"})
    fusion = FusionRetriever([tea, Retriever(graph, "ROOT", "bm25")])
    retriever = face(RerankRetriever(fusion, "ModuleReranker", model=equal_scores))
    query, only_tea = "Which tea is by the rivers?", ["tea"]
    assert ids(await call(retriever, mode, query, weights=[1, 0])) == only_tea
    assert ids(await call(retriever, mode, query)) != only_tea
    default = NodeGraphRetriever.from_graph(graph, details="nested")
    for weights, group in (([1, 0], "sentence"), ([0, 1], "ROOT")):
        (document,) = await call(default, mode, query, weights=weights, k=1)
        evidence = document.metadata["nodekin"]["evidence"]
        assert {match["group"] for match in evidence} == {group}
    with pytest.raises(ValueError, match="are 3, for 2 retrievers"):
        await call(face(fusion), mode, query, weights=[1, 2, 3])
    with pytest.raises(TypeError, match="weights are for a FusionRetriever or a DefaultRetriever"):
        await call(face(tea), mode, query, weights=[1, 2])


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, ValueError, "^k must be 1 or more, not 0"),
        ({"k": "3"}, TypeError, "^k is a whole number, not '3'"),
        ({"k": True}, TypeError, "^k is a whole number, not True"),
        ({"child_k": 0}, ValueError, "^child_k must be 1 or more"),
        ({"score_threshold": "a"}, TypeError, "^score_threshold is a number or None, not 'a'"),
        ({"score_threshold": float("nan")}, ValueError, "score_threshold is a number, not nan"),
        ({"filter": "topic"}, TypeError, "filters map metadata fields"),
        ({"kk": 1}, TypeError, r"no argument 'kk'; there is k, child_k, filter, score_threshold"),
    ],
)
async def test_errors_of_a_call_say_what_is_allowed(retriever, arguments, error, says, mode):
    with pytest.raises(error, match=says):
        await call(retriever, mode, "tea", **arguments)
    with pytest.raises(error, match=says):
        retriever.batch(["tea", "coffee"], **arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"top_k": 1}, "top_k"),
        ({"search_kwargs": {}}, "search_kwargs"),
        ({"k": 0}, "greater than or equal to 1"),
        ({"k": "3"}, "valid integer"),
        ({"child_k": 0}, "child_k"),
        ({"score_threshold": float("nan")}, "finite"),
        ({"details": "flat"}, r"details\n.*False, True or 'nested'"),
        ({"graph": "graph"}, "graph"),
    ],
)
def test_arguments_of_the_constructor_are_checked(native, arguments, says):
    with pytest.raises(ValidationError, match=says):
        face(native, **arguments)
    with pytest.raises(TypeError, match=r"retriever must be an object with retrieve.*got 3"):
        face(3)


def test_the_likeliest_first_line_works(native):
    assert NodeGraphRetriever(native, k=1).invoke("tea") == face(native, k=1).invoke("tea")
    with pytest.raises(TypeError, match="retriever must be an object with retrieve"):
        NodeGraphRetriever()


def test_construction_does_not_touch_the_engine():
    class Untouchable:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise AssertionError

        aretrieve = __deepcopy__ = __iter__ = __len__ = retrieve

    engine = Untouchable()
    assert face(engine).retriever is engine


# The documents


def test_changing_a_result_changes_nothing_else(graph):
    graph.add(Document("Tea with tags.", metadata={"tags": ["a"], "topic": "tags"}, id="tags"))
    retriever = face(Retriever(graph, "sentence", target="ROOT"))
    before, spoilt = retriever.invoke("tags"), retriever.invoke("tags")
    spoilt[0].metadata["tags"].append("b")
    spoilt[0].metadata["topic"] = spoilt[0].page_content = "spoilt"
    assert retriever.invoke("tags") == before
    assert graph.node("tags").metadata == {"tags": ["a"], "topic": "tags"}


def test_evidence_tells_what_matched(native, graph):
    query = "Do rivers dry out?"
    (document,) = face(native, details="nested").invoke(query, k=1)
    (match, *_) = document.metadata["nodekin"]["evidence"]
    expected = ("Some rivers dry out.", "sentence", "bm25", query)
    assert tuple(match[name] for name in ("text", "group", "similarity", "query")) == expected
    assert match["score"] == document.metadata["nodekin"]["score"]
    assert graph.node("rivers").text[match["start"] : match["end"]] == match["text"]
    assert graph.node(match["id"]).parent.id == document.id


class Fixed:
    """A retriever of a user's own: subclassing is not required."""

    def __init__(self, *found):
        self.found = list(found)

    def retrieve(self, query, *, top_k=None, filters=None):
        self.config = var_child_runnable_config.get()
        return self.found[:top_k]

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await asyncio.to_thread(self.retrieve, query, top_k=top_k, filters=filters)


async def test_any_object_with_the_two_methods_will_do(mode):
    node = Node("Tea", {"page": 1}, id="n1")
    retriever = face(Fixed(ScoredNode(node, -2)))
    assert await call(retriever, mode, "tea") == [to_document(ScoredNode(node, -2.0))]
    many = face(Fixed(*(ScoredNode(Node("Tea", id=str(n)), 1.0) for n in range(99))))
    assert len(await call(many, mode, "tea")) == 99


async def test_the_config_surrounds_the_search(mode):
    values = {"configurable": {"user": "u1"}, "max_concurrency": 3, "tags": ["t"]}
    retriever = face(Fixed())
    await call(retriever, mode, "x", {**values, "metadata": {"m": 1}, "run_name": "outer"})
    assert values.items() <= retriever.retriever.config.items()
    assert "run_name" not in retriever.retriever.config
    assert var_child_runnable_config.get() is None


async def test_the_loop_runs_while_a_group_is_built(graph, retriever):
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("fermented tea", k=1)) == ["tea"]
    turned = threading.Event()

    def slow(text):
        assert turned.wait(300), "the loop was blocked"
        return text.split()

    graph.create_node_group("slow", slow)
    task = asyncio.create_task(face(Retriever(graph, "slow")).ainvoke("tea"))
    for _ in range(6):
        await asyncio.sleep(0.005)
    assert not task.done()
    turned.set()
    assert await task


def test_pickled_and_not_serialised(retriever, graph):
    again = pickle.loads(pickle.dumps(retriever.model_copy(update={"filter": {"topic": "tea"}})))
    assert ids(again.invoke("fermented tea")) == ["tea"]
    assert not NodeGraphRetriever.is_lc_serializable()
    assert dumpd(retriever)["type"] == "not_implemented"
    graph.create_node_group("words", lambda text: text.split())
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(face(Retriever(graph, "words")))


# A Runnable like any other


class Failing:
    """Fails as often as it is told to, then asks another."""

    def __init__(self, inner, times):
        self.inner = inner
        self.times = times

    def retrieve(self, query, *, top_k=None, filters=None):
        if self.times > 0:
            self.times -= 1
            raise ConnectionError("gone")
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


def test_schemas(retriever):
    assert retriever.get_input_jsonschema()["type"] == "string"
    assert retriever.get_output_jsonschema()["type"] == "array"
    assert repr(retriever).startswith("NodeGraphRetriever(retriever=Retriever('sentence' -> 'ROOT'")
    few = repr(retriever.model_copy(update={"k": 2}))  # one number: that which counts
    assert "k=2" in few
    assert "top_k=" not in few


async def test_config_listeners_and_bound_arguments(retriever, mode):
    seen = []
    named = retriever.with_config(run_name="look up", tags=["t"]).with_listeners(
        on_start=lambda run: seen.append((run.name, run.tags))
    )
    assert ids(await call(named, mode, "fermented tea", k=1)) == ["tea"]
    assert seen == [("look up", ["t"])]
    bound = retriever.bind(k=1, filter={"topic": "rivers"})
    assert ids(await call(bound, mode, "tea")) == ["rivers"]
    assert ids(await call(RunnableLambda(str.lower) | bound, mode, "TEA")) == ["rivers"]


async def test_retries_and_fallbacks(native, retriever, mode):
    for times in (2, 3):
        retrying = face(Failing(native, times)).with_retry(
            stop_after_attempt=3, wait_exponential_jitter=False
        )
        if times == 2:
            assert len(await call(retrying, mode, "tea")) == 3
            continue
        with pytest.raises(ConnectionError):
            await call(retrying, mode, "tea")
    safe = face(Failing(native, 10**6)).with_fallbacks([retriever])
    assert await call(safe, mode, "tea") == retriever.invoke("tea")


async def test_configurable_fields_and_alternatives(retriever, native, graph, mode):
    names = ("k", "filter", "score_threshold", "retriever")
    configurable = retriever.configurable_fields(**{n: ConfigurableField(id=n) for n in names})
    for values, expected in (
        ({}, ["tea", "rivers", "press"]),
        ({"k": 1}, ["tea"]),
        ({"k": 2, "filter": {"topic": "printing"}}, ["press"]),
        ({"score_threshold": 1e6}, []),
    ):
        assert ids(await call(configurable, mode, "tea", {"configurable": values})) == expected
    prepared, _ = configurable.prepare({"configurable": {"k": 1}})
    assert prepared.retriever is native
    lines = face(Retriever(graph, "sentence"))
    either = retriever.configurable_alternatives(
        ConfigurableField(id="answer_with"), default_key="documents", sentences=lines
    )
    config = {"configurable": {"answer_with": "sentences"}}
    assert await call(either, mode, "fermented tea") == retriever.invoke("fermented tea")
    assert await call(either, mode, "fermented tea", config) == lines.invoke("fermented tea")


@pytest.mark.parametrize("question", [QUESTION, "红茶发酵吗？"])
async def test_in_chains(retriever, native, question, mode):
    answer = "Black tea is fermented."
    model = FakeListChatModel(responses=[answer])
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {input}")
    expected = [each.node.id for each in native.retrieve(question)]
    reply = (
        {"context": lambda x: "\n".join(texts(x["documents"])), "input": lambda x: x["input"]}
        | prompt | model | StrOutputParser()
    )  # fmt: skip
    chain = RunnableParallel(documents=retriever, input=RunnablePassthrough()).assign(answer=reply)
    result = await call(chain, mode, question)
    assert (result["answer"], ids(result["documents"])) == (answer, expected)
    pieces = [each["answer"] async for each in chain.astream(question) if "answer" in each]
    assert len(pieces) > 1
    assert "".join(pieces) == answer
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    result = await call(chain, mode, {"input": question})
    assert (result["answer"], ids(result["context"])) == (answer, expected)
    asked = ChatPromptTemplate([("placeholder", "{chat_history}"), ("user", "{input}")])
    rewriter = FakeListChatModel(responses=[question])
    aware = create_history_aware_retriever(rewriter, retriever, asked)
    history = {"input": "And this one?", "chat_history": [("user", "Tea?")]}
    assert ids(await call(aware, mode, history)) == expected


async def test_in_langchains_retriever_tool(retriever, mode):
    documents = retriever.invoke("fermented tea")
    tool = create_retriever_tool(retriever, "tea", "Tea.", response_format="content_and_artifact")
    message = {"type": "tool_call", "id": "1", "name": "tea", "args": {"query": "fermented tea"}}
    result = await call(tool, mode, message)
    assert result.artifact == documents
    assert result.content == "\n\n".join(texts(documents))
