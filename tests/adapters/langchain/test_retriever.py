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
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphRetriever, to_document
from nodekin.nodegraph import Node
from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever, ScoredNode


def ids(documents):
    return [document.id for document in documents]


# What is found


def test_documents_are_the_native_results(retriever, native):
    found = native.retrieve("Which tea is fermented?")
    documents = retriever.invoke("Which tea is fermented?")
    assert ids(documents) == [each.node.id for each in found]
    assert [d.page_content for d in documents] == [each.node.content for each in found]
    detailed = NodeGraphRetriever(retriever=native, details=True)
    documents = detailed.invoke("Which tea is fermented?")
    assert [d.metadata["score"] for d in documents] == [each.score for each in found]


@pytest.mark.parametrize("query", ["", "  \n", "　"])
async def test_a_blank_query_finds_nothing(retriever, query):
    assert retriever.invoke(query) == []
    assert await retriever.ainvoke(query) == []


# Arguments


async def test_k_in_the_constructor_and_in_the_call(native):
    retriever = NodeGraphRetriever(retriever=native, k=2)
    assert len(retriever.invoke("tea")) == 2
    assert len(retriever.invoke("tea", k=1)) == 1
    assert len(await retriever.ainvoke("tea", k=3)) == 3
    assert len(NodeGraphRetriever(retriever=native).invoke("tea")) == 3


async def test_weights_in_the_call_reach_a_fusion_within(graph):
    tea = Retriever(graph, "ROOT", "bm25", filters={"topic": "tea"})
    fusion = FusionRetriever([tea, Retriever(graph, "ROOT", "bm25")])
    query = "Which tea is by the rivers?"
    reranked = RerankRetriever(
        fusion, "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
    )
    retriever = NodeGraphRetriever(retriever=reranked)
    only_tea = [result.node.id for result in tea.retrieve(query)]
    assert ids(retriever.invoke(query, weights=[1, 0])) == only_tea != ids(retriever.invoke(query))
    assert ids(await retriever.ainvoke(query, weights=[1, 0])) == only_tea
    default = NodeGraphRetriever.from_graph(graph, details="nested")
    for weights, group in (([1, 0], "sentence"), ([0, 1], "ROOT")):
        (document,) = default.invoke(query, weights=weights, k=1)
        evidence = document.metadata["nodekin"]["evidence"]
        assert {match["group"] for match in evidence} == {group}


async def test_filter_in_the_constructor_and_in_the_call(native):
    retriever = NodeGraphRetriever(retriever=native, filter={"topic": "tea"})
    assert ids(retriever.invoke("tea")) == ["tea"]
    assert retriever.invoke("tea", filter={"topic": ["rivers", "printing"]}) == []
    assert ids(retriever.invoke("tea", filter={"topic": ["rivers", "tea"]})) == ["tea"]
    others = retriever.model_copy(update={"filter": {"topic": ["rivers", "printing"]}})
    assert ids(others.invoke("tea")) == ["rivers", "press"]
    assert await retriever.ainvoke("tea", filter={"language": "zh"}) == []
    assert ids(await retriever.ainvoke("茶", filter={"language": "zh"})) == ["茶"]


async def test_score_threshold_in_the_constructor_and_in_the_call(native):
    found = native.retrieve("tea by rivers")
    best = found[0].score
    assert best > found[-1].score
    retriever = NodeGraphRetriever(retriever=native, score_threshold=best)
    assert ids(retriever.invoke("tea by rivers")) == [found[0].node.id]
    assert len(await retriever.ainvoke("tea by rivers", score_threshold=-1)) == len(found)
    assert await retriever.ainvoke("tea by rivers", score_threshold=best + 1) == []


@pytest.mark.parametrize("typo", ["top_k", "filters", "search_kwargs"])
def test_an_unknown_constructor_argument_is_refused(native, typo):
    with pytest.raises(ValidationError, match=typo):
        NodeGraphRetriever(retriever=native, **{typo: 1})


def test_a_threshold_that_is_nan_is_refused(native, retriever):
    with pytest.raises(ValueError, match="NaN"):
        retriever.invoke("tea", score_threshold=float("nan"))
    with pytest.raises(ValidationError, match="finite"):
        NodeGraphRetriever(retriever=native, score_threshold=float("nan"))


def test_what_is_no_retriever_is_refused(graph):
    with pytest.raises(TypeError, match=r"retriever is an object with retrieve.*not 3"):
        NodeGraphRetriever(retriever=3)


