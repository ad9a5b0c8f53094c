import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from support.scripted_server import ScriptedServer, serving

from nodekin.adapters.openai import OpenAIEmbedder, RerankEndpoint
from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import Embedder, EmbeddingError, NodeGraph
from nodekin.nodegraph.models.embedder import as_embedder

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Server(ScriptedServer):
    """Answer /v1/embeddings; a text's vector is its length, its model's length and a one."""

    def __init__(self):
        super().__init__()
        self.change = lambda data: data

    def answer(self, body):
        data = [
            {"object": "embedding", "index": at, "embedding": [len(text), len(body["model"]), 1.0]}
            for at, text in enumerate(body["input"])
        ]
        answer = {"object": "list", "model": body["model"], "data": self.change(data)}
        return answer


@pytest.fixture
def server(socket_enabled):
    with serving(Server()) as server:
        yield server


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url, api_key="sk-of-mine", max_retries=2) as client:
        yield client


def test_embedder_sends_passages_and_queries(server, client):
    embedder = as_embedder(OpenAIEmbedder("abc", client=client))
    assert embedder.passages(["tea", "water"]).tolist() == [[3, 3, 1], [5, 3, 1]]
    assert embedder.queries(["tea"]).tolist() == [[3, 3, 1]]
    assert [body["model"] for body in server.asked] == ["abc", "abc"]
    assert all(body["encoding_format"] == "float" for body in server.asked)
    assert "dimensions" not in server.asked[0]


def test_embedder_in_graph_sends_batches(server, client):
    embedder = OpenAIEmbedder("abc", client=client, batch_size=2)
    graph = NodeGraph(embed=embedder)
    vectors = graph.embeddings.vectors(["a", "bb", "ccc", "a"], "default")
    assert vectors[:, 0].tolist() == [1, 2, 3, 1]
    assert [body["input"] for body in server.asked] == [["ccc", "bb"], ["a"]]


def test_vectors_are_ordered_by_their_index(server, client):
    server.change = lambda data: data[::-1]
    embedder = as_embedder(OpenAIEmbedder("abc", client=client, dimensions=3))
    assert embedder.passages(["a", "bb", "ccc"])[:, 0].tolist() == [1, 2, 3]
    assert server.asked[0]["dimensions"] == 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:1], r"'openai abc' returned an array of shape \(1, 3\)"),
        (lambda data: [{**item, "index": 0} for item in data], r"indexes .* must be 0 to 1"),
    ],
)
def test_invalid_vectors_raise(server, client, change, says):
    server.change = change
    with pytest.raises(EmbeddingError, match=says):
        as_embedder(OpenAIEmbedder("abc", client=client)).passages(["a", "bb"])


def test_embedder_creates_client_from_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from outside")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with closing(OpenAIEmbedder("abc")) as embedder:
        assert embedder.embed(["tea"]) == [[3, 3, 1]]
    with closing(OpenAIEmbedder("abc", base_url=server.url, api_key="-")) as embedder:
        assert embedder.embed_queries(["tea"]) == [[3, 3, 1]]


@contextlib.contextmanager
def closing(embedder):
    yield embedder
    embedder._client.close()


async def test_given_client_is_called_in_a_thread(server, client):
    embedder = as_embedder(OpenAIEmbedder("abc", client=client))
    made = await asyncio.gather(*(embedder.aqueries(["x" * size]) for size in range(1, 9)))
    assert [each[0, 0] for each in made] == list(range(1, 9))


async def test_given_async_client_is_used(server, client):
    async with openai.AsyncOpenAI(base_url=server.url, api_key="-") as async_client:
        both = OpenAIEmbedder("abc", client=client, async_client=async_client)
        assert await both.aembed_queries(["tea"]) == [[3, 3, 1]]


