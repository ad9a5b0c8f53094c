"""A server that records keys, and files that name it, for tests of what files may name."""

import json
import os
import shlex

import pytest
from scripted_server import ChatServer, serving

KEY = "sk-of-the-user"


class AnyServer(ChatServer):
    """Answer as a language model, an embedding model and a reranker."""

    def answer(self, body):
        if "documents" in body:
            scores = [{"index": i, "relevance_score": 1.0} for i in range(len(body["documents"]))]
            return {"results": scores}
        if "input" in body:
            items = [{"index": i, "embedding": [1.0, 0.5]} for i in range(len(body["input"]))]
            return {"object": "list", "model": "m", "data": items}
        return super().answer(body)

    @property
    def keys(self):
        return [headers.get("Authorization") for headers in self.headers]


@pytest.fixture
def recording_server(here, monkeypatch):
    """Serve at the address that the files name; the user has a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-of-the-user")
    with serving(AnyServer()) as server:
        yield server


@pytest.fixture
def somebody_else(monkeypatch):
    """Run as another user than the one who owns the files."""

    def become():
        monkeypatch.setattr(os, "getuid", lambda: 54321)

    return become


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_questions(path):
    """Write as many questions as tuning needs."""
    rows = [{"question": f"Which tea is {i}?", "document_ids": ["docs/tea.md"]} for i in range(20)]
    write(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def allow_as_told(nodekin, ran):
    """Run the command that a refusal ends with."""
    assert ran.status != 0
    assert len(ran.err.splitlines()) == 1, ran.err
    name, *arguments = shlex.split(ran.err.strip().rsplit(": ", 1)[1])
    assert name == "nodekin"
    allowed = nodekin(*arguments)
    assert (allowed.status, allowed.err) == (0, "")


def reranking(server, more=""):
    """Return a file of set-ups whose default one sends passages to a server."""
    return (
        f'[models.far]\nrerank = "m"\nbase_url = "{server.url}"\n{more}\n'
        '[setups.far]\ntype = "RerankRetriever"\n'
        'inner = {type = "DefaultRetriever"}\n'
        'reranker = {name = "ModuleReranker", model = "far"}\n'
    )
