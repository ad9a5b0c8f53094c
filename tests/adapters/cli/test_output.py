"""Results on a terminal and as JSON: place, snippet, explanation."""

from pathlib import Path

import pytest

from nodekin.adapters.cli.output import highlighted

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Many rivers ran.", "What is a river?", ["rivers"]),
        ("绿茶不发酵，红茶发酵。", "绿茶怎么发酵", ["绿茶", "发酵", "发酵"]),
        ("他写的《茶经》。", "谁写了茶经", ["茶经"]),
        ("茶是饮品。", "茶", ["茶"]),
        ("C++ and C", "c++", ["C++"]),
        ("nothing here", "zebra", []),
        ("Die Flüsse sind lang, und der Fluss ist tief.", "Fluss", ["Flüsse", "Fluss"]),
        ("Книги и реки", "книга", ["Книги"]),
        ("ดื่มน้ำชา", "น้ำชา", ["น้ำชา"]),
        ("x = getUserName(y)", "user name", ["getUserName"]),
        ("", "tea", []),
        ("Pump E-105 of 3.1.0 at 5GHz", "E105 3.1.0 5 GHz", ["E-105", "3.1.0", "5GHz"]),
        ("On March 9, 2026: 1,106,500", "2026-03-09 1106500", ["March 9, 2026", "1,106,500"]),
    ],
)
def test_words_of_query_are_highlighted(text, query, found):
    marked = [n for span in highlighted(text, query).spans for n in range(span.start, span.end)]
    shown = "".join(c if n in marked else "\n" for n, c in enumerate(text))
    assert [part for part in shown.split("\n") if part] == found


def test_search_shows_place_score_and_lines(indexed):
    ran = indexed("search", "fermented")
    assert ran.status == 0
    head, *text = ran.out.splitlines()
    assert head.startswith("1. docs/tea.md:7  ")
    assert head.endswith("  passage")
    assert text == ["   It is fermented."]


def test_snippet_of_code_has_line_numbers(nodekin, here):
    values = "".join(f"\nvalue_{n} = {n}" for n in range(8))
    code = f"{values}\ndef steep(leaves):\n    pass\n"
    (here / "docs" / "tea.py").write_text(code)
    out = nodekin("search", "steep leaves", "--in", "docs", "-k", "1").out
    assert "     9  value_7 = 7\n" in out
    assert "    10  def steep(leaves):\n" in out
    assert out.startswith("1. docs/tea.py:10  ")


@pytest.mark.parametrize("number", [16, 17])
def test_snippet_of_table_has_header_row(nodekin, here, number):
    rows = "".join(f"| sort {n} | {n} yuan |\n" for n in range(30))
    text = f"Tea costs this.\nA cup is free.\n\n| tea | price |\n|---|---|\n{rows}"
    (here / "docs" / "prices.md").write_text(text)
    lines = nodekin("search", f"sort {number} price", "--in", "docs", "-k", "1").out.splitlines()
    assert "   | tea | price |" in lines
    assert f"   | sort {number} | {number} yuan |" in lines
    assert len(lines) <= 6


def test_snippet_of_long_line_is_an_excerpt(nodekin, here):
    text = "Nothing of note. " * 30 + "Green tea is withered. " + "And so on it goes. " * 30
    name = f"{'long' * 20}.txt"
    (here / "docs" / name).write_text(text)
    head, *lines = nodekin("search", "withered", "--in", "docs", "-k", "1").out.splitlines()
    assert head.startswith(f"1. docs/{name}:1 ")  # not wrapped
    assert "Green tea is withered. And so on" in " ".join(map(str.strip, lines))
    assert len(lines) == 5
    assert max(map(len, lines)) <= 80


def test_place_is_page_of_the_match(nodekin, here):
    pytest.importorskip("pypdfium2")
    files = here / "files"
    files.mkdir()
    for file in SAMPLES.iterdir():
        (files / file.name).write_bytes(file.read_bytes())
    nodekin("index", "files")
    out = nodekin("search", "who pays the freight", "-k", "1").out
    assert out.startswith("1. files/handbook.pdf, page 2, 2.2 Complaints  ")
    assert "the garden pays the freight" in " ".join(out.split())


def test_explain_shows_evidence(indexed):
    out = indexed("search", "fermented", "--explain").out
    assert '  sentence  bm25 for "fermented": "It is fermented."' in out


def test_equal_text_of_another_document_is_named(nodekin, here):
    (here / "docs" / "copy.md").write_bytes((here / "docs" / "tea.md").read_bytes())
    ran = nodekin("search", "fermented", "--in", "docs")
    assert ran.out.count("It is fermented.") == 1
    assert "   also in tea.md, " in ran.out


def test_colors_are_for_terminals_only(indexed, monkeypatch):
    assert "\x1b" not in indexed("search", "fermented").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31mfermented\x1b[0m" in indexed("search", "fermented").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31m" not in indexed("search", "fermented").out


def test_json_has_each_field(indexed, here):
    (result,) = indexed("search", "Wuhan", "--json").json["results"]
    text = (here / "docs" / "river.txt").read_text(encoding="utf-8")
    assert (result["rank"], result["line"], result["group"]) == (1, 1, "passage")
    assert result["path"] == str(here / "docs" / "river.txt")
    assert text[result["start"] : result["end"]] == result["text"]
    assert {match["group"] for match in result["matches"]} == {"passage", "sentence"}
    for match in result["matches"]:
        assert (match["similarity"], match["query"]) == ("bm25", "Wuhan")


def test_control_characters_do_not_reach_the_terminal(nodekin, here):
    text = "Zebra \x1b]0;title\x07 \u061c\u200e\u200f\u202e\u2066\u2028\u2029\x9b stripes."
    (here / "docs" / "bad.txt").write_text(text, encoding="utf-8")
    for options in ([], ["--explain"]):
        ran = nodekin("search", "zebra", "--in", "docs", *options)
        assert ran.status == 0
        assert not {"\x1b", "\x07"} & set(ran.out)
    ran = nodekin("search", "zebra", "--in", "docs", "--json")
    assert ran.out.isascii()
    assert "\x1b" not in ran.out
    assert ran.json["results"][0]["text"] == text
