"""Web pages."""

from pathlib import Path

import pytest

from nodekin.adapters.files.html import markdown
from nodekin.nodegraph import NodeGraph

PAGE = """<!DOCTYPE html><html><head><meta charset="{charset}"><svg><title>Icon</title>
</svg><title>茶 &amp; 水</title>
<script>var hidden = 1</script><style>p {{ color: red }}</style></head><body>
<nav><a href="/">Home</a></nav><h1>茶</h1><p>一种<b>饮料</b>，见<a href="water.html">水</a>。</p>
<ul><li>绿</li><li>红</li></ul><h2>价格</h2><table><tr><th>茶</th><th>价</th></tr>
<tr><td>龙井</td><td>4</td></tr></table><pre><code># boil
go</code></pre></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "big5"])
@pytest.mark.parametrize("name", ["tea.html", "tea.htm", "tea.txt", "tea"])
def test_web_pages_are_read_by_page_type(tmp_path: Path, charset: str, name: str) -> None:
    page = PAGE.format(charset=charset)
    if charset == "big5":
        page = page.translate(str.maketrans("种饮见龙红绿", "種飲見龍紅綠")).replace("价", "價")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_bytes(page.encode(charset))
    (node,) = NodeGraph(tmp_path / "docs", progress=False).nodes("ROOT")
    text = node.text.translate(str.maketrans("種飲見龍紅綠價", "种饮见龙红绿价"))
    assert text == (
        "# 茶\n\n一种饮料，见[水](water.html)。\n\n- 绿\n- 红\n\n## 价格\n\n"
        "| 茶 | 价 |\n| --- | --- |\n| 龙井 | 4 |\n\n```\n# boil\ngo\n```"
    )
    assert node.metadata["title"] == "茶 & 水"


def test_links_within_a_page_become_text(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<html><body><p>Tea<a href="#n1">1</a>, see <a href="#water">Water</a> or '
        '<a href="b.html#x">b</a>.</p><p id="n1">1 A note.</p></body></html>'
    )
    (node,) = NodeGraph(tmp_path / "a.html", progress=False).nodes("ROOT")
    assert node.text == "Tea[1], see Water or [b](b.html#x).\n\n1 A note."


def test_text_of_deeply_nested_page_is_kept(tmp_path: Path) -> None:
    html = "<html><body>Tea " + "<div>" * 300_000 + "is green." + "</div>" * 300_000
    (tmp_path / "deep.html").write_text(html + "</body></html>")
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text.split() == ["Tea", "is", "green."]


@pytest.mark.parametrize(
    "part", ["<!--", "<script>", "<input ", "<p hidden style='", "<svg ", "<title>"]
)
def test_unclosed_parts_take_linear_time(tmp_path: Path, part: str) -> None:
    (tmp_path / "a.html").write_text(f"<html><p>Tea.</p>{part * 200_000}")
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text.startswith("Tea.")


def test_page_of_scripts_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<html><script>var a = 1</script></html>")
    graph = NodeGraph(tmp_path, progress=False)
    (note,) = graph.read_report.notes.values()
    assert "pages without a text: 1 (first: line 1)" in note


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>在某些\n  Unix 中，把\r\n用户放到\n一组。</p>", "在某些 Unix 中，把用户放到一组。"),
        ("<p>日本語の\n文。</p><pre>一\n二</pre>", "日本語の文。\n\n```\n一\n二\n```"),
        ("<p>한국어\n문장</p><p>好</p>\n<p>A\nb.</p>", "한국어 문장\n\n好\n\nA\nb."),
    ],
)
def test_line_breaks_of_source_end_no_sentence(html: str, text: str) -> None:
    assert markdown(html) == text