@pytest.mark.parametrize("details", ["flat", "yes", 2, None])
def test_details_of_no_kind_are_refused(native, details):
    with pytest.raises(ValidationError, match=r"details\n.*False, True or 'nested'"):
        NodeGraphRetriever(retriever=native, details=details)


def test_construction_does_not_touch_the_engine(graph):
    class Untouchable:
        def retrieve(self, query, *, top_k=None, filters=None):
            raise AssertionError

        aretrieve = retrieve

        def __deepcopy__(self, memo):
            raise AssertionError

        def __iter__(self):
            raise AssertionError

        def __len__(self):
            raise AssertionError

    engine = Untouchable()
    assert NodeGraphRetriever(retriever=engine).retriever is engine


async def test_child_k_in_the_constructor_and_in_the_call(native):
    def matches(documents):
        return [(d.id, len(d.metadata["nodekin"]["evidence"])) for d in documents]

    query, nested = "Which tea is fermented?", {"retriever": native, "details": "nested"}
    assert matches(NodeGraphRetriever(**nested, k=1).invoke(query)) == [("tea", 1)]
    retriever = NodeGraphRetriever(**nested, k=1, child_k=3)
    assert matches(retriever.invoke(query)) == [("tea", 3)]
    assert matches(await retriever.ainvoke(query)) == [("tea", 3)]
    assert matches(retriever.invoke(query, k=9, child_k=1)) == [("tea", 1)]
    assert len(await retriever.ainvoke(query, k=9, child_k=99)) == 3


async def test_arguments_of_a_call_reach_what_others_hold(native, graph):
    fusion = FusionRetriever([native, Retriever(graph, "sentence", target="ROOT", lift="sum")])
    retriever = NodeGraphRetriever(
        retriever=RerankRetriever(
            fusion, "ModuleReranker", model=lambda query, texts: [1.0] * len(texts)
        )
    )
    asked = {"k": 5, "child_k": 1}
    assert ids(retriever.invoke("Which tea is fermented?", **asked)) == ["tea"]
    assert ids(await retriever.ainvoke("Which tea is fermented?", **asked)) == ["tea"]
    asked = {"k": 1, "filter": {"topic": ["rivers", "printing"]}}
    assert len(retriever.invoke("tea", **asked)) == 1
    assert set(ids(await retriever.ainvoke("tea", **{**asked, "k": 9}))) == {"rivers", "press"}


# The documents


def test_changing_a_result_changes_nothing_else(graph):
    graph.add(Document("Tea with tags.", metadata={"tags": ["a"], "topic": "tags"}, id="tags"))
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "sentence", target="ROOT"))
    before = retriever.invoke("tags")
    spoilt = retriever.invoke("tags")
    assert before == spoilt
    assert before[0] is not spoilt[0]
    spoilt[0].metadata["tags"].append("b")
    spoilt[0].metadata["topic"] = "spoilt"
    spoilt[0].page_content = "spoilt"
    assert retriever.invoke("tags") == before
    assert graph.node("tags").metadata == {"tags": ["a"], "topic": "tags"}


def test_evidence_tells_what_matched(native, graph):
    query = "Do rivers dry out?"
    (document,) = NodeGraphRetriever(retriever=native, details="nested").invoke(query, k=1)
    (match, *_) = document.metadata["nodekin"]["evidence"]
    assert match["text"] == "Some rivers dry out."
    assert match["group"] == "sentence"
    assert match["similarity"] == "bm25"
    assert match["query"] == "Do rivers dry out?"
    assert match["score"] == document.metadata["nodekin"]["score"]
    assert graph.node("rivers").text[match["start"] : match["end"]] == match["text"]
    assert graph.node(match["id"]).parent.id == document.id


# Any retriever


class Fixed:
    """A retriever of a user's own: subclassing is not required."""

    def __init__(self, *found):
        self.found = list(found)

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.found[:top_k]

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


async def test_any_object_with_the_two_methods_will_do():
    node = Node("Tea", {"page": 1}, id="n1")
    retriever = NodeGraphRetriever(retriever=Fixed(ScoredNode(node, 2)))
    assert retriever.invoke("tea") == [to_document(ScoredNode(node, 2.0))]
    assert await retriever.ainvoke("tea") == retriever.invoke("tea")


# Asynchronous life


async def test_nothing_blocks_the_event_loop(retriever):
    with blockbuster_ctx():
        assert ids(await retriever.ainvoke("fermented tea", k=1)) == ["tea"]
        assert len(await retriever.abatch(["tea", "rivers", "茶"])) == 3