def test_each_event_loop_has_a_client(server):
    with closing(OpenAIEmbedder("abc", base_url=server.url, api_key="-")) as embedder:
        graph = NodeGraph(embed=embedder)

        async def ask(*sizes):
            asked = [graph.embeddings.aquery_vectors(["x" * size], "default") for size in sizes]
            return [each[0, 0] for each in await asyncio.gather(*asked)]

        assert asyncio.run(ask(1, 2, 3)) == [1, 2, 3]
        assert asyncio.run(ask(4, 5)) == [4, 5]
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda size: asyncio.run(ask(size)), range(6, 10)))
        assert runs == [[6], [7], [8], [9]]
        asyncio.run(ask(10))
        assert len(embedder._of_loops) == 1  # clients of closed loops are dropped


def test_name_contains_model_and_dimensions(client):
    assert OpenAIEmbedder("abc", client=client).name == "openai abc"
    assert as_embedder(OpenAIEmbedder("abc", client=client, dimensions=8)).name == "openai abc 8"
    assert as_embedder(OpenAIEmbedder("abc", client=client, name="mine")).name == "mine"
    assert as_embedder(OpenAIEmbedder("abc", client=client, batch_size=7)).batch_size == 7
    assert Embedder(OpenAIEmbedder("abc", client=client), "other").name == "other"


MODELS = [OpenAIChat, OpenAIEmbedder, RerankEndpoint]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"model": ""}, ValueError, "model must be the name of a model"),
        ({"timeout": 0}, ValueError, "timeout must be"),
        ({"timeout": -1}, ValueError, "timeout must be"),
        ({"timeout": float("nan")}, ValueError, "timeout must be"),
        ({"client": openai.OpenAI(api_key="-")}, ValueError, "belongs to the client"),
        ({"client": openai.AsyncOpenAI(api_key="-")}, TypeError, "use async_client="),
        ({"async_client": openai.OpenAI(api_key="-")}, TypeError, "use client="),
    ],
)
def test_invalid_settings_raise(model, settings, error, says):
    with pytest.raises(error, match=says):
        model(**{"model": "abc", "base_url": "http://127.0.0.1:1/v1", "api_key": "-", **settings})


@pytest.mark.parametrize(
    ("model", "setting", "least"),
    [
        (OpenAIChat, "max_tokens", 1),
        (OpenAIChat, "temperature", 0),
        (OpenAIEmbedder, "dimensions", 1),
        (OpenAIEmbedder, "batch_size", 1),
        (RerankEndpoint, "batch_size", 1),
        (RerankEndpoint, "max_retries", 0),
    ],
)
def test_numbers_below_the_minimum_raise(model, setting, least):
    with pytest.raises(ValueError, match=f"{setting} must be {least} or more, got {least - 1}"):
        model("abc", base_url="http://127.0.0.1:1/v1", api_key="-", **{setting: least - 1})


def test_given_client_creates_no_other_client(monkeypatch):
    given = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1")
    created = []
    monkeypatch.setattr(
        openai.DefaultHttpxClient, "__init__", lambda *_, **options: created.append(options)
    )
    OpenAIEmbedder("m", client=given)
    OpenAIChat("m", client=given)
    assert created == []


def unreachable(model):
    return model(
        "abc", client=openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="-", max_retries=0)
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: unreachable(OpenAIChat).complete("tea?"),
        lambda: list(unreachable(OpenAIChat).stream("tea?")),
        lambda: asyncio.run(unreachable(OpenAIChat).acomplete("tea?")),
        lambda: unreachable(OpenAIEmbedder).embed(["tea"]),
        lambda: unreachable(RerankEndpoint).rerank("tea?", ["tea"]),
    ],
)
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_unreachable_server_error_names_address_and_cause(socket_enabled, call):
    with pytest.raises(openai.APIConnectionError) as caught:
        call()
    said = str(caught.value)
    assert said.startswith("the model server http://127.0.0.1:9/v1 does not answer (")
    assert "refused" in said
    assert "OPENAI_BASE_URL is its address" in said


def test_server_address_without_protocol_is_named(socket_enabled):
    chat = OpenAIChat("abc", base_url="127.0.0.1:9/v1", api_key="-")
    with pytest.raises(openai.APIConnectionError, match="must start with http:// or https://, got"):
        chat.complete("tea?")
