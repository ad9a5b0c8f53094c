import json

import pytest
from scripted_server import ChatServer, serving

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

QUESTION = "Which tea is fermented?"


@pytest.fixture
def server(indexed, monkeypatch, socket_enabled):
    with serving(ChatServer()) as server:
        server.text = "Black tea is fermented [1]."
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        yield server


def test_an_answer_is_stored_until_its_sources_change(nodekin, server, here):
    assert nodekin("ask", QUESTION, "--keep").status == 0
    again = nodekin("ask", QUESTION)
    assert again.out.startswith("Black tea is fermented [1].")
    assert "stored before" in again.err
    assert len(server.asked) == 1
    nodekin("ask", QUESTION, "--fresh")
    assert len(server.asked) == 2
    assert nodekin("answers").out.splitlines() == [QUESTION]
    assert (nodekin("answers", "--stale").status, nodekin("answers", "coffee").status) == (0, 1)

    file = here / "docs" / "tea.md"
    file.write_text(file.read_text().replace("is fermented", "is fully fermented"))
    nodekin("index", "docs")
    ran = nodekin("answers", "--stale", "--json")
    (record,) = json.loads(ran.out)["answers"]
    assert ran.status == 1
    assert record["question"] == QUESTION
    assert any("was changed" in cause for cause in record["stale"])
    assert "fully fermented" in " ".join(item["text"] for item in record["added"])
    assert "stored before" not in nodekin("ask", QUESTION).err

    server.text = "It is fully fermented [1]."
    assert nodekin("answers", "--refresh").status == 0
    assert nodekin("answers", "--stale").status == 0
    assert nodekin("ask", QUESTION).out.startswith("It is fully fermented [1].")
    assert nodekin("answers", "--remove", "fermented").status == 0
    ran = nodekin("answers")
    assert (ran.status, ran.out) == (1, "")
    assert "no answer is stored; nodekin ask --keep stores one" in ran.err


def test_the_strategy_and_the_mode_of_an_answer_are_known(nodekin, server, here):
    asked = ([], ["--strategy", "multi_query"], ["--mode", "refine", "--strategy", "sub_question"])
    for number, options in enumerate(asked):
        nodekin("ask", f"{QUESTION} {number}", "--keep", *options)
    assert nodekin("answers", "--stale").out == ""
    calls = len(server.asked)
    assert nodekin("answers", "--refresh").out == ""
    assert len(server.asked) == calls
    (here / "docs" / "new.md").write_text("Nothing of that kind.")
    nodekin("index", "docs")
    listed = nodekin("answers", "--refresh").out
    assert "only a model could tell" in listed
    assert "another" not in listed
    assert nodekin("answers", "--stale").out == ""


def test_the_min_score_of_an_answer_is_known(nodekin, server):
    nodekin("ask", QUESTION, "--keep")
    asked = ("ask", "Is tea old?", "--keep", "--min-score", "0.9", "--mode", "refine")
    assert nodekin(*asked).status == 1
    assert nodekin("answers", "--stale").out == ""
    calls = len(server.asked)
    assert nodekin("answers", "--refresh").out == ""
    assert len(server.asked) == calls
    assert "stored before" not in nodekin("ask", "Is tea old?").err


def test_an_engine_of_a_file_checks_what_it_answered(nodekin, server, here):
    (here / "setups.toml").write_text(
        """
[setups.words]
type = "Retriever"
group_name = "sentence"

[setups.engine]
type = "QueryEngine"
retriever = "words"
llm = "scripted"
top_k = 1

[models.scripted]
chat = "scripted"
"""
    )
    searching = ["--setups", "setups.toml", "--setup", "engine"]
    assert nodekin("ask", QUESTION, "--keep", *searching).status == 0
    assert nodekin("answers", "--stale", *searching).out == ""
    assert nodekin("answers", "--refresh", *searching).out == ""
    assert len(server.asked) == 1


def test_an_answer_under_a_filter_is_not_shown_without_it(nodekin, server):
    nodekin("ask", QUESTION, "--keep", "--filter", "file_name=tea.md")
    nodekin("ask", QUESTION)
    assert len(server.asked) == 2
    nodekin("ask", QUESTION, "--filter", "file_name=tea.md")
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["ask", QUESTION, "--keep", "--in", "docs"], "--in"),
        (["ask", QUESTION, "--keep", "--chat"], "--chat"),
        (["answers", "tea", "--refresh"], "PART"),
    ],
)
def test_what_does_not_go_together(nodekin, indexed, options, named):
    ran = nodekin(*options)
    assert ran.status == 2
    assert named in ran.err
