"""A query engine as a runnable that streams."""

import asyncio
import contextvars
import pickle

import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.chains import RetrievalQA
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField
from langchain_peers import face, ids
from langchain_runs import FinishedRuns, call, pieces_of
from pydantic import ValidationError

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphVectorStore, answer_tool
from nodekin.adapters.langchain.query_engine import join_chunks, read_question
from nodekin.retrievers import (
    QueryEngine,
    RecursiveRetriever,
    Retriever,
    check_quotes,
    trace,
)
from nodekin.retrievers.answers.answer import AnswerError

ANSWER = "Black tea is fermented [1]."


def tree(run):
    return (run.name, [tree(child) for child in run.child_runs])


ASK = ("ask", [("FakeListChatModel", [])])
RUN = ("NodeGraphQueryEngine", [("answer", [("retrieve", [("search", [])]), ASK])])


@pytest.fixture
def model():
    return FakeListChatModel(responses=[ANSWER])


@pytest.fixture
def native_engine(native, model):
    return QueryEngine(native, model)


@pytest.fixture
def engine(native_engine):
    return NodeGraphQueryEngine(engine=native_engine)


@pytest.fixture
def full(native_engine):
    return NodeGraphQueryEngine(engine=native_engine, output="dict")


def test_first_lines(native, native_engine, model, retriever):
    for engine in (NodeGraphQueryEngine(native, model), NodeGraphQueryEngine(retriever, model)):
        assert engine.invoke("Which tea is fermented?") == ANSWER
    assert NodeGraphQueryEngine(native_engine).engine is native_engine
    with pytest.raises(TypeError, match=r"NodeGraphQueryEngine\(retriever, llm\)"):
        NodeGraphQueryEngine(native)
    with pytest.raises(TypeError, match="engine has its model"):
        NodeGraphQueryEngine(native_engine, model)


WAYS = ["invoke", "ainvoke", "stream", "astream", "batch", "abatch"]
every_way = pytest.mark.parametrize("way", WAYS)


HISTORY = [HumanMessage("Which teas are there?"), AIMessage("Green and black.")]
QUESTIONS = [
    "Which tea is fermented?",
    "红茶是全发酵的茶吗？",
    {"question": "Which tea is fermented?"},
    {"input": "Which tea is fermented?", "other": 3},
    {"query": "Which tea is fermented?", "chat_history": []},
    HumanMessage("Which tea is fermented?"),
    [SystemMessage("Be brief."), ("human", "Which tea is fermented?")],
    ChatPromptTemplate.from_template("Which {what} is fermented?").invoke({"what": "tea"}),
]


@every_way
@pytest.mark.parametrize("given", QUESTIONS, ids=range(len(QUESTIONS)))
async def test_forms_of_a_question(engine, full, native_engine, way, given):
    assert await call(engine, way, given) == ANSWER
    made = await call(full, way, given)
    question = "红茶是全发酵的茶吗？" if "红茶" in str(given) else "Which tea is fermented?"
    answer = native_engine.query(question)
    assert (made["answer"], made["question"]) == (answer.text, question)
    assert [d.id for d in made["context"]] == [s.result.node.id for s in answer.sources]
    assert [s["cited"] for s in made["sources"]] == [s.cited for s in answer.sources]
    assert made["found"] is True


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_pieces_come_as_the_model_writes(engine, full, way):
    pieces = await pieces_of(engine, way, "fermented tea")
    assert len(pieces) > 5
    assert "".join(pieces) == ANSWER
    first, *answer, last = await pieces_of(full, way, "fermented tea")
    assert list(first) == ["question", "context"]
    assert [d.id for d in first["context"]] == ["tea", "rivers", "press"]
    assert [piece["answer"] for piece in answer] == pieces
    assert list(last) == ["sources", "found", "notes"]
    assert [s["number"] for s in last["sources"] if s["cited"]] == [1]


