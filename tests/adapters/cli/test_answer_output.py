import sys

import pytest

from nodekin.adapters.cli.ask_command import AnswerOutput
from nodekin.adapters.cli.output import columns


def written(capsys, pieces):
    with AnswerOutput("qwen") as output:
        for piece in pieces:
            output.write(piece)
    return capsys.readouterr()


@pytest.fixture
def terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(AnswerOutput, "is_terminal", lambda self, stream: stream is sys.stdout)
    return capsys


ENGLISH = "Green tea is steamed soon after it has been picked, so that it stays green. " * 3
CHINESE = "绿茶是不发酵的茶，鲜叶采摘以后很快就要杀青，所以它的颜色是绿的。" * 3


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, "one\n\ntwo " + ENGLISH])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lines_fit_the_terminal_however_the_pieces_come(terminal, text, size):
    out = written(terminal, [text[at : at + size] for at in range(0, len(text), size)]).out
    lines = out.splitlines()
    assert max(map(columns, lines)) <= 42  # a closing mark hangs over
    assert "".join(out.split()) == "".join(text.split())
    assert not any(line.startswith(("，", "。", " ", ".")) for line in lines)
    assert len(lines) == {ENGLISH: 6, CHINESE: 5}.get(text, 8)


def test_words_are_whole(terminal):
    lines = written(terminal, list(ENGLISH)).out.splitlines()
    assert " ".join(line.strip() for line in lines).split() == ENGLISH.split()


def test_elsewhere_pieces_are_as_they_come(capsys):
    captured = written(capsys, [ENGLISH])
    assert (captured.out, captured.err) == (ENGLISH + "\n", "")


def test_something_is_shown_while_it_waits(monkeypatch, capsys):
    monkeypatch.setattr(AnswerOutput, "is_terminal", lambda self, stream: stream is sys.stderr)
    with AnswerOutput("qwen") as output:
        assert "waiting for qwen ..." in capsys.readouterr().err
        output.write("Tea.")
        assert capsys.readouterr().err == "\r" + " " * len("waiting for qwen ...") + "\r"
    assert capsys.readouterr() == ("\n", "")


def test_nothing_written_is_no_line(capsys):
    assert written(capsys, []).out == ""


def test_control_characters_are_not_sent_to_the_terminal(terminal):
    assert written(terminal, ["tea \x1b[2J"]).out == "tea \ufffd[2J\n"
