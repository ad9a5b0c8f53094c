"""A corpus behind the Model Context Protocol, met by the official SDK's own client."""

import asyncio
import json
import sys
import threading
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("mcp")

import httpx
import uvicorn
from mcp import Client, StdioServerParameters

from nodekin.adapters.mcp_server import SCHEME, CorpusServer
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import CorpusTools

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.usefixtures("socket_enabled"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TEXTS = {
    "tea/green.md": "# Green tea\n\nGreen tea is steamed. It keeps its colour.",
    "tea/black.md": "# Black tea\n\nBlack tea is fermented. Its leaves are dark.",
    "茶/茶 经.md": "# 茶经\n\n陆羽写了《茶经》。他生活在唐代。",
}


@pytest.fixture
def tools() -> CorpusTools:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=i) for i, text in TEXTS.items()])
    return CorpusTools(graph)


@pytest.fixture
def server(tools) -> CorpusServer:
    return CorpusServer(lambda: tools)


async def test_the_tools_with_their_schemas(server, tools) -> None:
    async with Client(server.server) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == list(tools.tools)
    for tool in listed:
        assert tool.annotations.read_only_hint is True
        properties = dict(tool.input_schema["properties"])
        assert properties.pop("conversation")
        assert properties == tools.tools[tool.name].parameters["properties"]


async def test_calls_return_text_and_data(server, tools) -> None:
    async with Client(server.server) as client:
        found = await client.call_tool("search", {"query": "What is fermented?"})
        read = await client.call_tool("read", {"document": "茶 经.md"})
    assert found.content[0].text == tools.call("search", {"query": "What is fermented?"}).text
    assert found.structured_content["entries"][0]["document"] == "tea/black.md"
    (entry,) = read.structured_content["entries"]
    assert entry["text"] == TEXTS["茶/茶 经.md"]


