"""A corpus behind the Model Context Protocol, met by the official SDK's own client."""

import asyncio
import base64
import importlib
import json
import sys
import threading
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("mcp")

import httpx
import mcp_types as types
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters
from mcp.server.subscriptions import ResourcesListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from stress import amount

from nodekin.adapters.mcp.mcp_server import SCHEME, CorpusServer
from nodekin.adapters.server_access import SourceRefresh
from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.graph_reader import GraphReader
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
            (
                "search",
                {"query": "tea", "conversation": 3},
                "there is no conversation 3; begin one",
            ),
            ("search", {"query": "tea", "conversation": "x" * 10_000}, "there is no conversation"),
            ("grep", {"pattern": "(", "regex": True}, "regular expression"),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error
            assert message in result.content[0].text
            assert len(result.content[0].text) < 1000


async def test_a_conversation_is_not_shown_the_same_again(server) -> None:
    async with Client(server.server) as client:

        async def found(conversation):
            arguments = {"query": "fermented", "conversation": conversation}
            return await client.call_tool("search", arguments)

        first = await found("new")
        name = first.structured_content["conversation"]
        assert "Black tea is fermented" in first.content[0].text
        assert first.content[0].text.endswith(f"\n\nconversation={name}")
        again = await found(name)
        assert "Black tea is fermented" not in again.content[0].text
        assert again.structured_content["conversation"] == name
        other = await found("new")
        assert "Black tea is fermented" in other.content[0].text
        assert other.structured_content["conversation"] != name


async def test_no_client_can_enter_the_conversation_of_another(server) -> None:
    async with Client(server.server) as one, Client(server.server) as other:
        await one.call_tool("search", {"query": "fermented", "conversation": "new"})
        for name in ("new ", "", "1", "default", "0" * 16):
            result = await other.call_tool("search", {"query": "tea", "conversation": name})
            assert result.is_error
            assert "begin one with conversation='new'" in result.content[0].text


async def test_calls_of_one_conversation_at_once_show_everything_once(server) -> None:
    async with Client(server.server) as client:
        begun = await client.call_tool("outline", {"conversation": "new"})
        call = {
            "document": "tea/black.md",
            "conversation": begun.structured_content["conversation"],
        }
        results = await asyncio.gather(*(client.call_tool("read", call) for _ in range(10)))
    shown = [result for result in results if "Its leaves" in result.content[0].text]
    assert len(shown) == 1


async def test_documents_are_resources(server) -> None:
    async with Client(server.server) as client:
        listed = (await client.list_resources()).resources
        texts = [(await client.read_resource(resource.uri)).contents[0].text for resource in listed]
        with pytest.raises(Exception, match=r"no document|error"):
            await client.read_resource(SCHEME + "../secret")
    assert texts == list(TEXTS.values())
    assert [resource.size for resource in listed] == [len(t.encode()) for t in TEXTS.values()]


async def test_a_page_is_a_picture(server, monkeypatch) -> None:
    images = pytest.importorskip("nodekin.adapters.files.page_images")
    async with Client(server.server) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == SCHEME + "{+document}{?page,start,end}"
        with pytest.raises(MCPError, match=r"no such page: .* is not a PDF"):
            await client.read_resource(SCHEME + "tea/black.md?page=1")
        monkeypatch.setattr(
            images, "page_image", lambda node, page, span: f"{node.id} {page} {span}".encode()
        )
        (contents,) = (
            await client.read_resource(SCHEME + "tea/black.md?page=2&start=3&end=9")
        ).contents
        assert contents.mime_type == "image/png"
        assert base64.b64decode(contents.blob) == b"tea/black.md 2 (3, 9)"
        for query in ("page=two", "page", "..."):
            with pytest.raises(MCPError, match="no such page"):
                await client.read_resource(f"{SCHEME}tea/black.md?{query}")
        with pytest.raises(MCPError, match="no document"):
            await client.read_resource(SCHEME + "../secret?page=1")


