import asyncio
import socket

import pytest
import uvicorn
from support.page_client import Client, found, text_of

pytestmark = pytest.mark.enable_socket

SERVE = ("serve", "--port", "0")


@pytest.fixture
def visited(monkeypatch):
    """Call a function with the page's client instead of serving the page. Return its result."""
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "")
    returned = {}

    def visit(look):
        def run(server, sockets):
            returned["value"] = look(Client(server.config.app, address_of(sockets)))

        monkeypatch.setattr(uvicorn.Server, "run", run)
        return returned

    return visit


def address_of(sockets):
    host, port = sockets[0].getsockname()
    return f"http://{host}:{port}"


def look(client):
    return found(client.get("/search", query="fermented"))


def test_folder_is_served(nodekin, visited):
    returned = visited(look)
    ran = nodekin("serve", "docs", "--port", "0")
    assert ran.status == 0, ran.err
    assert "http://127.0.0.1:" in ran.err
    listed = nodekin("search", "--in", "docs", "fermented", "--json").json["results"]
    assert returned["value"] == [one["document"] for one in listed]


def test_page_names_model_and_folder(indexed, here, visited, monkeypatch):
    returned = visited(lambda client: text_of(client.get("/")))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert indexed(*SERVE, "-m", "small").status == 0
    assert "small answers" in returned["value"]
    assert returned["value"].startswith(here.name)
    assert indexed(*SERVE).status == 0
    assert "no language model" in returned["value"]


def test_serve_with_invalid_options_raises(nodekin, here):
    assert nodekin("serve").status == 3
    assert nodekin("serve", "nowhere").status == 2
    assert nodekin("serve", "docs", "--min-score", "5").status == 2
    ran = nodekin("serve", "docs", "--host", "0.0.0.0")
    assert ran.status == 2
    assert "NODEKIN_SERVE_TOKEN" in ran.err


def test_only_printed_address_opens_page(nodekin, here, visited, monkeypatch):
    monkeypatch.delenv("NODEKIN_SERVE_TOKEN")
    opened = {}

    def run(server, sockets):
        opened["client"] = Client(server.config.app, address_of(sockets))

    monkeypatch.setattr(uvicorn.Server, "run", run)
    ran = nodekin(*SERVE, "docs")
    address = next(word for word in ran.err.split() if word.startswith("http"))
    client = opened["client"]
    assert client.get("/").status_code == 401
    welcome = asyncio.run(client.request("GET", address))
    assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
    cookie = {"cookie": welcome.headers["set-cookie"].split(";")[0]}
    assert asyncio.run(client.request("GET", "/", headers=cookie)).status_code == 200
    assert nodekin(*SERVE, "docs").err.split("?token=")[1][:16] not in address  # another each time


def test_used_port_is_reported_before_any_address(nodekin):
    with socket.create_server(("127.0.0.1", 0)) as used:
        ran = nodekin("serve", "docs", "--port", str(used.getsockname()[1]))
    assert ran.status == 3
    assert "choose another with --port or --host" in ran.err
    assert "http://" not in ran.err


def test_port_out_of_range_is_a_wrong_option(nodekin):
    ran = nodekin("serve", "docs", "--port", "99999")
    assert ran.status == 2
    assert "99999 is not in the range 0<=x<=65535" in ran.err
