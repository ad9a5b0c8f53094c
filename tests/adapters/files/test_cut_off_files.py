"""Files that are cut off or damaged are noted, or skipped if they have no text."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError

LONG = " ".join(f"Tea number {number} is green." for number in range(40))

MAIL = (
    'Subject: Tea\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="AB"\n\n'
    f"--{{}}\nContent-Type: text/plain\n\n{LONG}\n{{}}\n"
)

NOTED = {
    "open group.rtf": (
        rf"{{\rtf1\ansi Shown.\par {LONG} {{\b more\par",
        "unbalanced groups, so that text may be missing: 2",
    ),
    "closed.rtf": (
        rf"{{\rtf1\ansi Shown.}} }}{LONG}}}",
        "unbalanced groups, so that text may be missing: 1",
    ),
    "no end.eml": (MAIL.format("AB", ""), "parts cut off: 1 (first: multipart/mixed)"),
    "wrong boundary.eml": (
        MAIL.format("AC", "--AC--"),
        "parts without their boundary: 1 (first: multipart/mixed)",
    ),
    "header only.eml": ("Subject: Tea\n" + f"X-Note: {LONG}\n\n", "messages without text: 1"),
    "tag.html": (f'<html><body><p>{LONG}</p><p class="a', "pages cut off: 1 (first: line 1, in"),
    "quote.html": (f"<html><body><p>{LONG}</p><a href='b>{LONG}", "inside a tag"),
    "comment.html": (f"<html><body><p>Shown.</p>\n<!-- {LONG}", "line 2, inside a comment"),
    "script.html": (f"<html><body><p>Shown.</p><script>{LONG}", "inside a script"),
    "head.html": (f"<html><head><meta name=a>{LONG}", "inside a head"),
    "string.json": (f'{{"a": "{LONG}', "JSON cut off, read as text: 1 (first: line 1)"),
    "list.json": ('[{"a": 1},\n {"a": 2}', "JSON cut off, read as text: 1 (first: line 2)"),
}


@pytest.mark.parametrize("name", NOTED)
def test_cut_off_file_is_noted(tmp_path: Path, name: str) -> None:
    data, note = NOTED[name]
    (tmp_path / name).write_text(data)
    graph = NodeGraph(tmp_path / name, progress=False)
    assert note in " ".join(graph.read_report.notes.values())
    text = "".join(node.text for node in graph.nodes("ROOT"))
    assert "X-Note" not in text
    assert "Content-Type" not in text


WHOLE = {
    "a.rtf": rf"{{\rtf1\ansi \{{ a \\ {LONG}\par}}" + "\n\0",
    "a.eml": MAIL.format("AB", "--AB--"),
    "a.html": f"<html><head><title>1 < 2</title></head><!-- a --><body><p>{LONG} 1 < 2</body>",
    "b.html": f"<p>{LONG}<script>if (1<2) {{}}</script> <p>It's \"open",
    "a.json": f'// remark\n{{"a": "{LONG}"}}',
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_file_has_no_note(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WHOLE[name])
    graph = NodeGraph(tmp_path / name, progress=False)
    assert graph.read_report.notes == {}
    assert "Tea number 39 is green." in graph.nodes("ROOT")[0].text


WITHOUT_TEXT = {
    "a.rtf": rf"{{\rtf1\ansi {{\fonttbl{{\f0 Arial;}} {LONG}\par}}",
    "a.html": f"<html><body><script>{LONG}</script></body></html>",
    "a.csv": ",,,\n" * 200,
    "a.jsonl": "\n" * 3000,
    "a.txt": "\t\n" * 1200,
}


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_file_without_text_is_skipped(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(WITHOUT_TEXT[name])
    (tmp_path / "tea.md").write_text("Tea.")
    graph = NodeGraph(tmp_path, progress=False, on_error="skip")
    assert len(graph.nodes("ROOT")) == 1
    assert str(graph.read_report) == "1 read, 1 skipped: 1 no text"
    with pytest.raises(ReadError, match="bytes and no text"):
        NodeGraph(tmp_path / name, progress=False)
