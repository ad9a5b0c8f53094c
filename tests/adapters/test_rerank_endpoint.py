import asyncio
import contextlib

import pytest
from support.scripted_server import ScriptedServer, serving

from nodekin.adapters.openai import RerankEndpoint
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.rerank_retriever import RerankRetriever

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Server(ScriptedServer):
    """A /v1/rerank server; a passage's score is its count of the query minus one."""

    def __init__(self):
        super().__init__()
        self.change = lambda answer: answer

    def answer(self, body):
        results = [
            {"index": at, "relevance_score": text.count(body["query"]) - 1.0}
            for at, text in enumerate(body["documents"])
        ]
        results.sort(key=lambda result: -result["relevance_score"])
        answer = {"model": body["model"], "results": results}
        return self.change(answer)


@pytest.fixture
def server(socket_enabled):
    with serving(Server()) as server:
        yield server


@pytest.fixture
def endpoint(server):
    endpoint = RerankEndpoint("abc", base_url=server.url)
    yield endpoint
    endpoint._client.close()


@contextlib.asynccontextmanager
async def closing(endpoint):
    yield
    for client in endpoint._of_loops.values():
        await client.close()


TEXTS = ["water", "tea tea", "tea"]


def test_rerank_returns_scores_in_passage_order(server, endpoint):
    assert endpoint.rerank("tea", TEXTS) == [-1.0, 1.0, 0.0]
    assert server.asked == [{"model": "abc", "query": "tea", "documents": TEXTS}]
    assert server.paths == ["/v1/rerank"]


async def test_arerank_returns_scores_in_passage_order(server, endpoint):
    async with closing(endpoint):
        assert await endpoint.arerank("tea", TEXTS) == [-1.0, 1.0, 0.0]


def test_rerank_retriever_uses_endpoint_scores(server, endpoint):
    graph = NodeGraph(progress=False)
    graph.add(["tea", "green tea and tea", "black tea"])
    retriever = RerankRetriever(Retriever(graph, "ROOT"), "ModuleReranker", model=endpoint)
    results = retriever("tea")
    assert results[0].node.text == "green tea and tea"
    assert [r.score for r in results] == [1.0, 0.0, 0.0]

    async def ask():
        async with closing(endpoint):
            return await retriever.aretrieve("tea")

    assert asyncio.run(ask()) == results


def test_passages_are_sent_in_batches(server):
    endpoint = RerankEndpoint("abc", base_url=server.url, batch_size=2, return_documents=False)
    assert endpoint.rerank("tea", TEXTS) == [-1.0, 1.0, 0.0]
    assert endpoint.rerank("tea", []) == []
    endpoint._client.close()
    assert [body["documents"] for body in server.asked] == [TEXTS[:2], TEXTS[2:]]
    assert all(body["return_documents"] is False for body in server.asked)


def test_key_is_given_or_from_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    for key in (None, "mine"):
        endpoint = RerankEndpoint("abc", base_url=server.url, api_key=key)
        endpoint.rerank("tea", TEXTS)
        endpoint._client.close()
    assert [each["Authorization"] for each in server.headers] == ["Bearer none", "Bearer mine"]
    with pytest.raises(ValueError, match="base_url is required"):
        RerankEndpoint("abc")


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: {**answer, "results": answer["results"][1:]},
        lambda answer: {**answer, "results": [answer["results"][0]] * 3},
        lambda answer: {**answer, "results": [{"index": at} for at in range(3)]},
        lambda answer: {**answer, "results": [{**r, "index": -1} for r in answer["results"]]},
        lambda answer: {"results": None},
        lambda answer: {},
        lambda answer: [],
        lambda answer: "no",
    ],
)
def test_invalid_results_raise(server, endpoint, change):
    server.change = change
    with pytest.raises(RerankError, match="must have an index and a relevance_score for each of 3"):
        endpoint.rerank("tea", TEXTS)


def test_fields_of_other_servers_are_accepted(server, endpoint):
    server.change = lambda answer: {
        "data": [{"index": r["index"], "score": r["relevance_score"]} for r in answer["results"]]
    }
    assert endpoint.rerank("tea", TEXTS) == [-1.0, 1.0, 0.0]