async def test_the_loop_runs_while_a_group_is_built(graph):
    turned = threading.Event()

    def slow(text):
        assert turned.wait(300), "the loop was blocked"
        return text.split()

    graph.create_node_group("slow", slow)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "slow"))
    call = asyncio.create_task(retriever.ainvoke("tea"))
    for _ in range(6):
        await asyncio.sleep(0.005)
    assert not call.done()
    turned.set()
    assert await call


class Nosy(Fixed):
    """Notes the LangChain config around it."""

    def retrieve(self, query, *, top_k=None, filters=None):
        self.config = var_child_runnable_config.get()
        return []

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await asyncio.to_thread(self.retrieve, query)


async def test_the_config_surrounds_the_search():
    config = {
        "configurable": {"user": "u1"},
        "max_concurrency": 3,
        "tags": ["t"],
        "metadata": {"m": 1},
        "run_name": "outer",
    }
    nosy = Nosy()
    retriever = NodeGraphRetriever(retriever=nosy)
    for call in ("sync", "async"):
        nosy.config = None
        retriever.invoke("x", config) if call == "sync" else await retriever.ainvoke("x", config)
        assert nosy.config["configurable"] == {"user": "u1"}
        assert nosy.config["max_concurrency"] == 3
        assert nosy.config["tags"] == ["t"]
        assert "run_name" not in nosy.config
        assert var_child_runnable_config.get() is None


# Serialisation


def test_pickle_round_trip_with_its_graph(retriever):
    retriever.invoke("tea")
    again = pickle.loads(pickle.dumps(retriever))
    assert again.invoke("fermented tea") == retriever.invoke("fermented tea")


def test_what_can_not_be_pickled_is_named(graph):
    graph.create_node_group("words", lambda text: text.split())
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "words"))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(retriever)


def test_it_is_not_serializable_by_langchain(retriever):
    assert not NodeGraphRetriever.is_lc_serializable()
    assert dumpd(retriever)["type"] == "not_implemented"


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"k": 0}, ValueError, "^k must be 1 or more, not 0"),
        ({"k": "3"}, TypeError, "^k is a whole number, not '3'"),
        ({"child_k": 0}, ValueError, "^child_k must be 1 or more"),
        ({"score_threshold": "a"}, TypeError, "^score_threshold is a number, not 'a'"),
        ({"kk": 1}, TypeError, r"no argument 'kk'; there is k, child_k, filter, score_threshold"),
        ({"top_k": 1}, TypeError, r"no argument 'top_k'; there is k, "),
    ],
)
async def test_errors_of_a_retriever_are_in_langchains_words(retriever, arguments, error, says):
    with pytest.raises(error, match=says):
        retriever.invoke("tea", **arguments)
    with pytest.raises(error, match=says):
        await retriever.ainvoke("tea", **arguments)
    with pytest.raises(error, match=says):
        retriever.batch(["tea", "coffee"], **arguments)


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


def test_schemas_and_graph(retriever):
    assert retriever.get_input_jsonschema()["type"] == "string"
    assert retriever.get_output_jsonschema()["type"] == "array"
    names = [node.name for node in retriever.get_graph().nodes.values()]
    assert "NodeGraphRetriever" in names
    chain = retriever | RunnableLambda(len, name="count")
    assert "NodeGraphRetriever" in chain.get_graph().draw_mermaid()


async def test_with_config(retriever):
    seen = []
    named = retriever.with_config(run_name="look up", tags=["t"]).with_listeners(
        on_start=lambda run: seen.append((run.name, run.tags))
    )
    assert ids(named.invoke("fermented tea", k=1)) == ["tea"]
    assert ids(await named.ainvoke("fermented tea", k=1)) == ["tea"]
    assert seen == [("look up", ["t"])] * 2


async def test_bind(retriever):
    bound = retriever.bind(k=1, filter={"topic": "rivers"})
    assert ids(bound.invoke("tea")) == ["rivers"]
    assert ids(await bound.ainvoke("tea")) == ["rivers"]
    assert ids((RunnableLambda(str.lower) | bound).invoke("TEA")) == ["rivers"]


async def test_with_retry(native):
    def retrying(times):
        return NodeGraphRetriever(retriever=Failing(native, times)).with_retry(
            stop_after_attempt=3, wait_exponential_jitter=False
        )

    assert len(retrying(2).invoke("tea")) == 3
    assert len(await retrying(2).ainvoke("tea")) == 3
    with pytest.raises(ConnectionError):
        retrying(3).invoke("tea")