@every_way
async def test_nothing_found_asks_no_model(native, full, way):
    made = await call(full, way, "zeppelin")
    assert made["found"] is False
    assert (made["context"], made["sources"]) == ([], [])
    assert made["answer"] == "Nothing was found that answers this question."
    assert (await call(full, way, "齐柏林飞艇？"))["answer"] == "没有找到可以回答这个问题的资料。"


@every_way
async def test_the_calls_filter_is_added_to_the_own_one(native_engine, way):
    own = NodeGraphQueryEngine(
        engine=native_engine, output="dict", k=2, filter={"topic": ["tea", "rivers"]}
    )
    assert [d.id for d in (await call(own, way, "tea 红茶"))["context"]] == ["茶", "tea"]
    made = await call(own, way, "tea 红茶", filter={"language": "en"})
    assert [d.id for d in made["context"]] == ["tea", "rivers"]
    made = await call(own, way, "tea 红茶", filter={"topic": ["rivers", "printing"]})
    assert [d.id for d in made["context"]] == ["rivers"]
    assert [d.id for d in (await call(own, way, "tea", filter={"topic": "x"}))["context"]] == []


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"questions": "tea"}, ValueError, "questions"),
        ({"chat_history": []}, ValueError, "question"),
        (3, TypeError, "3"),
        ([], TypeError, "question"),
        ([AIMessage("I ask you?")], ValueError, "last message"),
        ({"input": "x", "chat_history": "what was said"}, TypeError, "chat_history"),
    ],
)
@every_way
async def test_what_is_no_question(engine, way, given, error, match):
    with pytest.raises(error, match=match):
        await call(engine, way, given)


CONVERSATIONS = [
    {"input": "Which is fermented?", "chat_history": HISTORY},
    {"input": "Which is fermented?", "chat_history": [("human", "Which teas?"), ("ai", "Green")]},
    {"input": [*HISTORY, HumanMessage("Which is fermented?")]},
    [*HISTORY, HumanMessage("Which is fermented?")],
    [HISTORY[0], AIMessageChunk("Green and black."), {"role": "user", "content": "Which is it?"}],
    [HISTORY[0], AIMessage("Green."), HumanMessage([{"type": "text", "text": "Eh?"}])],
]  # fmt: skip


@every_way
@pytest.mark.parametrize("given", CONVERSATIONS, ids=range(len(CONVERSATIONS)))
async def test_a_conversation_is_condensed_to_a_question(native, way, given):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return "Which tea is fermented?" if "Conversation:" in prompt else ANSWER

    engine = NodeGraphQueryEngine(engine=QueryEngine(native, model))
    assert await call(engine, way, given) == ANSWER
    condense, answer = asked
    assert "User: Which teas" in condense
    assert "Assistant: Green" in condense
    assert "Question: Which tea is fermented?" in answer


@every_way
async def test_the_runs(engine, way):
    seen = FinishedRuns()
    config = {"callbacks": [seen], "tags": ["t"], "metadata": {"user": "u"}}
    await call(engine, way, "fermented tea", config)
    (root,) = seen.roots
    assert tree(root) == RUN
    (answer,) = root.child_runs
    (llm,) = answer.child_runs[-1].child_runs
    assert llm.run_type == "llm"
    for run in (root, answer, llm):
        assert "t" in run.tags
        assert run.metadata["user"] == "u"
    assert answer.outputs["answer"] == ANSWER
    assert answer.error is None


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_question_that_comes_in_pieces(full, way):
    given = [{"question": "Which tea "}, {"question": "is fermented?"}, {"chat_history": []}]

    async def later():
        for each in given:
            yield each

    if way == "stream":
        pieces = list(full.transform(iter(given)))
    else:
        pieces = [piece async for piece in full.atransform(later())]
    assert pieces[0]["question"] == "Which tea is fermented?"
    with pytest.raises(TypeError, match="no question"):
        list(full.transform(iter([])))


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_what_a_consumer_does_between_pieces_is_not_the_engines(engine, retriever, way):
    """A run that is begun while an answer is streamed is no child of the engine's."""
    seen = FinishedRuns()
    before = contextvars.copy_context()
    with trace() as traced:
        if way == "stream":
            for _ in engine.stream("fermented tea", {"callbacks": [seen]}):
                retriever.invoke("tea")
        elif way == "astream":
            async for _ in engine.astream("fermented tea", {"callbacks": [seen]}):
                await retriever.ainvoke("tea")
        else:
            await call(engine, way, "fermented tea", {"callbacks": [seen]})
    names = [span.name for span in traced.children]
    assert names.count("answer") == 1
    assert set(names) <= {"answer", "search"}
    (answer,) = (span for span in traced.children if span.name == "answer")
    assert [span.name for span in answer.children] == ["retrieve", "ask"]
    assert answer.children[-1].children == []
    assert tree(seen.roots[0]) == RUN
    assert {var.name: value for var, value in contextvars.copy_context().items()}.keys() >= {
        var.name for var in before
    }


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_stream_that_is_left_in_the_middle_ends_everything(engine, full, way):
    for each, pieces in ((engine, 2), (full, 3)):
        seen = FinishedRuns()
        stream = getattr(each, way)("fermented tea", {"callbacks": [seen]})
        for _ in range(pieces):
            next(stream) if way == "stream" else await anext(stream)
        stream.close() if way == "stream" else await stream.aclose()
        (root,) = seen.roots
        assert tree(root) == RUN
        ended = [root, *root.child_runs, *root.child_runs[0].child_runs]
        assert all(run.end_time for run in ended)
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


