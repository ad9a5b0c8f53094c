"""Every way of answering against a server that speaks the protocol, and misbehaves."""

from __future__ import annotations

import asyncio

import openai
import pytest
from support.scripted_server import BREAKDOWNS, ChatServer, serving

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import QueryEngine, Retriever
from nodekin.retrievers.answers.answer import AnswerError

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
MODES = ["stuff", "refine", "map_reduce", "map_rerank"]
TEXTS = ["绿茶不发酵。Green tea is not fermented.", "Black tea is fermented.", "A river runs."]
QUESTION = "Is green tea fermented?"
SAID = "It is not fermented [1]."


@pytest.fixture
def server(socket_enabled):
    with serving(ChatServer()) as server:
        server.text = SAID
        yield server


@pytest.fixture
def chat(server):
    settings = {"base_url": server.url, "api_key": "-", "max_retries": 0}
    with openai.OpenAI(**settings) as client:
        yield OpenAIChat("abc", client=client)


@pytest.fixture(scope="module")
def plain():
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return Retriever(graph, "ROOT", "bm25", top_k=2)


async def every_way(engine):
    with engine.stream(QUESTION) as pieces:
        streamed = "".join(pieces)
    astreamed = "".join([piece async for piece in engine.astream(QUESTION)])
    return [engine.query(QUESTION).text, (await engine.aquery(QUESTION)).text, streamed, astreamed]


@pytest.mark.parametrize("mode", MODES)
async def test_query_engine_answers_equal_in_every_way(server, chat, plain, mode):
    engine = QueryEngine(plain, chat, mode)
    assert set(await every_way(engine)) == {SAID}
    answer = engine.query(QUESTION)
    assert [source.text for source in answer.cited] == TEXTS[:1]
    assert any(body.get("stream") for body in server.asked) == (mode != "map_rerank")


@pytest.mark.parametrize("misbehave", BREAKDOWNS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("mode", MODES)
def test_answer_error_has_sources_found_so_far(server, chat, plain, mode, misbehave):
    misbehave(server)
    engine = QueryEngine(plain, chat, mode)
    for answer in (engine.query, lambda question: asyncio.run(engine.aquery(question))):
        with pytest.raises(AnswerError) as caught:
            answer(QUESTION)
        assert [source.result.node.text for source in caught.value.answer.sources] == TEXTS[:2]


@pytest.mark.parametrize("mode", MODES)
def test_slow_server_raises_after_timeout(server, chat, plain, mode):
    server.silent = True
    with pytest.raises(ModelError, match="did not answer within 0"):
        QueryEngine(plain, chat, mode, timeout=0.05).query(QUESTION)
