import openai
import pytest
from support.scripted_server import ChatServer, serving

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import ModelError
from nodekin.nodegraph.models.llm import as_llm

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def server(socket_enabled):
    with serving(ChatServer()) as server:
        yield server


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=server.url, api_key="sk-of-mine", max_retries=2) as client:
        yield client


@pytest.fixture
async def async_client(server):
    async with openai.AsyncOpenAI(base_url=server.url, api_key="-", max_retries=2) as client:
        yield client


def test_complete_sends_messages_and_settings(server, client):
    chat = OpenAIChat("abc", client=client, system="Be short.", max_tokens=50, seed=1)
    assert chat.complete("What is tea?") == "Tea is a drink."
    (body,) = server.asked
    assert body == {
        "model": "abc",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is tea?"},
        ],
        "temperature": 0,
        "max_tokens": 50,
        "seed": 1,
    }


def test_conversation_is_sent_unchanged(server, client):
    messages = [
        {"role": "user", "content": "Tea?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Why?"},
    ]
    OpenAIChat("abc", client=client, system="no", temperature=None).complete(messages)
    assert server.asked == [{"model": "abc", "messages": messages}]


async def test_sync_async_stream_and_json_calls_answer(server, client, async_client):
    both = OpenAIChat("abc", client=client, async_client=async_client)
    alone = OpenAIChat("abc", client=client)
    for chat in (both, alone):
        assert await chat.acomplete("What is tea?") == "Tea is a drink."
        assert "".join([piece async for piece in chat.astream("?")]) == "Tea is a drink."
        assert list(chat.stream("?")) == ["Tea", " is", " a", " drink."]
        server.text = '{"a": 1}'
        assert chat.complete_json("?", {"type": "object"}) == {"a": 1}
        assert await chat.acomplete_json("?", {"type": "object"}) == {"a": 1}
        server.text = "Tea is a drink."
    assert server.asked[4]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
    }


async def test_as_llm_accepts_openai_chat(server, client, async_client):
    llm = as_llm(OpenAIChat("abc", client=client))
    assert llm.name == "openai abc temperature=0"
    assert llm.complete("?") == "Tea is a drink."
    assert llm.structured
    for given in (client, async_client):
        with pytest.raises(TypeError, match=r"OpenAIChat\(.*client=client\) \(or async_client="):
            as_llm(given)


def test_permanent_error_raises_without_key(server, client):
    server.statuses = [429] * 3
    with pytest.raises(ModelError, match=r"'openai abc .*' failed: .*not now") as caught:
        as_llm(OpenAIChat("abc", client=client)).complete("?")
    assert isinstance(caught.value.__cause__, openai.RateLimitError)
    assert "sk-of-mine" not in str(caught.value)


def test_slow_server_raises_timeout_error(server):
    server.silent = True
    with openai.OpenAI(base_url=server.url, api_key="-", timeout=0.05, max_retries=0) as client:
        chat = OpenAIChat("abc", client=client)
        with pytest.raises(openai.APITimeoutError):
            chat.complete("?")
        with pytest.raises(ModelError, match="APITimeoutError"):
            list(as_llm(chat).stream("?"))


@pytest.mark.parametrize(
    "raw",
    [b'{"choices": [{"mess', b"[]", b'{"choices": []}', b'{"choices": null}', b'"tea"'],
)
def test_malformed_answer_raises(server, client, raw):
    server.raw = raw
    with pytest.raises(ModelError):
        as_llm(OpenAIChat("abc", client=client)).complete("?")


@pytest.mark.parametrize(
    ("message", "finish", "says"),
    [
        ({"content": None}, "stop", "answered without a text"),
        ({"content": None, "refusal": "I won't."}, "stop", "refused: I won't."),
        ({}, "length", "cut off at max_tokens; allow more"),
        ({}, "content_filter", "stopped by a content filter"),
    ],
)
def test_incomplete_answer_raises(server, client, message, finish, says):
    server.message, server.finish = message, finish
    with pytest.raises(ModelError, match=says):
        OpenAIChat("abc", client=client, max_tokens=3).complete("?")


@pytest.mark.parametrize("pieces", [0, 2, 4])
async def test_interrupted_stream_raises(server, client, async_client, pieces):
    server.finish = "length"
    with pytest.raises(ModelError, match="cut off at what the server allows"):
        list(OpenAIChat("abc", client=client).stream("?"))
    server.pieces = pieces
    chat = OpenAIChat("abc", client=client, async_client=async_client)
    stream, astream = chat.stream("?"), chat.astream("?")
    for piece in ["Tea", " is", " a", " drink."][:pieces]:
        assert next(stream) == piece
        assert await anext(astream) == piece
    with pytest.raises(ModelError, match="ended before its answer did"):
        next(stream)
    with pytest.raises(ModelError, match="ended before its answer did"):
        await anext(astream)


async def test_server_without_schemas_is_asked_for_text(server, client, async_client):
    chat = OpenAIChat("abc", client=client, async_client=async_client)
    server.error = "response_format is not supported"
    server.text = 'Here: {"tea": 1}'
    server.statuses = [400]
    with pytest.raises(NotImplementedError, match="supports no JSON schema"):
        chat.complete_json("?", {})
    server.statuses = [400]
    assert as_llm(chat).complete("?", {}) == server.text
    server.statuses = [400]
    assert await as_llm(chat).acomplete("?", {}) == server.text
    assert chat.complete_json("?", {}) == as_llm(chat).complete("?", {}) == server.text
    server.error = "context too long"
    server.statuses = [400]
    with pytest.raises(openai.BadRequestError):
        chat.complete_json("?", {})


def test_name_contains_settings_that_change_answers(client):
    def name(**settings):
        return OpenAIChat("abc", client=client, **settings).name

    assert name() == "openai abc temperature=0"
    assert name(temperature=None) == "openai abc"
    assert name(max_tokens=7, timeout=3, extra_headers={"a": "b"}) == name()
    names = {name(), name(temperature=1), name(seed=1), name(system="s"), name(seed=2)}
    assert len(names) == 5
    assert name(name="mine") == "mine"
    assert "sk-of-mine" not in name()


async def test_tokens_of_server_are_reported(server, client, async_client):
    llm = as_llm(OpenAIChat("abc", client=client, async_client=async_client))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    texts = [llm.complete("Tea?"), llm.complete("Tea?", schema), [*llm.stream("Tea?")][-1]]
    texts += [await llm.acomplete("Tea?"), [text async for text in llm.astream("Tea?")][-1]]
    assert {text.usage.calls for text in texts} == {1}
    assert all(text.usage.prompt_tokens for text in texts)
    assert all(text.usage.completion_tokens for text in texts)


def test_server_without_usage_of_streams_is_asked_again(server, client):
    server.error = "stream_options is not supported"
    server.statuses = [400]
    llm = as_llm(OpenAIChat("abc", client=client))
    assert "".join(llm.stream("Tea?")) == "Tea is a drink."
    assert "".join(llm.stream("Tea?")) == "Tea is a drink."
    assert ["stream_options" in body for body in server.asked] == [True, False, False]