class Endless(FakeListChatModel):
    """Never comes to an end, nor tells anything."""

    begun: object = None

    async def _agenerate(self, *args, **kwargs):
        self.begun.set()
        await asyncio.Event().wait()

    async def _astream(self, *args, **kwargs):
        self.begun.set()
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_a_cancelled_call_is_reported_and_raises(native, way):
    errors = []

    class Errors(BaseCallbackHandler):
        def on_chain_error(self, error, **kwargs):
            errors.append(type(error).__name__)

    begun = asyncio.Event()
    model = Endless(responses=["x"], begun=begun)
    engine = NodeGraphQueryEngine(engine=QueryEngine(native, model))
    task = asyncio.create_task(call(engine, way, "tea", {"callbacks": [Errors()]}))
    await begun.wait()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.01)
    assert set(errors) == {"CancelledError"}
    assert len(errors) == 3  # the run, the stages "answer" and "ask"
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


@every_way
async def test_a_model_that_fails_raises_or_falls_back(native, engine, way):
    def fails(prompt):
        raise RuntimeError("out of order")

    broken = NodeGraphQueryEngine(engine=QueryEngine(native, fails))
    seen = FinishedRuns()
    with pytest.raises(AnswerError, match="out of order") as caught:
        await call(broken, way, "fermented tea", {"callbacks": [seen]})
    assert caught.value.answer.sources[0].result.node.id == "tea"
    assert "out of order" in seen.roots[0].error
    assert await call(broken.with_fallbacks([engine]), way, "fermented tea") == ANSWER


@pytest.mark.parametrize("output", ["text", "dict"])
async def test_stream_events_without_blocking_the_loop(native_engine, output):
    engine = NodeGraphQueryEngine(engine=native_engine, output=output)
    given = {"input": "fermented tea", "chat_history": HISTORY}
    with blockbuster_ctx():
        assert await engine.ainvoke(given)
        events = [e async for e in engine.astream_events(given, version="v2")]
    kinds = {(e["event"], e["name"]) for e in events}
    assert ("on_retriever_start", "retrieve") in kinds
    assert ("on_chain_end", "search") in kinds
    assert ("on_chat_model_stream", "FakeListChatModel") in kinds
    pieces = [
        e["data"]["chunk"]
        for e in events
        if (e["event"], e["name"]) == ("on_chain_stream", "NodeGraphQueryEngine")
    ]
    text = pieces if output == "text" else [p["answer"] for p in pieces if "answer" in p]
    assert "".join(text) == ANSWER
    root = next(e for e in events if e["name"] == "NodeGraphQueryEngine")["run_id"]
    asked = next(e for e in events if e["event"] == "on_chat_model_start")
    assert asked["parent_ids"][0] == root


