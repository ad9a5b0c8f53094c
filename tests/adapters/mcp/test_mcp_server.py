"""A corpus behind the Model Context Protocol, met by the official SDK's own client."""

import asyncio
import json
import sys
import threading

import pytest

pytest.importorskip("mcp")

import httpx
from mcp import Client, StdioServerParameters
from support.uvicorn_server import served

from nodekin.adapters.mcp.mcp_server import CorpusServer
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


async def test_list_tools_has_schemas(server, tools) -> None:
    async with Client(server.server) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == list(tools.tools)
    for tool in listed:
        assert tool.annotations.read_only_hint is True
        assert tool.input_schema == tools.tools[tool.name].parameters


async def test_call_tool_returns_text_and_data(server, tools) -> None:
    async with Client(server.server) as client:
        found = await client.call_tool("search", {"query": "What is fermented?"})
        read = await client.call_tool("read", {"document": "茶 经.md"})
    assert found.content[0].text == tools.call("search", {"query": "What is fermented?"}).text
    assert found.structured_content["entries"][0]["document"] == "tea/black.md"
    (entry,) = read.structured_content["entries"]
    assert entry["text"] == TEXTS["茶/茶 经.md"]


async def test_invalid_call_is_an_error_for_the_model(server) -> None:
    async with Client(server.server) as client:
        for name, arguments, message in (
            ("search", {"query": 3}, "query of search must be of type string"),
            ("read", {"document": "../../etc/passwd"}, "unknown document"),
            (
                "read",
                {"document": "tea/green.md", "start": "x" * 99_999},
                "must be of type integer",
            ),
            ("grep", {"pattern": ""}, "the pattern is empty"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert message in result.content[0].text
            assert len(result.content[0].text) < 1000


async def test_search_fetch_offers_two_tools(tools) -> None:
    server = CorpusServer(lambda: tools, search_fetch=True)
    async with Client(server.server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "fetch"]
        found = await client.call_tool("search", {"query": "谁写了茶经？"})
        best = json.loads(found.content[0].text)["results"][0]
        fetched = await client.call_tool("fetch", {"id": best["id"]})
        whole = await client.call_tool("fetch", {"id": "tea/green.md"})
        title = await client.call_tool("fetch", {"id": "tea/green.md#2-11"})
        wrong = await client.call_tool("fetch", {"id": 3})
        for name in ("tea/green.md#²-³", "tea/green.md#1-" + "9" * 5_000, "nothing#1-2"):
            refused = await client.call_tool("fetch", {"id": name})
            assert "unknown document" in refused.content[0].text
    assert set(best) == {"id", "title", "url", "text"}
    assert (best["id"], best["title"]) == ("茶/茶 经.md#0-22", "茶/茶 经.md")
    assert json.loads(title.content[0].text)["text"] == "Green tea"
    assert json.loads(fetched.content[0].text)["text"] == TEXTS["茶/茶 经.md"]
    assert json.loads(whole.content[0].text)["text"] == TEXTS["tea/green.md"]
    assert wrong.is_error


async def test_cancelled_call_ends(tools) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> CorpusTools:
        begun.set()
        assert go_on.wait(60)
        return tools

    async with Client(CorpusServer(slow).server) as client:
        call = asyncio.create_task(client.call_tool("outline", {}))
        assert await asyncio.to_thread(begun.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        go_on.set()
        after = await client.call_tool("outline", {})  # the server goes on
    assert "tea/green.md" in after.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_http_refuses_other_hosts_and_origins(server, mode) -> None:
    with served(server.http_app()) as address:
        url = f"{address}mcp"
        async with Client(url, mode=mode) as client:
            result = await client.call_tool("grep", {"pattern": "STEAMED"})
        async with httpx.AsyncClient() as other:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                headers["Accept"] = "application/json, text/event-stream"
                refused = await other.post(url, json=body, headers=headers)
                assert refused.status_code == 403
    assert result.structured_content["entries"][0]["text"] == "steamed"


async def test_http_requires_token(server) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    with served(server.http_app(token="secret")) as address:
        async with httpx.AsyncClient(base_url=address, headers=accept) as client:
            for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
                assert (await client.post("mcp", json=body, headers=header)).status_code == 401
            good = {"Authorization": "Bearer secret"}
            assert (await client.post("mcp", json=body, headers=good)).status_code != 401


@pytest.mark.slow
async def test_command_serves_standard_input(tmp_path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text("Green tea is steamed.", "utf-8")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nodekin", "mcp", str(folder)], cwd=str(tmp_path)
    )
    async with Client(command, read_timeout_seconds=300) as client:
        result = await client.call_tool("search", {"query": "steamed"})
        (folder / "coffee.md").write_text("Coffee is roasted.", "utf-8")
    files = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    assert files == {"tea.md": "Green tea is steamed.", "coffee.md": "Coffee is roasted."}
    assert [file.name for file in tmp_path.iterdir()] == ["docs"]
    assert result.structured_content["entries"][0]["document"] == "docs/tea.md"
