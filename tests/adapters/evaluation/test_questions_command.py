import json

import pytest
from scripted_server import ChatServer, serving

from nodekin.adapters.evaluation import questions_command

TEXT = (
    "The Rhine rises in the Alps of Switzerland and runs north to Holland. On its way it passes "
    "Basel, Bonn and Cologne, where it is some 400 metres wide."
)
WRITTEN = '{"question": "How broad is the stream near Cologne?", "answer": "400 metres"}'


@pytest.fixture
def rhine(nodekin, here):
    (here / "docs" / "rhine.md").write_text(TEXT, encoding="utf-8")
    return nodekin


def script(prompt):
    """Write a question, and answer it."""
    return "It is 400 metres wide there: 400 metres." if prompt.startswith("Answer") else WRITTEN


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_a_model_writes_questions_that_eval_takes(rhine, here):
    pytest.importorskip("openai", reason="a server's model needs openai")
    with serving(ChatServer()) as server:
        server.text = script
        command = ("questions", "docs", "-n", "1", "--kind", "single", "--model", "writer")
        ran = rhine(*command, "--base-url", server.url)
        assert ran.status == 0, ran.err
        first, counted, written = ran.out.splitlines()
        assert first == "How broad is the stream near Cologne? -> 400 metres"
        assert counted.startswith("1 question: 1 of 1 single; ")
        assert written.endswith("then: nodekin eval --docs docs --data questions.jsonl")
        (row,) = map(json.loads, (here / "questions.jsonl").read_text("utf-8").splitlines())
        (span,) = row["spans"]
        assert TEXT[span["start"] : span["end"]] == "400 metres"
        asked = len(server.asked)
        ran = rhine(*command, "--base-url", server.url)
        assert (ran.status, len(server.asked)) == (2, asked)
        assert "questions.jsonl is there already" in ran.err
        ran = rhine(*command, "--base-url", server.url, "--force", "--json")
        assert ran.json["questions"] == 1
        assert len(server.asked) == asked  # what it said is kept
    ran = rhine("eval", "--docs", "docs", "--data", "questions.jsonl", "-m", "hit_rate@5", "--json")
    assert ran.json["figures"]["default"]["hit_rate@5"]["value"] == 1


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_that_no_question_passes_is_no_wrong_command_line(rhine, here):
    pytest.importorskip("openai", reason="a server's model needs openai")
    with serving(ChatServer()) as server:
        server.text = "I would rather not."
        ran = rhine("questions", "docs", "-n", "1", "--model", "writer", "--base-url", server.url)
        assert (ran.status, "no question passed the checks" in ran.err) == (1, True)
        command = ("questions", "docs", "--kind", "linked", "--model", "writer")
        ran = rhine(*command, "--base-url", server.url)
        assert (ran.status, "no two passages share a name" in ran.err) == (1, True)
    assert not (here / "questions.jsonl").exists()


def test_interrupted_it_says_how_to_go_on(rhine, here, monkeypatch):
    pytest.importorskip("openai", reason="a server's model needs openai")

    def interrupted(*args, **options):
        options["store"].touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(questions_command, "generate_questions", interrupted)
    ran = rhine("questions", "docs", "--model", "writer", "--base-url", "http://127.0.0.1:9/v1")
    assert ran.status == 130
    assert "questions.answers.db has what is done; the same command goes on" in ran.err
    assert not (here / "questions.jsonl").exists()


def test_a_log_becomes_questions_with_the_clicked_documents(nodekin, here):
    rows = [
        {"query": "steamed tea", "clicked": ["docs/tea.md"], "count": 3},
        {"query": "Steamed  tea", "clicked": ["docs/tee.md"]},
        {"query": "Wuhan", "clicked": []},
    ]
    (here / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    ran = nodekin("questions", "docs", "--log", "log.jsonl", "--field", "question=query")
    assert ran.status == 5
    assert "'docs/tee.md' is in no document; nearest: 'docs/tea.md'" in ran.err
    assert "2 questions of log.jsonl, 1 with documents that were clicked; 1 clicked" in ran.out
    first, second = map(json.loads, (here / "questions.jsonl").read_text("utf-8").splitlines())
    assert first["document_ids"] == {"docs/tea.md": 3.0, "docs/tee.md": 1.0}
    assert second == {"id": "2", "question": "Wuhan"}
    ran = nodekin("questions", "--log", "log.jsonl", "--field", "question=query", "--force")
    assert ran.status == 0  # without documents nothing can be missing


def test_what_is_needed_is_said(nodekin):
    ran = nodekin("questions", "docs")
    assert (ran.status, "OPENAI_MODEL" in ran.err) == (4, True)
    ran = nodekin("questions", "docs", "--field", "question=query")
    assert (ran.status, "name it with --log" in ran.err) == (2, True)
    ran = nodekin("questions", "--log", "none.jsonl")
    assert (ran.status, "none.jsonl" in ran.err) == (3, True)
    ran = nodekin("questions", "docs", "--kind", "double")
    assert (ran.status, "single" in ran.err) == (2, True)
