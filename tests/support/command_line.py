"""Fixtures that run the command line in a folder with documents."""

import json

import pytest
from click.testing import CliRunner

from nodekin.adapters.cli.app import app
from nodekin.nodegraph import Embedder

FILES = {
    "tea.md": "# Tea\n\nGreen tea is steamed. It stays green.\n\n"
    "## Black tea\n\nIt is fermented.\n",
    "river.txt": "The Yangtze is long.\n\nIt runs to the sea, past Wuhan.\n",
    "茶.md": "# 茶\n\n陆羽写了《茶经》。他生活在唐代。\n\n绿茶不经过发酵。\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch, tmp_path_factory):
    """Create a folder with three documents, and make its parent the current folder."""
    for name in ("OPENAI_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "NODEKIN_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name, text in FILES.items():
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    return tmp_path


class Ran:
    """The output and the exit status of a command."""

    def __init__(self, result):
        self.status = result.exit_code
        self.out = result.stdout
        self.err = result.stderr
        self.error = result.exception

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def documents(self):
        return [result["document"] for result in self.json["results"]]


@pytest.fixture
def nodekin(here):
    """Return a function that runs the command with the given arguments."""

    def run(*arguments, input=None, color=False):
        return Ran(CliRunner().invoke(app, [str(a) for a in arguments], input=input, color=color))

    return run


@pytest.fixture
def indexed(nodekin):
    """Return a function that runs the command in a folder that is already indexed."""
    assert nodekin("index", "docs").status == 0
    return nodekin


@pytest.fixture
def embedding(monkeypatch):
    """Return a function that sets the embedding model of commands.

    The model returns the lengths of texts or raises an error. Each call of the function replaces
    the model.
    """

    def set_model(name="letters", numbers=2, error=None):
        def embed(texts):
            if error is not None:
                raise error
            return [[len(text), *[text.count("a") + 1] * (numbers - 1)] for text in texts]

        target = "nodekin.adapters.named_models.embedding_model"
        monkeypatch.setattr(target, lambda _: Embedder(embed, name))

    return set_model
