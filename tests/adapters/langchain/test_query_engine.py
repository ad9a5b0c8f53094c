"""engine_runnable: answers as text or mappings, streamed, with history and runs."""

import asyncio
import pickle

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from support.langchain_runs import FinishedRuns, call, pieces_of, tree

from nodekin.adapters.langchain import engine_runnable
from nodekin.retrievers import QueryEngine, trace
from nodekin.retrievers.answers.answer import AnswerError

QUESTION = "Which tea is fermented?"
ANSWER = "Black tea is fermented [1]."
WAYS = ["invoke", "ainvoke", "stream", "astream", "batch", "abatch"]
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def native_engine(native):
    return QueryEngine(native, FakeListChatModel(responses=[ANSWER]))


@pytest.fixture
def text(native_engine):
    return engine_runnable(native_engine)


@pytest.fixture
def full(native_engine):
    return engine_runnable(native_engine, output="dict")


def test_other_objects_raise(native):
    with pytest.raises(TypeError, match=r"engine must be a QueryEngine\(retriever, llm\)"):
        engine_runnable(native)


HISTORY = [HumanMessage("Which teas are there?"), AIMessage("Green and black.")]
QUESTIONS = [
    QUESTION,
    {"question": QUESTION},
    {"input": QUESTION, "other": 3},
    {"query": QUESTION, "chat_history": []},
    {"messages": [("human", QUESTION)]},
    HumanMessage(QUESTION),
    [SystemMessage("Be brief."), ("human", QUESTION)],
    ChatPromptTemplate.from_template("Which {what} is fermented?").invoke({"what": "tea"}),
]


@pytest.mark.parametrize("given", QUESTIONS, ids=range(len(QUESTIONS)))
async def test_every_form_of_question_is_answered(text, full, native_engine, mode, given):
    assert await call(text, mode, given) == ANSWER
    made = await call(full, mode, given)
    answer = native_engine.query(QUESTION)
    assert (made["answer"], made["question"], made["found"]) == (answer.text, QUESTION, True)
    assert [d.id for d in made["context"]] == [s.result.node.id for s in answer.sources]
    assert made["context"][0].metadata["relevance_score"] > 0
    assert [s["cited"] for s in made["sources"]] == [s.cited for s in answer.sources]


@every_way
async def test_every_method_returns_the_answer(text, full, way):
    assert await call(text, way, QUESTION) == ANSWER
    made = await call(full, way, QUESTION)
    assert list(made) == ["question", "context", "answer", "sources", "found", "notes"]
    assert made["answer"] == ANSWER


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_stream_yields_documents_then_text(text, full, way):
    pieces = await pieces_of(text, way, "fermented tea")
    assert len(pieces) > 5
    assert "".join(pieces) == ANSWER
    first, *answer, last = await pieces_of(full, way, "fermented tea")
    assert [d.id for d in first["context"]] == ["tea", "rivers", "press"]
    assert [piece["answer"] for piece in answer] == pieces
    assert [s["number"] for s in last["sources"] if s["cited"]] == [1]


@every_way
async def test_nothing_found_asks_no_model(full, way):
    made = await call(full, way, "zeppelin")
    assert (made["found"], made["context"], made["sources"]) == (False, [], [])
    assert made["answer"] == "Nothing was found that answers this question."


@every_way
async def test_k_and_filter_of_call_apply(full, way):
    made = await call(full, way, "tea 红茶", k=2, filter={"language": "en"})
    assert [d.id for d in made["context"]] == ["tea", "rivers"]
    made = await call(full, way, "tea 红茶", filter={"topic": {"$in": ["rivers"]}})
    assert [d.id for d in made["context"]] == ["rivers"]


@pytest.mark.parametrize(
    ("given", "options", "error", "match"),
    [
        ({"questions": "tea"}, {}, ValueError, "one of the keys question, input.*questions"),
        ([], {}, ValueError, "last message"),
        ([AIMessage("I ask you?")], {}, ValueError, "last message"),
        (QUESTION, {"top_k": 3}, TypeError, "has no argument 'top_k'; use k="),
        (QUESTION, {"k": 0}, ValueError, "top_k"),
        (QUESTION, {"filter": {"a": {"$b": 1}}}, ValueError, "takes one or more of"),
    ],
)
async def test_wrong_input_raises(text, mode, given, options, error, match):
    with pytest.raises(error, match=match):
        await call(text, mode, given, **options)


