"""Word documents, slides, OpenDocument and rich text: struck-through text keeps its marks."""

from pathlib import Path

import pytest
from support.small_files import (
    open_document,
    open_style,
    slide_deck,
    text_of,
    word,
    word_run,
)

STRUCK_STYLE = '<w:style w:styleId="Old"><w:rPr><w:strike/></w:rPr></w:style>'


WORD = {
    "strike": "<w:strike/>",
    "double strike": "<w:dstrike/>",
    "style": '<w:rStyle w:val="Old"/>',
    "raised, too": '<w:strike/><w:vertAlign w:val="superscript"/>',
}


@pytest.mark.parametrize("kind", WORD)
def test_struck_word_text_keeps_marks(tmp_path: Path, kind: str) -> None:
    runs = word_run("Fee ") + word_run("10 ", WORD[kind]) + word_run("euros", WORD[kind])
    runs += word_run(" 12", '<w:strike w:val="0"/><w:i/>')
    text = text_of(tmp_path / "a.docx", word(f"<w:p>{runs}</w:p>", STRUCK_STYLE))
    assert text == "Fee ~~10 euros~~ 12"


def test_raised_word_text_beside_unset_strike_stays_raised(tmp_path: Path) -> None:
    raised = '<w:strike w:val="0"/><w:vertAlign w:val="superscript"/>'
    runs = word_run("about 2") + word_run("30", raised) + word_run(" bytes")
    assert text_of(tmp_path / "a.docx", word(f"<w:p>{runs}</w:p>")) == "about 2^30 bytes"


def test_struck_slide_text_keeps_marks(tmp_path: Path) -> None:
    text = text_of(tmp_path / "a.pptx", slide_deck(struck="10 euros", hidden="x"))
    assert "Shown ~~10 euros~~" in text


LINES = ['style:text-line-through-style="solid"', 'style:text-line-through-type="double"']


@pytest.mark.parametrize("line", LINES)
def test_struck_open_text_keeps_marks(tmp_path: Path, line: str) -> None:
    body = '<text:p>Fee <text:span text:style-name="S">10 euros</text:span> 12</text:p>'
    data = open_document("text", body, open_style("S", line))
    assert text_of(tmp_path / "a.odt", data) == "Fee ~~10 euros~~ 12"


@pytest.mark.parametrize(
    "body", [r"{\strike 10 euros}", r"\striked1 10 euros\striked0 ", r"\i\strike 10 euros\strike0 "]
)
def test_struck_rich_text_keeps_marks(tmp_path: Path, body: str) -> None:
    data = rf"{{\rtf1\ansi Fee {body} 12 or 10{{\super 5}}\par}}".encode()
    assert " ".join(text_of(tmp_path / "a.rtf", data).split()) == "Fee ~~10 euros~~ 12 or 10^5"