async def test_with_fallbacks(native, retriever):
    failing = NodeGraphRetriever(retriever=Failing(native, 10**6))
    assert failing.with_fallbacks([retriever]).invoke("tea") == retriever.invoke("tea")
    safe = failing.with_fallbacks([retriever])
    assert await safe.ainvoke("tea") == retriever.invoke("tea")


async def test_configurable_fields(retriever, native):
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"),
        filter=ConfigurableField(id="filter"),
        score_threshold=ConfigurableField(id="threshold"),
        retriever=ConfigurableField(id="engine"),
    )
    assert len(configurable.invoke("tea")) == 3
    assert len(configurable.invoke("tea", {"configurable": {"k": 1}})) == 1
    config = {"configurable": {"k": 2, "filter": {"topic": "printing"}}}
    assert ids(await configurable.ainvoke("tea", config)) == ["press"]
    assert configurable.with_config(configurable={"threshold": 1e6}).invoke("tea") == []
    assert retriever.k is None
    prepared, _ = configurable.prepare({"configurable": {"k": 1}})
    assert prepared.retriever is native


async def test_configurable_alternatives(retriever, graph):
    lines = NodeGraphRetriever(retriever=Retriever(graph, "sentence"))
    either = retriever.configurable_alternatives(
        ConfigurableField(id="answer_with"), default_key="documents", sentences=lines
    )
    config = {"configurable": {"answer_with": "sentences"}}
    assert either.invoke("fermented tea") == retriever.invoke("fermented tea")
    assert either.invoke("fermented tea", config) == lines.invoke("fermented tea")
    assert await either.ainvoke("fermented tea", config) == lines.invoke("fermented tea")
    assert [d.page_content for d in either.invoke("black tea", config, k=1)] == [
        "Black tea is fermented."
    ]


ANSWER = "Black tea is fermented."


@pytest.fixture
def model():
    return FakeListChatModel(responses=[ANSWER])


@pytest.fixture
def prompt():
    return ChatPromptTemplate.from_template("{context}\n\nQuestion: {input}")


def joined(documents):
    return "\n".join(document.page_content for document in documents)


QUESTIONS = ["Which tea is fermented?", "红茶发酵吗？"]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_lcel_chain_gets_the_same_nodes(retriever, native, model, prompt, question):
    answer = (
        {"context": lambda x: joined(x["documents"]), "input": lambda x: x["input"]}
        | prompt
        | model
        | StrOutputParser()
    )
    chain = RunnableParallel(documents=retriever, input=RunnablePassthrough()).assign(answer=answer)
    alone = [each.node.id for each in native.retrieve(question)]
    for result in (chain.invoke(question), await chain.ainvoke(question)):
        assert result["answer"] == ANSWER
        assert [document.id for document in result["documents"]] == alone
    pieces = [each["answer"] for each in chain.stream(question) if "answer" in each]
    assert len(pieces) > 1
    assert "".join(pieces) == ANSWER
    pieces = [each["answer"] async for each in chain.astream(question) if "answer" in each]
    assert "".join(pieces) == ANSWER


async def test_a_retrieval_chain(retriever, native, model, prompt):
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model, prompt))
    expected = [each.node.id for each in native.retrieve("fermented tea")]
    for result in (
        chain.invoke({"input": "fermented tea"}),
        await chain.ainvoke({"input": "fermented tea"}),
    ):
        assert result["answer"] == ANSWER
        assert [d.id for d in result["context"]] == expected


def test_a_history_aware_retriever(retriever):
    rewriter = FakeListChatModel(responses=["Which tea is fermented?"])
    prompt = ChatPromptTemplate.from_messages(
        [("placeholder", "{chat_history}"), ("user", "{input}")]
    )
    aware = create_history_aware_retriever(rewriter, retriever, prompt)
    found = aware.invoke({"input": "And this one?", "chat_history": [("user", "Tea?")]})
    assert found == retriever.invoke("Which tea is fermented?")


async def test_a_retriever_tool(retriever):
    tool = create_retriever_tool(retriever, "tea", "Looks up tea.")
    expected = "\n\n".join(d.page_content for d in retriever.invoke("fermented tea"))
    assert tool.invoke({"query": "fermented tea"}) == expected
    assert await tool.ainvoke({"query": "fermented tea"}) == expected


def test_a_retriever_tool_with_documents(retriever):
    tool = create_retriever_tool(
        retriever, "tea", "Looks up tea.", response_format="content_and_artifact"
    )
    call = {"type": "tool_call", "id": "1", "name": "tea", "args": {"query": "fermented tea"}}
    assert tool.invoke(call).artifact == retriever.invoke("fermented tea")
