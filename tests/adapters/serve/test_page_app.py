"""What the page requests, without a browser."""

import asyncio
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from page_client import Client

from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search", {}),
        ("search", {"query": 3}),
        ("search", {"query": " "}),
        ("search", {"query": "tea", "top_k": 0}),
        ("search", {"query": "tea", "top_k": [1]}),
        ("ask", {"question": "x" * 30_000}),
        ("ask", {"question": "tea", "history": "all"}),
        ("ask", {"question": "tea", "history": [{"question": 1}]}),
    ],
)
def test_invalid_requests_return_a_short_error(client, path, body) -> None:
    answer = client.post(f"/api/{path}", **body)
    assert (answer.status_code, answer.json()["kind"]) == (400, "request")
    assert 10 < len(answer.json()["error"]) < 600


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 100_000, b"\xff", b"x" * 1_000_001])
def test_invalid_bodies_return_status_400(client, content) -> None:
    headers = {"content-type": "application/json"}
    request = client.request("POST", "/api/search", content=content, headers=headers)
    assert asyncio.run(request).status_code == 400


def test_form_data_is_refused(client) -> None:
    request = client.request("POST", "/api/search", data={"query": "tea"})
    assert asyncio.run(request).status_code == 400


def test_page_has_policy_and_loads_no_external_files(client) -> None:
    package = files("nodekin.adapters.serve")
    size = 0
    for path in ("/", "/page.js", "/page.css", "/words.json", "/icon.svg"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        size += len(answer.content)
    assert size < 200_000
    html = package.joinpath("index.html").read_text("utf-8")
    assert "<style" not in html
    assert " on" not in html.replace(" only", "")
    script = package.joinpath("page.js").read_text("utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "http://"):
        assert forbidden not in script
    assert client.get("/../pyproject.toml").status_code == 404


def sentences() -> str:
    """Return the source code with possible page messages, adjacent strings joined."""
    packages = ("nodekin.nodegraph", "nodekin.retrievers", "nodekin.adapters")
    paths = [path for name in packages for path in Path(str(files(name))).rglob("*.py")]
    return re.sub(r'"\s*f?"', "", "".join(path.read_text("utf-8") for path in paths))


def test_both_languages_have_exactly_the_page_words() -> None:
    package = files("nodekin.adapters.serve")
    words = json.loads(package.joinpath("words.json").read_text("utf-8"))
    assert words["en"].keys() == words["zh"].keys()
    assert words["en"].pop("phrases") == {}
    said = sentences()
    for phrase, translation in words["zh"].pop("phrases").items():
        names = [sorted(re.findall(r"\{(\w+)\}", text)) for text in (phrase, translation)]
        assert names[0] == names[1], phrase
        for part in re.split(r"\{\w+\}", phrase):
            unit = f'"{part.rstrip("s ")}"'  # "chapters 2-3"
            assert part.removesuffix(": ") in said or unit in said, phrase  # else out of date
    parts = {
        key: [set(re.findall(r"\{(\w+)\}", words[language][key])) for language in words]
        for key in words["en"]
    }
    assert all(english == chinese for english, chinese in parts.values()), parts
    script = package.joinpath("page.js").read_text("utf-8")
    page = script + package.joinpath("index.html").read_text("utf-8")
    known = {key for key in words["en"] if not key.startswith(("group_", "quote_", "error_"))}
    assert {key for key in known if f'"{key}"' not in page} == set()
    used = re.findall(r'\bsay\("(\w+)"', script) + re.findall(r'data-\w+="(\w+)"', page)
    assert set(used) <= known
    application = package.joinpath("page_app.py").read_text("utf-8")
    kinds = {*re.findall(r'\bkind = "(\w+)"', application), "token"}
    kinds |= set(re.findall(r'\bkind, status.* = "(\w+)"', application))
    assert {f"error_{kind}" for kind in kinds} == {key for key in words["en"] if "error_" in key}


def test_empty_token_requires_no_authentication(retriever) -> None:
    assert Client(PageApp(retriever, token="")).get("/").status_code == 200


def test_page_at_foreign_address_requires_token(retriever) -> None:
    with pytest.raises(ValueError, match="token"):
        PageApp(retriever, host="0.0.0.0")
    client = Client(PageApp(retriever, host="0.0.0.0", token="geheim"), "http://192.168.1.4:8766")
    assert client.get("/").status_code == 401
    assert client.get("/api/corpus", token="falsch").status_code == 401
    welcome = client.get("/", token="geheim")
    assert welcome.status_code == 303
    assert welcome.headers["location"] == "/"
    cookie = welcome.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    headers = {"cookie": cookie.split(";")[0]}
    assert asyncio.run(client.request("GET", "/", headers=headers)).status_code == 200


async def test_fifty_concurrent_users_are_answered(app) -> None:
    client = Client(app)

    async def person(number: int) -> list[int]:
        answers = [
            await client.request("GET", "/"),
            await client.request("GET", "/api/corpus"),
            await client.request("POST", "/api/search", json={"query": f"tea {number}"}),
            await client.request("POST", "/api/ask", json={"question": f"Is tea {number} green?"}),
        ]
        return [answer.status_code for answer in answers]

    statuses = await asyncio.gather(*(person(number) for number in range(50)))
    assert statuses == [[200] * 4] * 50


@pytest.mark.slow
def test_first_view_of_large_graph_is_small(tmp_path) -> None:
    """What it takes does not grow with the graph: a page of documents, and counts."""
    graph = NodeGraph(store=tmp_path / "graph.sqlite", progress=False)
    graph.add(
        Document("\n".join(f"Line {line} of {number}." for line in range(20)), id=f"{number}.txt")
        for number in range(5_000)
    )
    graph.create_node_group("line", str.splitlines)
    graph.build("line")
    assert graph.groups["line"].size == 100_000
    client = Client(PageApp(Retriever(graph, "line")))
    paths = ("/", "/page.js", "/page.css", "/words.json", "/api/corpus", "/api/documents")
    answers = [client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {200}
    assert sum(len(answer.content) for answer in answers) < 200_000


def test_failed_request_is_logged_with_reason(app, client, caplog, monkeypatch) -> None:
    errors = [OSError(), RuntimeError("the disk is gone")]

    def fail(*arguments: object) -> None:
        raise errors.pop()

    monkeypatch.setattr(app.pages, "documents", fail)
    assert client.get("/api/documents").status_code == 500
    assert "GET '/api/documents' failed: RuntimeError: the disk is gone" in caplog.text
    assert client.get("/api/documents").json()["error"] == "OSError"  # which has no text
    assert client.get("/api/passage", node="no\x1b[2J").status_code == 404
    assert "GET '/api/passage' failed: " in caplog.text
    assert "\x1b" not in caplog.text
