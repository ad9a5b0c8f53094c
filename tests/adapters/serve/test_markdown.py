"""Conversion of Markdown to HTML, including hostile input."""

import random
from html.parser import HTMLParser

import pytest

from nodekin.adapters.serve.markdown import markdown, marked_passage

TAGS = {
    *"p h4 h5 h6 ul ol li blockquote pre code em strong s table thead tbody tr th td".split(),
    *("hr", "br", "div", "mark", "a"),
}


class Checker(HTMLParser):
    """A parser that fails on elements and attributes that the page does not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.marked = ""
        self.in_mark = False

    def handle_starttag(self, tag, attrs) -> None:
        assert tag in TAGS
        for name, value in attrs:
            assert (
                (name, value) in (("class", "plain"), ("class", "citation"))
                or (name in ("start", "class") and value.isalnum())
                or (name == "href" and value.startswith("#source-"))
            )
        self.in_mark = self.in_mark or tag == "mark"

    def handle_endtag(self, tag) -> None:
        self.in_mark = self.in_mark and tag != "mark"

    def handle_data(self, data) -> None:
        self.marked += data if self.in_mark else ""


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    return checker


SHOWN = [
    ("one\ntwo", "<p>one<br />\ntwo</p>\n"),
    ("**茶圣**是陆羽【1】。", "<p><strong>茶圣</strong>是陆羽{1}。</p>\n"),
    ("## Tea ##", "<h5>Tea</h5>\n"),
    ("`a[1]` [1, 2] [3] [x]", "<p><code>a[1]</code> {1} {2} [3] [x]</p>\n"),
    ("```js onclick=x\nx<y [1]\n```", "<pre><code>x&lt;y [1]\n</code></pre>\n"),
    ("so it is [1].\n\n[1]: tea.md", "<p>so it is {1}.</p>\n<p>{1}: tea.md</p>\n"),
    ("[1](tea.md) ![a](https://a.b/c.png)", "<p>{1}(tea.md) ![a](https://a.b/c.png)</p>\n"),
    ("<b>AT&amp;T</b> \\*", "<p>&lt;b&gt;AT&amp;T&lt;/b&gt; *</p>\n"),
    ("3. a", '<ol start="3">\n<li>a</li>\n</ol>\n'),
]


@pytest.mark.parametrize(("text", "html"), SHOWN)
def test_markdown_becomes_html_with_citations(text, html) -> None:
    for n in (1, 2):
        html = html.replace(f"{{{n}}}", f'<a class="citation" href="#source-{n}">{n}</a>')
    assert markdown(text, [1, 2]) == html


def test_table_columns_are_aligned_by_class() -> None:
    html = markdown("| tea | cost |\n|---|--:|\n| `a\\|b` | 4 |")
    assert '<th class="right">cost</th>' in html
    assert "<td><code>a|b</code></td>" in html
    assert "style" not in html


HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">\n\n<svg/onload=alert(1)>',
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [1](vbscript:x)",
    "[x](data:text/html;base64,PHNjcmlwdD4=) ![x](data:image/png;base64,AAAA)",
    "<javascript:alert(1)> <https://a.b>",
    "[a]: javascript:alert(1)\n\n[a] [1][a]",
    '[x](https://a.b "onclick=alert(1)") <a href=javascript:alert(1)>x</a>',
    "| <b>x</b> | [y](javascript:z) |\n|---|---|\n| ![](x) | <iframe> |",
    "```\n</code><script>alert(1)</script>\n```",
    '```"onclick="x\ncode\n```',
    "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;b&#x3e;",
    "\ufdd0x\ufdd1 \x00 \ud83c \u202e",
    "*a " * 2_000 + "a* " * 2_000,
    ">" * 20_000,
    "- " * 10_000,
    "[" * 3_000,
    "a b " * 24_000,
    "".join(f"{'  ' * depth}- x\n" for depth in range(200)),
    "x" * 150_000,
    "`" * 90_000 + "x",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_markdown_becomes_allowed_elements_only(text) -> None:
    checked(markdown(text, [1]))
    checked(markdown(text, has_inline=False))
    checked(marked_passage("# a\n\n", text, "\n\nb", "a.md"))


def test_random_markdown_becomes_allowed_elements_only() -> None:
    signs = "*_~`[]()<>!#->|\\&:;\n \t1.a茶\ufdd0\r\"'"
    for seed in range(300):
        chance = random.Random(seed)
        text = "".join(chance.choice(signs) for _ in range(chance.randrange(1, 200)))
        checked(markdown(text, [1, 11]))
        checked(marked_passage(text[:20], text[20:50], text[50:], "a.md"))


MARKED = [  # before, match, after, file name, marked text
    ("# Tea\n\n", "Green tea is **steamed**.", " It is old.", "a.md", "Green tea is steamed."),
    ("", "## Green tea", "\n\nIt is steamed.", "a.md", "Green tea"),
    ("- a\n", "- _b_ [1](x.md)", "\n- c", "a.md", "b [1](x.md)"),
    ("| a | b |\n|---|---|\n", "| 1 | 2 |", "\n| 3 | 4 |", "a.pdf", "12"),
    ("", "| a | b |\n|---|---|\n| 1 | 2 |", "", "a.xlsx", "ab12"),
    ("", "```py\nx = 1\n```", "", "a.md", "x = 1"),
    ("陆羽是唐代人。", "他写了《茶经》。", "", "a.txt", "他写了《茶经》。"),
    ("a*b*c ", "d*e*f", " g*h*i", "a.pdf", "d*e*f"),
    ("def f():\n", "    # a comment", "\n    pass", "a.py", "    # a comment"),
    ("```", "js", "\nx\n```", "a.md", "js"),
]


@pytest.mark.parametrize(("before", "hit", "after", "name", "marked"), MARKED)
def test_matching_text_is_marked(before, hit, after, name, marked) -> None:
    assert checked(marked_passage(before, hit, after, name)).marked.strip() == marked.strip()


def test_programs_and_unknown_formats_stay_plain_text() -> None:
    assert marked_passage("", "", "# *x*\n\n  y", "a.py") == '<div class="plain"># *x*\n\n  y</div>'
    expected = '<div class="plain"># a\n<mark>*b*</mark></div>'
    assert marked_passage("# a\n", "*b*", "", "a.rst") == expected
    assert marked_passage("", "", "# a\n\n2*3*4", "a.pdf") == "<h4>a</h4>\n<p>2*3*4</p>\n"
