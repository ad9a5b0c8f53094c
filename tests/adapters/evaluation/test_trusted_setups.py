"""What a file of set-ups that somebody else wrote can make a command do: see docs/security.md."""

import os

import pytest
from foreign_files import KEY, allow_as_told, recording_server, reranking, write, write_questions

from nodekin.adapters.evaluation.setup_session import load_setup

__all__ = ["recording_server"]

pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.usefixtures("socket_enabled")]


@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"])
@pytest.mark.parametrize(
    "command",
    [
        ("search", "tea", "--setups", "setups.toml", "--in", "docs"),
        ("ask", "tea?", "--setups", "setups.toml", "--in", "docs"),
        ("eval", "setups.toml", "--data", "q.jsonl", "--docs", "docs"),
        ("tune", "setups.toml", "--data", "q.jsonl", "--docs", "docs", "--seconds", "99"),
    ],
)
def test_the_keys_that_setups_name_stay_here_until_they_are_allowed(
    nodekin, here, recording_server, command, variable
):
    write(here / "setups.toml", reranking(recording_server, f'api_key_env = "{variable}"'))
    write_questions(here / "q.jsonl")
    extra = ("--model", "m", "--base-url", recording_server.url) if command[0] == "ask" else ()
    ran = nodekin(*command)
    assert (ran.status, recording_server.asked) == (4, [])
    assert variable in ran.err
    assert os.environ[variable] not in ran.err
    allow_as_told(nodekin, ran)
    nodekin(*command, *extra)
    assert f"Bearer {os.environ[variable]}" in recording_server.keys


def test_a_judge_of_a_file_gets_no_key_until_it_is_allowed(nodekin, here, recording_server):
    address = f'base_url = "{recording_server.url}"\napi_key_env = "OPENAI_API_KEY"\n'
    models = f'[models.j]\nchat = "m"\n{address}'
    write(here / "setups.toml", models + '[setups.d]\ntype = "DefaultRetriever"\n')
    write(here / "q.jsonl", '{"question": "Which tea?", "document_ids": ["docs/tea.md"]}\n')
    command = ("eval", "setups.toml", "--data", "q.jsonl", "--docs", "docs", "--judge", "j")
    ran = nodekin(*command)
    assert (ran.status, recording_server.asked) == (4, [])
    allow_as_told(nodekin, ran)
    nodekin(*command)
    assert f"Bearer {KEY}" in recording_server.keys


@pytest.mark.parametrize(
    ("variable", "status"), [("OPENAI_API_KEY", 0), ("AWS_SECRET_ACCESS_KEY", 4)]
)
def test_the_server_that_the_person_chose_gets_well_known_keys_only(
    nodekin, here, recording_server, monkeypatch, variable, status
):
    monkeypatch.setenv("OPENAI_BASE_URL", recording_server.url)
    text = reranking(recording_server, f'api_key_env = "{variable}"').replace(
        f'base_url = "{recording_server.url}"\n', ""
    )
    write(here / "setups.toml", text)
    command = ("search", "tea", "--setups", "setups.toml", "--in", "docs")
    ran = nodekin(*command)
    assert ran.status == status
    assert bool(recording_server.asked) == (status == 0)
    if status:
        allow_as_told(nodekin, ran)
        assert nodekin(*command).status == 0
    assert recording_server.keys == [f"Bearer {os.environ[variable]}"]


def test_a_program_that_names_a_file_has_said_so(here, recording_server):
    write(here / "setups.toml", reranking(recording_server, 'api_key_env = "OPENAI_API_KEY"'))
    load_setup("setups.toml", documents=["Tea is a drink."])("tea")
    assert recording_server.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("table", ['source = "../private"', 'store = "../private/graph.sqlite"'])
def test_setups_name_no_folder_elsewhere_that_is_not_allowed(nodekin, here, monkeypatch, table):
    (here / "private").mkdir()
    write(here / "private" / "diary.md", "The secret of Anna.")
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write(
        here / "clone" / "setups.toml", f'[graph]\n{table}\n[setups.a]\ntype = "DefaultRetriever"'
    )
    command = ("search", "secret", "--setups", "setups.toml")
    ran = nodekin(*command)
    assert ran.status == 3
    assert not (here / "private" / "graph.sqlite").exists()
    allow_as_told(nodekin, ran)
    assert nodekin(*command).status == (0 if "source" in table else 1)


@pytest.mark.parametrize(
    "table", ['embed = "sentence-transformers:./model"', 'embed = "far"\n[models.far]\nembed = '
    '"sentence-transformers:a/b"\ntrust_remote_code = true']
)  # fmt: skip
def test_a_model_that_may_bring_code_is_not_opened_until_it_is_allowed(nodekin, here, table):
    (here / "model").mkdir()
    write(here / "setups.toml", f'[setups.a]\ntype = "DefaultRetriever"\n[graph]\n{table}\n')
    command = ("search", "tea", "--in", "docs", "--setups", "setups.toml")
    ran = nodekin(*command)
    assert ran.status == 4
    assert "which may bring programs that run here" in ran.err
    allow_as_told(nodekin, ran)
    assert "nodekin trust" not in nodekin(*command).err


def test_what_is_tuned_may_name_what_the_person_has_named(
    nodekin, here, monkeypatch, recording_server
):
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write_questions(here / "clone" / "q.jsonl")
    command = ("tune", "--data", "q.jsonl", "--docs", "../docs", "--seconds", "99")
    assert nodekin(*command).status in (0, 1)
    assert nodekin("search", "tea", "--setups", "tuned.toml").status == 0