async def test_a_wrong_call_is_an_error_for_the_model(server) -> None:
    async with Client(server.server) as client:
        for name, arguments, message in (
            ("search", {"query": 3}, "query of search is of type string"),
            ("read", {"document": "../../etc/passwd"}, "there is no document"),
            ("read", {"document": "tea/green.md", "start": "x" * 100_000}, "is of type integer"),
            ("search", {"query": "tea", "conversation": 3}, "conversation is a short text"),
            ("grep", {"pattern": "(", "regex": True}, "regular expression"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert message in result.content[0].text
            assert len(result.content[0].text) < 1000


async def test_a_conversation_is_not_shown_the_same_again(server) -> None:
    async with Client(server.server) as client:

        async def text(conversation):
            arguments = {"query": "fermented", "conversation": conversation}
            return (await client.call_tool("search", arguments)).content[0].text

        first = await text("a")
        assert "Black tea is fermented" in first
        assert "Black tea is fermented" not in await text("a")
        assert await text("b") == first


async def test_documents_are_resources(server) -> None:
    async with Client(server.server) as client:
        listed = (await client.list_resources()).resources
        texts = [(await client.read_resource(resource.uri)).contents[0].text for resource in listed]
        with pytest.raises(Exception, match=r"no document|error"):
            await client.read_resource(SCHEME + "../secret")
    assert texts == list(TEXTS.values())
    assert [resource.size for resource in listed] == [len(t.encode()) for t in TEXTS.values()]


async def test_many_documents_are_several_pages() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea {n}.", id=f"{n}.md") for n in range(450)])
    server = CorpusServer(lambda: CorpusTools(graph))
    seen, cursor = [], None
    async with Client(server.server) as client:
        while True:
            page = await client.list_resources(cursor=cursor)
            seen += [resource.uri for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
    assert seen == [f"{SCHEME}{n}.md" for n in range(450)]


async def test_search_and_fetch_for_clients_that_want_only_these(tools) -> None:
    server = CorpusServer(lambda: tools, search_fetch=True)
    async with Client(server.server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "fetch"]
        found = await client.call_tool("search", {"query": "谁写了茶经？"})
        best = json.loads(found.content[0].text)["results"][0]
        fetched = await client.call_tool("fetch", {"id": best["id"]})
        whole = await client.call_tool("fetch", {"id": "tea/green.md"})
        wrong = await client.call_tool("fetch", {"id": 3})
        for name in ("tea/green.md#²-³", "tea/green.md#1-" + "9" * 5_000, "nothing#1-2"):
            refused = await client.call_tool("fetch", {"id": name})
            assert "there is no document" in refused.content[0].text
    assert set(best) == {"id", "title", "url", "text"}
    assert json.loads(fetched.content[0].text)["text"] == TEXTS["茶/茶 经.md"]
    assert json.loads(whole.content[0].text)["text"] == TEXTS["tea/green.md"]
    assert wrong.is_error


async def test_search_and_fetch_where_passages_are_written_anew(tools) -> None:
    graph = tools.graph
    graph.create_node_group("summary", lambda text: f"About {text[2:11]}")
    server = CorpusServer(lambda: CorpusTools(graph, target="summary"), search_fetch=True)
    async with Client(server.server) as client:
        found = await client.call_tool("search", {"query": "black tea"})
        best = json.loads(found.content[0].text)["results"][0]
        fetched = await client.call_tool("fetch", {"id": best["id"]})
    assert best["text"] == "About Black tea"
    assert json.loads(fetched.content[0].text)["text"] == TEXTS["tea/black.md"]


async def test_while_documents_are_read_the_client_is_told(tools) -> None:
    told, go_on = [], threading.Event()

    def slow() -> CorpusTools:
        assert go_on.wait(60)
        return tools

    async def progress(value, total, message):
        told.append(message)
        go_on.set()

    async with Client(CorpusServer(slow).server) as client:
        result = await client.call_tool("outline", {}, progress_callback=progress)
    assert "tea/green.md" in result.content[0].text
    assert told[0].startswith("reading the documents (")


async def test_ten_clients_at_once(server, tools) -> None:
    expected = tools.call("search", {"query": "tea"}).text

    async def one() -> str:
        async with Client(server.server) as client:
            return (await client.call_tool("search", {"query": "tea"})).content[0].text

    assert set(await asyncio.gather(*(one() for _ in range(10)))) == {expected}


@asynccontextmanager
async def serving(app):
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve())
    while not running.started:
        await asyncio.sleep(0.01)
    try:
        yield running.servers[0].sockets[0].getsockname()[1]
    finally:
        running.should_exit = True
        await task


async def test_by_http(server) -> None:
    async with serving(server.http_app()) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            result = await client.call_tool("grep", {"pattern": "STEAMED"})
        async with httpx.AsyncClient() as other:
            url = f"http://127.0.0.1:{port}/mcp"
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                headers["Accept"] = "application/json, text/event-stream"
                refused = await other.post(url, json=body, headers=headers)
                assert refused.status_code in (403, 421)
    assert result.structured_content["entries"][0]["text"] == "steamed"


async def test_an_empty_token_is_none(server) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    async with serving(server.http_app(token="")) as port, httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}/mcp"
        assert (await client.post(url, json=body, headers=accept)).status_code != 401


async def test_a_token(server) -> None:
    async with serving(server.http_app(token="secret")) as port, httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}/mcp"
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            assert (await client.post(url, json=body, headers=accept | header)).status_code == 401
        good = {"Authorization": "Bearer secret"}
        assert (await client.post(url, json=body, headers=accept | good)).status_code != 401


def test_bound_elsewhere_it_needs_a_token(server) -> None:
    with pytest.raises(ValueError, match=r"a server on 0\.0\.0\.0 can be reached by others"):
        server.http_app("0.0.0.0")


async def test_by_standard_input_of_the_command(tmp_path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text("Green tea is steamed.", "utf-8")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nodekin", "mcp", str(folder)], cwd=str(tmp_path)
    )
    async with Client(command, read_timeout_seconds=300) as client:
        result = await client.call_tool("search", {"query": "steamed"})
    assert result.structured_content["entries"][0]["document"] == "docs/tea.md"