async def test_many_documents_are_several_pages_and_each_is_read_once(monkeypatch) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea {n}.", id=f"{n} ü.md") for n in range(900)])
    server = CorpusServer(lambda: CorpusTools(graph))
    read: list[str] = []
    real = GraphReader.nodes_by_id
    monkeypatch.setattr(
        GraphReader, "nodes_by_id", lambda self, ids: (read.extend(ids), real(self, ids))[1]
    )
    seen, cursor = [], None
    async with Client(server.server) as client:
        while True:
            page = await client.list_resources(cursor=cursor)
            seen += [resource.name for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        graph.remove(["7 ü.md"])
        with pytest.raises(MCPError, match=r"no page '7 ü\.md'; list from") as error:
            await client.list_resources(cursor="7 ü.md")
    assert error.value.code == INVALID_PARAMS
    assert seen == [f"{n} ü.md" for n in range(900)]
    assert len(read) < 2 * 900  # of a page some are looked at that the next one shows


@pytest.mark.parametrize("uri", [SCHEME + "../secret", "file:///etc/passwd", SCHEME])
async def test_what_is_no_resource_is_an_error_of_the_protocol(server, uri) -> None:
    async with Client(server.server) as client:
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
    assert error.value.code == INVALID_PARAMS
    assert "passwd" not in str(error.value) or "not 'file:///etc/passwd'" in str(error.value)


async def test_methods_that_there_are_not(server) -> None:
    async with Client(server.server) as client:
        with pytest.raises(MCPError) as error:
            await client.get_prompt("anything")
    assert error.value.code == METHOD_NOT_FOUND


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


async def test_a_call_that_is_cancelled_is_given_up(tools) -> None:
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


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text("Green tea is steamed.", "utf-8")
    return folder


def following(folder) -> CorpusServer:
    """Return a server that looks at the folder before each answer."""
    graph = NodeGraph(folder, progress=False, on_error="skip")
    return CorpusServer(lambda: CorpusTools(graph), refresh=SourceRefresh(0, lambda: 0.0))


async def test_a_folder_that_changes_is_read_again_and_listeners_are_told(folder) -> None:
    async with Client(following(folder).server) as client:
        assert (await client.call_tool("search", {"query": "roasted"})).structured_content
        async with client.listen(resources_list_changed=True) as listening:
            (folder / "coffee.md").write_text("Coffee is roasted.", "utf-8")
            (folder / "tea.md").unlink()
            found = await client.call_tool("search", {"query": "roasted"})
            event = await asyncio.wait_for(anext(aiter(listening)), 120)
        listed = (await client.list_resources()).resources
    assert found.structured_content["entries"][0]["document"] == "docs/coffee.md"
    assert isinstance(event, ResourcesListChanged)
    assert [resource.name for resource in listed] == ["coffee.md"]


async def test_clients_of_the_older_protocol_are_told_too(folder) -> None:
    told = asyncio.Event()

    async def heard(message) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            told.set()

    server = following(folder).server
    async with Client(server, mode="legacy", message_handler=heard) as client:
        (folder / "coffee.md").write_text("Coffee is roasted.", "utf-8")
        await client.call_tool("outline", {})
        await asyncio.wait_for(told.wait(), 120)


async def test_a_folder_that_goes_away_leaves_what_was_read(folder) -> None:
    async with Client(following(folder).server) as client:
        await client.call_tool("outline", {})
        (folder / "tea.md").unlink()
        folder.rmdir()
        result = await client.call_tool("search", {"query": "steamed"})
    assert result.structured_content["entries"][0]["document"] == "docs/tea.md"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.floats(allow_nan=False),
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=8), some, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = "query mode skip filters pattern document start end regex conversation id".split()


@settings(max_examples=amount(8, 20))
@given(st.lists(st.tuples(st.text(max_size=9), st.dictionaries(st.sampled_from(ARGUMENTS), JSON))))
def test_whatever_a_client_sends_is_answered(calls) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=i) for i, text in TEXTS.items()])
    server = CorpusServer(lambda: CorpusTools(graph))

    async def send() -> None:
        async with Client(server.server) as client:
            for name, arguments in calls:
                for tool in (name, "search", "grep", "outline", "read", "related", "cite"):
                    result = await client.call_tool(tool, arguments)
                    assert result.content[0].text or result.structured_content
            assert len((await client.list_tools()).tools) == 6

    asyncio.run(send())


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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_ten_clients_at_once_by_http(server, tools, mode) -> None:
    expected = tools.call("search", {"query": "tea"}).text
    async with serving(server.http_app()) as port:

        async def one() -> tuple[str, str, str]:
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                begin = {"query": "tea", "conversation": "new"}
                first = (await client.call_tool("search", begin)).structured_content
                again = {"query": "tea", "conversation": first["conversation"]}
                second = (await client.call_tool("search", again)).content[0].text
                plain = (await client.call_tool("search", {"query": "tea"})).content[0].text
                return first["conversation"], second, plain

        results = await asyncio.gather(*(one() for _ in range(10)))
    assert len({name for name, _, _ in results}) == 10
    assert all("(shown before)" in second for _, second, _ in results)
    assert {plain for *_, plain in results} == {expected}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_by_http(server, mode) -> None:
    async with serving(server.http_app()) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
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


@pytest.mark.slow
async def test_by_standard_input_of_the_command(tmp_path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text("Green tea is steamed.", "utf-8")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nodekin", "mcp", str(folder)], cwd=str(tmp_path)
    )
    async with Client(command, read_timeout_seconds=300) as client:
        result = await client.call_tool("search", {"query": "steamed"})
        await client.call_tool("related", {"document": "tea.md", "conversation": "new"})
        (folder / "coffee.md").write_text("Coffee is roasted.", "utf-8")
    files = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    assert files == {"tea.md": "Green tea is steamed.", "coffee.md": "Coffee is roasted."}
    assert [file.name for file in tmp_path.iterdir()] == ["docs"]
    assert result.structured_content["entries"][0]["document"] == "docs/tea.md"


def test_without_its_extra_the_server_names_it(monkeypatch) -> None:
    for name in ("anyio", "nodekin.adapters.mcp.mcp_server"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "nodekin.adapters.mcp.mcp_server")
    with pytest.raises(ImportError, match=r'pip install "nodekin\[mcp\]"'):
        importlib.import_module("nodekin.adapters.mcp.mcp_server")
