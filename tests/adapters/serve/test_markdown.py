"""Conversion of Markdown into page elements, including hostile input."""

import json
import random

import pytest
from page_client import Client, events_of

from nodekin.adapters.serve.markdown import GrowingMarkdown, elements, passage_elements
from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document

TAGS = set(
    "p h4 h5 h6 ul ol li blockquote pre code em strong s table thead tbody tr th td hr".split()
)
ATTRIBUTES = {"start", "class"}


def walk(parts, depth=0):
    """Yield each element's tag, attributes and depth, and each text as None, text, depth."""
    for part in parts:
        if isinstance(part, str):
            yield None, part, depth
        else:
            tag, attributes, *children = part
            yield tag, attributes, depth
            yield from walk(children, depth + 1)


def text_of(parts):
    return "".join(text for tag, text, _ in walk(parts) if tag is None)


SHOWN = [
    ("plain [1], [2].", [["p", {}, "plain [1], [2]."]]),
    ("one\ntwo  \nthree", [["p", {}, "one\ntwo\nthree"]]),
    ("**bold *both***", [["p", {}, ["strong", {}, "bold ", ["em", {}, "both"]]]]),
    ("**茶圣**是陆羽【1】。", [["p", {}, ["strong", {}, "茶圣"], "是陆羽【1】。"]]),
    ("## Tea ##", [["h5", {}, "Tea"]]),
    ("3. a\n4. b\n   - c", None),
    ("`a[1]` [1]", [["p", {}, ["code", {}, "a[1]"], " [1]"]]),
    ("```js\nx<y\n```", [["pre", {}, ["code", {}, "x<y\n"]]]),
    ("> said", [["blockquote", {}, ["p", {}, "said"]]]),
    ("~~no~~\n\n---", [["p", {}, ["s", {}, "no"]], ["hr", {}]]),
    ("so it is [1].\n\n[1]: tea.md", [["p", {}, "so it is [1]."], ["p", {}, "[1]: tea.md"]]),
    ("see [1](tea.md)", [["p", {}, "see [1]"]]),
    ("[the site](https://a.b/?q=1)", [["p", {}, "the site (https://a.b/?q=1)"]]),
    ("[https://a.b](https://a.b)", [["p", {}, "https://a.b"]]),
    ("![a cup](https://a.b/c.png)", [["p", {}, "a cup"]]),
    ("AT&amp;T \\*", [["p", {}, "AT&T *"]]),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_elements_of_markdown(text, shown) -> None:
    if shown is None:
        inner = ["ul", {}, ["li", {}, "c"]]
        shown = [["ol", {"start": 3}, ["li", {}, "a"], ["li", {}, "b", inner]]]
    assert elements(text) == shown


def test_table_columns_are_aligned() -> None:
    (table,) = elements("| tea | cost |\n|---|--:|\n| `a\\|b` [1] | 4 |")
    _, _, head, body = table
    assert head == ["thead", {}, ["tr", {}, ["th", {}, "tea"], ["th", {"class": "right"}, "cost"]]]
    row = ["tr", {}, ["td", {}, ["code", {}, "a|b"], " [1]"], ["td", {"class": "right"}, "4"]]
    assert body == ["tbody", {}, row]


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
    "`" * 90_000 + "x",  # which takes hours where each start is tried with each end
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:24]))
def test_hostile_markdown_becomes_allowed_elements_only(text) -> None:
    for parts in (
        elements(text),
        elements(text, has_inline=False),
        passage_elements("# a\n\n", text, "\n\nb", "a.md"),
    ):
        json.dumps(parts)
        for tag, value, depth in walk(parts):
            assert tag is None or tag in TAGS | {"mark"}
            assert tag is None or (value.keys() <= ATTRIBUTES and depth < 60)


def test_random_markdown_becomes_allowed_elements_only() -> None:
    signs = "*_~`[]()<>!#->|\\&:;\n \t1.a茶\ufdd0\r"
    for seed in range(300):
        chance = random.Random(seed)
        text = "".join(chance.choice(signs) for _ in range(chance.randrange(1, 200)))
        for parts in (elements(text), passage_elements(text[:20], text[20:50], text[50:], "a.md")):
            assert {tag for tag, _, _ in walk(parts) if tag} <= TAGS | {"mark"}


