"""What a file of set-ups that somebody else wrote can make the page do: see docs/security.md."""

import json
import shlex

import pytest
import uvicorn
from foreign_files import recording_server, reranking, somebody_else, write
from page_client import Client

__all__ = ["recording_server", "somebody_else"]

pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.usefixtures("socket_enabled")]


def test_setups_that_the_page_finds_send_no_key_until_it_is_allowed(
    nodekin, here, recording_server, monkeypatch
):
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "")
    write(
        here / "setups.toml", reranking(recording_server, 'api_key_env = "AWS_SECRET_ACCESS_KEY"')
    )
    answers = []

    def run(app, host, port, **config):
        client = Client(app, f"http://{host}:{port}")
        answers.append(client.post("/api/search", query="tea"))

    monkeypatch.setattr(uvicorn, "run", run)
    ran = nodekin("serve", "docs")
    assert ran.status == 0
    assert recording_server.asked == []
    assert (answers[0].status_code, "nodekin trust" in answers[0].json()["error"]) == (502, True)
    told = next(line for line in ran.err.splitlines() if "nodekin trust" in line)
    nodekin(*shlex.split(told.rsplit(": ", 1)[1])[1:])
    assert nodekin("serve", "docs").status == 0
    assert answers[1].status_code == 200, answers[1].text
    assert recording_server.keys == ["Bearer aws-of-the-user"]


def test_setups_of_another_user_are_read_where_they_are_named(nodekin, here, somebody_else):
    write(here / "setups.toml", '[setups.a]\ntype = "DefaultRetriever"\n')
    somebody_else()
    ran = nodekin("serve", "docs")
    assert ran.status == 2
    assert "setups.toml is not read: it belongs to another user" in ran.err
    assert nodekin("search", "tea", "--in", "docs", "--setups", "setups.toml").status == 0


def test_the_page_opens_no_index_of_others(indexed, here, somebody_else):
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./docs"}
    write(file, json.dumps(record))
    ran = indexed("serve")
    assert ran.status == 4
    assert "which may bring programs that run here" in ran.err
    somebody_else()
    ran = indexed("serve")
    assert ran.status == 3
    assert "is not read: it belongs to another user" in ran.err
