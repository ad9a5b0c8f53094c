"""Web pages."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph

PAGE = """<!DOCTYPE html><html><head><meta charset="{charset}"><title>茶 &amp; 水</title>
<script>var hidden = 1</script><style>p {{ color: red }}</style></head><body>
<nav><a href="/">Home</a></nav><h1>茶</h1><p>一种<b>饮料</b>，见<a href="water.html">水</a>。</p>
<ul><li>绿</li><li>红</li></ul><h2>价格</h2><table><tr><th>茶</th><th>价</th></tr>
<tr><td>龙井</td><td>4</td></tr></table><pre><code># boil
go</code></pre></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "big5"])
@pytest.mark.parametrize("name", ["tea.html", "tea.htm", "tea.txt", "tea"])
def test_web_pages_by_what_they_are(tmp_path: Path, charset: str, name: str) -> None:
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


def test_links_within_a_page_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<html><body><p>Tea<a href="#n1">1</a>, see <a href="#water">Water</a> or '
        '<a href="b.html#x">b</a>.</p><p id="n1">1 A note.</p></body></html>'
    )
    (node,) = NodeGraph(tmp_path / "a.html", progress=False).nodes("ROOT")
    assert node.text == "Tea[1], see Water or [b](b.html#x).\n\n1 A note."


def test_the_text_of_a_page_that_is_nested_without_end_is_kept(tmp_path: Path) -> None:
    html = "<html><body>" + "<div>" * 300_000 + "Tea is green." + "</div>" * 300_000
    (tmp_path / "deep.html").write_text(html + "</body></html>")
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text == "Tea is green."