def marks(parts, marked=False):
    for part in parts:
        if isinstance(part, str):
            yield part if marked else ""
        else:
            yield from marks(part[2:], part[0] == "mark")


MARKED = [  # before, match, after, file name, marked text
    ("# Tea\n\n", "Green tea is **steamed**.", " It is old.", "a.md", "Green tea is steamed."),
    ("", "## Green tea", "\n\nIt is steamed.", "a.md", "Green tea"),
    ("- a\n", "- _b_ [1](x.md)", "\n- c", "a.md", "b [1]"),
    ("| a | b |\n|---|---|\n", "| 1 | 2 |", "\n| 3 | 4 |", "a.pdf", "12"),
    ("", "| a | b |\n|---|---|\n| 1 | 2 |", "", "a.xlsx", "ab12"),
    ("", "```py\nx = 1\n```", "", "a.md", "x = 1"),
    ("陆羽是唐代人。", "他写了《茶经》。", "", "a.txt", "他写了《茶经》。"),
    ("a*b*c ", "d*e*f", " g*h*i", "a.pdf", "d*e*f"),
    ("def f():\n", "    # a comment", "\n    pass", "a.py", "    # a comment"),
    ("[a](http", "s://b.c) d", "", "a.md", "s://b.c) d"),
]


@pytest.mark.parametrize(("before", "hit", "after", "name", "marked"), MARKED)
def test_matching_text_is_marked(before, hit, after, name, marked) -> None:
    parts = passage_elements(before, hit, after, name)
    assert "".join(marks(parts)).strip() == marked.strip()


def test_programs_and_unknown_formats_stay_plain_text() -> None:
    assert passage_elements("", "", "# *x*\n\n  y", "a.py") == ["# *x*\n\n  y"]
    assert passage_elements("# a\n", "*b*", "", "a.rst") == ["# a\n", ["mark", {}, "*b*"]]
    assert passage_elements("", "", "# a\n\n2*3*4", "a.pdf") == [
        ["h4", {}, "a"],
        ["p", {}, "2*3*4"],
    ]


LONG = """# Tea

One *two*
three [1].

- a
- b

  c

| a |
|---|
| 1 |

```
x

y
```

1. one

2. two

茶【1】

> q

end"""


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_growing_markdown_equals_complete_markdown(size) -> None:
    growing, blocks, longest = GrowingMarkdown(), [], 0
    for start in range(0, len(LONG), size):
        blocks += growing.add(LONG[start : start + size])
        longest = max(longest, len(growing.pending))
    assert blocks + growing.finish() == elements(LONG)
    assert longest < len(LONG) or size == 1000


def test_answer_is_sent_in_blocks(retriever) -> None:
    text = (
        "**Black** tea [1]:\n\n| a | b |\n|---|---|\n| 1 | <b>2</b> |\n\nIt is [old](javascript:x)."
    )

    def model(prompt):
        return text

    model.stream = lambda prompt: iter(text.split(" "))  # a model without pieces has one
    events = events_of(Client(PageApp(retriever, model)).post("/api/ask", question="Black tea?"))
    assert "".join(e["text"] for e in events if e["type"] == "text") == text
    blocks = [e for e in events if e["type"] == "blocks"]
    assert [block for e in blocks for block in e["blocks"]] == elements(text)
    assert blocks[-1]["pending"] == ""
    (source, *_) = next(e for e in events if e["type"] == "sources")["sources"]
    assert source["blocks"][0] == ["h4", {}, "Black tea"]


def test_files_with_equal_names_show_folders(client, graph) -> None:
    for folder in ("guide", "guide/old"):
        path = f"{folder}/README.md"
        graph.add(Document(f"Kettles boil in {folder}.", {"file_name": "README.md"}, id=path))
    graph.add(Document("Kettles sing.", {"file_name": "a.html", "title": "Sounds"}, id="b/a.html"))
    found = client.post("/api/search", query="kettles").json()["results"]
    assert {(one["title"], one["folder"]) for one in found} == {
        *(("README.md", "guide"), ("README.md", "guide/old"), ("Sounds", "b/a.html"))
    }
    record = client.get("/api/passage", node="guide/old/README.md").json()
    assert (record["title"], record["folder"]) == ("README.md", "guide/old")
    assert client.get("/api/passage", node="rivers.md").json()["folder"] == ""
