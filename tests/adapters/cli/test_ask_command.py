import json

import pytest
from rich.cells import cell_len
from support.sample_files import pdf_of
from support.scripted_server import ChatServer, serving

from nodekin.adapters.cli.ask_command import wrapped
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def server(here, monkeypatch, socket_enabled):
    with serving(ChatServer()) as server:
        server.text = "It is fermented [1]."
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        yield server


@pytest.mark.parametrize("given", ["OPENAI_MODEL", "OPENAI_API_KEY"])
def test_ask_without_model_names_variables(nodekin, monkeypatch, given):
    monkeypatch.setenv(given, "m")
    ran = nodekin("ask", "tea?", "--in", "docs")
    assert (ran.status, len(ran.err.splitlines())) == (4, 1)
    missing = "OPENAI_MODEL (--model), and " if given == "OPENAI_API_KEY" else ""
    assert f"set {missing}OPENAI_BASE_URL" in ran.err


def test_answer_has_numbered_sources(nodekin, server):
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs", "-k", "2", "--model", "other")
    assert ran.status == 0
    answer, blank, first, *excerpt = ran.out.splitlines()
    assert answer == "It is fermented [1]."
    assert blank == ""
    assert first == "[1] docs/tea.md:7"
    assert "    It is fermented." in excerpt[:3]
    assert server.asked[0]["model"] == "other"
    assert server.asked[0]["stream"] is True


def test_quotations_are_checked(nodekin, server):
    server.text = "Black tea “is FERMENTED” [1], “never smoked” [1]."
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs", "-k", "1")
    assert "“never smoked” is in no source" in ran.err
    assert "FERMENTED" not in ran.err
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs", "-k", "1", "--json")
    first, second = json.loads(ran.out)["quotes"]
    assert (first["status"], first["spans"][0]["text"]) == ("same_letters", "is fermented")
    assert (second["status"], second["spans"]) == ("not_found", [])


def test_ask_json_has_each_field(nodekin, server):
    told = nodekin("ask", "Which tea is fermented?", "--in", "docs", "--json").json
    assert (told["command"], told["answer"]) == ("ask", "It is fermented [1].")
    assert (told["found"], told["preset"], told["model"]) == (True, False, "scripted")
    first = told["sources"][0]
    assert (first["number"], first["cited"], first["document"]) == (1, True, "docs/tea.md")
    assert "It is fermented." in first["shown"]
    assert first["matches"][0]["similarity"] == "bm25"
    assert told["left_out"] == []


def test_ask_json_lists_results_beyond_the_context_window(nodekin, server, here):
    passage = "It is fermented. " * 50
    (here / "long").mkdir()
    (here / "long" / "tea.txt").write_text("\n\n".join(f"{n}. {passage}" for n in range(99)))
    told = nodekin("ask", "Which tea is fermented?", "--in", "long", "-k", "99", "--json").json
    assert told["left_out"][0] == {"document": "long/tea.txt", "reason": "context_window"}
    assert len(told["left_out"]) + len(told["sources"]) == 99