def test_fields_are_configurable(engine, native_engine):
    chosen = engine.configurable_fields(output=ConfigurableField("output"))
    made = chosen.invoke("fermented tea", {"configurable": {"output": "dict"}})
    assert made["answer"] == chosen.invoke("fermented tea") == ANSWER
    other = NodeGraphQueryEngine(engine=QueryEngine(native_engine.retriever, lambda p: "Other."))
    either = engine.configurable_alternatives(ConfigurableField("engine"), other=other)
    assert either.with_config(configurable={"engine": "other"}).invoke("tea") == "Other."


def test_it_is_pickled(native):
    engine = NodeGraphQueryEngine(engine=QueryEngine(native, loud), output="dict", k=1)
    again = pickle.loads(pickle.dumps(engine))
    assert again.invoke("fermented tea") == engine.invoke("fermented tea")
    assert list(again.engine.prompts) == list(engine.engine.prompts)


def loud(prompt):
    return ANSWER.upper()


def test_it_says_what_it_takes_and_gives(engine, full):
    assert engine.get_input_jsonschema()
    assert engine.get_output_jsonschema()["type"] == "string"
    assert full.get_output_jsonschema()["type"] == "object"
    assert engine.is_lc_serializable() is False


@pytest.mark.parametrize(
    "settings",
    [{"k": 0}, {"k": True}, {"child_k": 0}, {"output": "json"}, {"top_k": 3},
     {"details": "flat"}],
)  # fmt: skip
def test_settings_are_checked(native_engine, settings):
    with pytest.raises(ValidationError):
        NodeGraphQueryEngine(engine=native_engine, **settings)


class Reads(BaseChatModel):
    """Answers from what is in its prompt, in the form that it is asked for."""

    @property
    def _llm_type(self):
        return "reads"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        # What the prompts of map_rerank give as examples is before "DO NOT", or has no tea.
        asked = "\n".join(str(message.content) for message in messages)
        known = "Black tea is fermented" in asked
        answer = "Black tea is fermented." if known else "This document does not answer it"
        if "Score:" in asked:
            answer += f"\nScore: {100 if known else 0}"
        elif "Confidence:" in asked:
            answer = f"Answer: {answer}\nConfidence: {100 if known else 0}"
        elif not known:
            answer = "NO_ANSWER" if "NO_ANSWER" in asked else answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
@pytest.mark.filterwarnings("ignore:The apply_and_parse method is deprecated")
@pytest.mark.parametrize("kind", ["stuff", "refine", "map_reduce", "map_rerank"])
def test_retrieval_qa(peer_graph, kind):
    search = Retriever(peer_graph, "ROOT", "cosine", top_k=3)
    theirs = RetrievalQA.from_chain_type(
        Reads(), kind, retriever=face(search), return_source_documents=True
    )
    if kind == "map_reduce":  # counts tokens with a model that has to be downloaded
        reduce = theirs.combine_documents_chain.reduce_documents_chain
        reduce.combine_documents_chain.llm_chain.llm.custom_get_token_ids = _characters
    engine = NodeGraphQueryEngine(engine=QueryEngine(search, Reads(), kind), output="dict")
    question = "Which tea is fermented?"
    made = engine.invoke({"query": question})
    known = theirs.invoke({"query": question})
    assert made["answer"] == known["result"] == "Black tea is fermented."
    assert ids(made["context"]) == ids(known["source_documents"])


def _characters(text):
    return list(map(ord, text))


@pytest.fixture
def answers(loaded_graph):
    model = FakeListChatModel(responses=["It is steamed [1]."])
    return NodeGraphQueryEngine(engine=QueryEngine(Retriever(loaded_graph, "ROOT", "bm25"), model))


@pytest.mark.filterwarnings("ignore:This API is in beta")
async def test_an_engine_is_a_tool(answers):
    tool = answers.as_tool(name="ask_tea", description="About tea.")
    assert list(tool.args) == ["question"]
    assert tool.invoke({"question": "green tea"}) == "It is steamed [1]."
    assert await tool.ainvoke({"question": "green tea"}) == "It is steamed [1]."


