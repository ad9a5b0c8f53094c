"""Every query strategy against a server that speaks the protocol, and misbehaves."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from support.scripted_server import BREAKDOWNS, ChatServer, broken, serving

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.strategies.rewrite import QueryRewriteRetriever
from nodekin.retrievers.strategies.router import RouterRetriever
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES
from nodekin.retrievers.strategies.sub_question import SubQuestionRetriever

pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.slow]
QUESTION = "Is green tea from 福建 fermented?"
TEXTS = [
    "Green tea is not fermented.",
    "Black tea is fermented.",
    "福建 grows tea: 白茶, 岩茶.",
    "A river runs.",
]


@pytest.fixture
def server(socket_enabled):
    with serving(ChatServer()) as server:
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
    return Retriever(graph, "ROOT", "bm25", top_k=4)


def routed(inner, llm, **settings):
    return RouterRetriever({"texts": ("All texts", inner)}, llm, **settings)


STRATEGIES = {
    **{name: strategy.retriever for name, strategy in STRATEGIES.items()},
    "router": routed,
}


def thinks_only(server):
    server.text = "<think>Green tea? The user wants 福建"


def refuses(server):
    server.text = "I'm sorry, but I can't help with that."


def refuses_in_chinese(server):
    server.text = "很抱歉，我无法回答这个问题。"


def texts(results):
    return [result.node.text for result in results]


def notes(results):
    return " ".join(
        form.note or ""
        for result in results
        for match in result.evidence
        for form in match.variants
    )


@pytest.mark.parametrize(
    "misbehave",
    [*BREAKDOWNS, thinks_only, refuses, refuses_in_chinese],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_failed_strategy_searches_plain_query_with_note(server, chat, plain, make, misbehave):
    misbehave(server)
    retriever = make(plain, chat)
    results = retriever.retrieve(QUESTION)
    assert texts(results) == texts(plain.retrieve(QUESTION))
    assert "ModelError" in notes(results)
    assert texts(asyncio.run(retriever.aretrieve(QUESTION))) == texts(results)
    assert 2 <= len(server.asked) <= 12


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_on_error_raise_raises_model_error(server, chat, plain, make):
    broken(server)
    retriever = make(plain, chat, on_error="raise")
    with pytest.raises(ModelError, match="not now"):
        retriever.retrieve(QUESTION)
    with pytest.raises(ModelError, match="not now"):
        asyncio.run(retriever.aretrieve(QUESTION))


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_slow_server_falls_back_after_timeout(server, chat, plain, make):
    server.silent = True
    results = make(plain, chat, timeout=0.05).retrieve(QUESTION)
    assert texts(results) == texts(plain.retrieve(QUESTION))
    assert "did not answer within 0.05 s" in notes(results)


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize(
    "said",
    ["Green tea is not fermented.", "绿茶不发酵。", "No.", "42", "{}", "[]", "```\n```", "\u200b"],
)
def test_answers_instead_of_questions_lose_no_results(server, chat, plain, make, said):
    server.text = said
    results = make(plain, chat).retrieve(QUESTION)
    assert results
    assert len({result.node.id for result in results}) == len(results)
    if make is not QueryRewriteRetriever:  # QueryRewriteRetriever omits the plain query
        assert set(texts(plain.retrieve(QUESTION))) <= set(texts(results))


def test_schema_is_sent_to_the_server(server, chat, plain):
    questions = ["Is green tea fermented?", "Which tea grows in 福建?"]
    server.text = lambda prompt: json.dumps({"questions": questions}, ensure_ascii=False)
    results = SubQuestionRetriever(plain, chat).retrieve(QUESTION)
    assert any("response_format" in body for body in server.asked)
    searched = {match.query for result in results for match in result.evidence}
    assert searched >= {*questions}