def test_ask_also_reads_results_without_the_phrase(nodekin, server, here):
    (here / "docs" / "apart.txt").write_text("The tea is green, and tea is tea.")
    told = nodekin("ask", '"green tea"', "--in", "docs", "--json").json
    assert {source["document"] for source in told["sources"]} == {"docs/tea.md", "docs/apart.txt"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ask_with_strategy(nodekin, server, strategy):
    server.text = "Which tea is fermented?"
    ran = nodekin("ask", "fermented", "--in", "docs", "--strategy", strategy, "--json")
    assert ran.status == 0
    assert ran.json["sources"][0]["document"] == "docs/tea.md"


def test_ask_filters_by_conditions_of_the_question(nodekin, server, here):
    (here / "docs" / "new.txt").write_text("The new tea is fermented.")
    server.text = '{"query": "fermented tea", "filters": {"file_name": "NEW.txt"}}'
    ran = nodekin(
        "ask", "fermented tea in new.txt", "--in", "docs", "--strategy", "self_query", "--json"
    )
    assert [source["document"] for source in ran.json["sources"]] == ["docs/new.txt"]


def test_min_score_asks_no_model(nodekin, server):
    ran = nodekin("ask", "fermented", "--in", "docs", "--min-score", "1.01")
    assert ran.status == 2
    assert "Invalid value for '--min-score': 1.01 is not in the range 0<=x<=1" in ran.err
    ran = nodekin("ask", "fermented", "--in", "docs", "--min-score", "1")
    assert (ran.status, server.asked) == (1, [])
    assert "Nothing was found that answers this question" in ran.out
    assert nodekin("ask", "fermented", "--in", "docs", "--min-score", "0.1").status == 0


def test_chat_remembers_questions(nodekin, server):
    asked = "Which tea is fermented?\n\nAnd who likes it?\n"
    nodekin("ask", "--chat", "--in", "docs", input=asked)
    assert any("Which tea is fermented?" in prompt for prompt in server.prompts[1:])


def test_broken_stream_keeps_text(nodekin, server):
    server.pieces = 2
    ran = nodekin("ask", "fermented?", "--in", "docs")
    assert ran.status == 4
    assert ran.out.startswith("It is")


def test_chat_survives_failure(nodekin, server):
    server.statuses = [401]
    ran = nodekin("ask", "--chat", "--in", "docs", input="fermented?\nfermented tea?\n")
    assert "It is fermented [1]." in ran.out
    assert len(ran.err.splitlines()) == 2
    assert ran.status == 0


@pytest.mark.parametrize("end", ["/quit", "exit", "QUIT", "/exit", "退出"])
def test_chat_explains_itself_and_ends(nodekin, server, end):
    typed = f"/help\n/joke\n{end}\nWhich tea is fermented?\n"
    ran = nodekin("ask", "--chat", "--in", "docs", input=typed)
    first, help_line, unknown = ran.err.splitlines()
    assert first.startswith("nodekin: ask a question")
    assert help_line.startswith("nodekin: each line is a question")
    assert unknown.startswith("nodekin: a command must be /help or /quit, got '/joke'")
    assert server.asked == []
    assert ran.out == ""


def test_chat_is_silent_if_quiet(nodekin, server):
    assert nodekin("ask", "--chat", "-q", "--in", "docs", input="/quit\n").err == ""


def test_min_score_above_all_results_is_explained(nodekin, server):
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs", "--min-score", "0.99")
    assert ran.status == 1
    assert "all passages score below --min-score 0.99; the best score is 0." in ran.err
    assert server.asked == []


def test_uncited_sources_are_counted(nodekin, server, here):
    for number in range(4):
        (here / "docs" / f"{number}.txt").write_text(f"Tea number {number} is fermented.")
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs", "-k", "4")
    lines = ran.out.splitlines()
    assert sum(line.startswith("[") for line in lines) == 1
    assert lines[-1] == "+ 3 more read, not cited"


def test_unreachable_server_is_named(nodekin, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "qwen")
    ran = nodekin("ask", "Which tea is fermented?", "--in", "docs")
    assert ran.status == 4
    assert "the model server http://127.0.0.1:9/v1 does not answer" in ran.err
    assert "OPENAI_BASE_URL" in ran.err


def test_question_without_results_names_skipped_files(nodekin, server, here):
    (here / "docs" / "scan.pdf").write_bytes(pdf_of(b"/I Do"))
    nodekin("index", "docs")
    ran = nodekin("ask", "zebra")
    assert ran.status == 1
    assert "1 file was skipped: 1 scanned PDF (scan.pdf): read with: nodekin index" in ran.err
    assert nodekin("ask", "zebra", "-q").err == ""


@pytest.mark.parametrize("size", [1, 3, 500])
def test_answers_are_wrapped_at_spaces_in_a_terminal(size):
    text = "Green tea is steamed.\n\n- It keeps its fresh colour for years  [1].\n绿茶不发酵。" * 3
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    lines = "".join(wrapped(pieces, 20)).split("\n")
    assert max(map(cell_len, lines)) <= 20
    assert lines[:5] == [
        "Green tea is",
        "steamed.",
        "",
        "- It keeps its fresh",
        "colour for years ",
    ]
    assert "".join(wrapped(pieces, 20)).split() == text.split()
    assert "".join(wrapped(pieces, None)) == text
    assert "".join(wrapped([], 20)) == ""