async def test_an_engine_is_a_node_of_a_langgraph_graph(answers):
    langgraph = pytest.importorskip("langgraph.graph", reason="the test needs langgraph")
    steps = langgraph.StateGraph(langgraph.MessagesState)
    steps.add_node("answer", answers | (lambda text: {"messages": [("ai", text)]}))
    steps.add_edge(langgraph.START, "answer")
    app = steps.compile()
    state = {"messages": [("human", "Hello."), ("ai", "Hello."), ("human", "green tea")]}
    for result in (app.invoke(state), await app.ainvoke(state)):
        assert result["messages"][-1].content == "It is steamed [1]."


def test_sources_are_titles_and_citations(loaded_graph, answers):
    full = answers.model_copy(update={"output": "dict"})
    answer = full.invoke("green tea")
    assert next(source["title"] for source in answer["sources"]) == "tea.md"
    tool = answer_tool(answers, "ask_tea", "About tea.")
    assert tool.invoke({"question": "green tea"}).endswith("Sources:\n[1] tea.md")


def test_errors_of_an_engine_and_a_store_are_in_langchains_words(answers, loaded_graph):
    store = NodeGraphVectorStore(loaded_graph)
    for search in (answers.invoke, store.similarity_search, store.max_marginal_relevance_search):
        with pytest.raises(ValueError, match=r"^k must be 1 or more, not 0"):
            search("tea", k=0)
        with pytest.raises(TypeError, match=r"no argument 'kk'; there is k, .*filter"):
            search("tea", kk=1)


def test_a_history_has_no_messages_of_tools_and_the_system():
    history = [
        SystemMessage("Be brief."),
        HumanMessage("Nile?"),
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
        ToolMessage("6,650 km", tool_call_id="1"),
        AIMessage("A river."),
    ]
    last = ChatMessage(["How", {"type": "text", "text": "long?"}, {"type": "image"}], role="human")
    question = read_question({"question": [last], "chat_history": history}, None, "chat_history")
    expected = [("user", "Nile?"), ("assistant", "A river.")]
    assert question.history == [{"role": role, "content": text} for role, text in expected]
    assert question.text == "How\nlong?"
    assert join_chunks([{"a": "x"}, {"a": "y", "b": [1]}, {"b": [2]}]) == {"a": "xy", "b": [1, 2]}


@every_way
async def test_settings_of_the_engine_and_the_call(graph, native_engine, model, way):
    pool = RecursiveRetriever(graph, groups=["sentence"], target="ROOT", top_k=3)
    full = NodeGraphQueryEngine(engine=QueryEngine(pool, model), output="dict")
    assert len((await call(full, way, "tea"))["context"]) == 3
    assert len((await call(full, way, "tea", child_k=1))["context"]) == 1
    keys = {"question_key": "frage", "history_key": "verlauf"}
    named = NodeGraphQueryEngine(engine=native_engine, output="dict", details=True, **keys)
    answer = await call(named, way, {"frage": "fermented tea", "question": "?", "verlauf": []}, k=1)
    assert answer["question"] == "fermented tea"
    (document,), (source,) = answer["context"], answer["sources"]
    start, end = document.metadata["start"], document.metadata["end"]
    assert document.page_content[start:end] == document.metadata["evidence"]
    assert (source["number"], source["id"], source["document_id"]) == (1, "tea", "tea")
    assert type(source["score"]) is type(document.metadata["score"]) is float
    assert source["text"] == document.page_content
    with pytest.raises(TypeError, match="filters"):
        await call(named, way, "tea", filters={})


def test_quotations_are_in_the_output(native):
    engine = QueryEngine(native, lambda prompt: "It is “Fermented” [1].", check="quotes")
    answer = NodeGraphQueryEngine(engine=engine, output="dict").invoke("Is black tea fermented?")
    (quote,) = answer["quotes"]
    assert (quote["status"], quote["source"]) == ("same_letters", 1)
    assert check_quotes(answer).quotes[0].status == "same_letters"  # as after any other chain