CONVERSATIONS = [
    {"input": "Which is fermented?", "chat_history": HISTORY},
    {"input": "Which is fermented?", "chat_history": [("human", "Which teas?"), ("ai", "Green")]},
    [*HISTORY, HumanMessage("Which is fermented?")],
    [HISTORY[0], AIMessage("Green."), HumanMessage([{"type": "text", "text": "Eh?"}])],
    [*HISTORY, ToolMessage("x", tool_call_id="1"), {"role": "user", "content": "Which is it?"}],
]


@pytest.mark.parametrize("given", CONVERSATIONS, ids=range(len(CONVERSATIONS)))
async def test_conversation_is_condensed(native, mode, given):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return QUESTION if "Conversation:" in prompt else ANSWER

    assert await call(engine_runnable(QueryEngine(native, model)), mode, given) == ANSWER
    condense, answer = asked
    assert "User: Which teas" in condense
    assert "Assistant: Green" in condense
    assert f"Question: {QUESTION}" in answer


# Runs

MODEL = ("FakeListChatModel", [])
RUNS = {
    "sync": ("query_engine", [("answer", [("ask", [MODEL]), ("retrieve", [("search", [])])])]),
    "async": ("query_engine", [MODEL]),
}


@every_way
async def test_stages_and_model_are_nested_runs(text, way):
    seen = FinishedRuns()
    config = {"callbacks": [seen], "tags": ["t"], "metadata": {"user": "u"}}
    await call(text, way, "fermented tea", config)
    (root,) = seen.roots
    assert tree(root) == RUNS["async" if way.startswith("a") else "sync"]
    while root.child_runs:
        root = root.child_runs[-1]
        assert "t" in root.tags
        assert root.metadata["user"] == "u"


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_runs_between_chunks_are_not_children(text, retriever, way):
    seen = FinishedRuns()
    with trace() as traced:
        if way == "stream":
            for _ in text.stream("fermented tea", {"callbacks": [seen]}):
                retriever.invoke("tea")
        else:
            async for _ in text.astream("fermented tea", {"callbacks": [seen]}):
                await retriever.ainvoke("tea")
    assert {span.name for span in traced.children} <= {"answer", "search"}
    assert tree(seen.roots[0]) == RUNS["async" if way == "astream" else "sync"]


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_abandoned_stream_ends_all_runs(text, full, way):
    for each, pieces in ((text, 2), (full, 3)):
        seen = FinishedRuns()
        stream = getattr(each, way)("fermented tea", {"callbacks": [seen]})
        for _ in range(pieces):
            next(stream) if way == "stream" else await anext(stream)
        stream.close() if way == "stream" else await stream.aclose()
        (root,) = seen.roots
        assert root.end_time
        assert all(run.end_time for run in root.child_runs)
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []


@every_way
async def test_failing_model_raises_or_falls_back(native, text, way):
    def fails(prompt):
        raise RuntimeError("out of order")

    broken = engine_runnable(QueryEngine(native, fails))
    seen = FinishedRuns()
    with pytest.raises(AnswerError, match="out of order") as caught:
        await call(broken, way, "fermented tea", {"callbacks": [seen]})
    assert caught.value.answer.sources[0].result.node.id == "tea"
    assert "out of order" in seen.roots[0].error
    assert await call(broken.with_fallbacks([text]), way, "fermented tea") == ANSWER


@pytest.mark.parametrize("output", ["text", "dict"])
async def test_stream_events_do_not_block_loop(native_engine, output):
    runnable = engine_runnable(native_engine, output=output)
    given = {"input": "fermented tea", "chat_history": HISTORY}
    with blockbuster_ctx():
        assert await runnable.ainvoke(given)
        events = [e async for e in runnable.astream_events(given, version="v2")]
    kinds = {(e["event"], e["name"]) for e in events}
    assert ("on_chat_model_stream", "FakeListChatModel") in kinds
    pieces = [
        e["data"]["chunk"]
        for e in events
        if (e["event"], e["name"]) == ("on_chain_stream", "query_engine")
    ]
    texts = pieces if output == "text" else [p["answer"] for p in pieces if "answer" in p]
    assert "".join(texts) == ANSWER


def loud(prompt):
    return "Black tea is fermented [1]."


def test_runnable_is_picklable_and_in_chains(native):
    runnable = pickle.loads(pickle.dumps(engine_runnable(QueryEngine(native, loud), output="dict")))
    chain = RunnableLambda(str.lower) | runnable | (lambda answer: answer["context"][0].id)
    assert chain.invoke(QUESTION.upper()) == "tea"


def test_checked_quotes_are_in_the_output(native):
    answer = 'It says "Black tea is fermented." [1]'
    engine = QueryEngine(native, lambda prompt: answer, check="quotes")
    made = engine_runnable(engine, output="dict").invoke(QUESTION)
    assert [quote["status"] for quote in made["quotes"]] == ["exact"]
