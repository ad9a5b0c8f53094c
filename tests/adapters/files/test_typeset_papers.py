"""Papers that are typeset here, whose source is the truth: paragraphs, sentences, headings."""

import random
import re
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from nodekin.nodegraph import NodeGraph

pytestmark = pytest.mark.slow

WORDS = (
    "water green tea leaf plant growth method sample measured temperature under the of and in "
    "with for was were a that rate increased decreased significantly plots between treatments "
    "soil yield nitrogen protein cells expression analysis results observed according control "
    "group value during after before which response concentration"
).split()

CHARACTERS = "茶叶水温植物生长方法样品测量结果讨论土壤氮素产量蛋白细胞表达分析对照处理浓度时间"

CHINESE = (
    '#set text(size: 10.5pt, font: ("Noto Serif CJK SC", "Noto Sans CJK SC"), lang: "zh")\n'
    "#set par(first-line-indent: (amount: 2em, all: true))"
)

CJK_FONTS = list(Path("/usr/share/fonts").rglob("Noto*CJK*"))

RAISED = (("m", "-2"), ("10", "5"), ("L", "-1"), ("CO", "2"), ("plots", "12,13"))

SCRIPTS = ("#super[{}]", "#sub[{}]", "#text(baseline: -5pt, size: 6.5pt)[{}]")


class Paper(NamedTuple):
    """A paper's source and the expected text."""

    source: str
    headings: list[str]
    sentences: list[str]


def paper(seed: int, columns: int, leading: float, indented: bool, language: str) -> Paper:
    choose = random.Random(seed)
    spacing, indent = (leading, "1.5em") if indented else (1.9 * leading, "0em")
    parts = [
        f'#set page(paper: "a4", columns: {columns}, header: [Journal of Tea Research], '
        "footer: context [#h(1fr) #counter(page).display()])\n"
        "#set text(size: 11pt)\n"
        f"#set par(leading: {leading}em, justify: true, spacing: {spacing}em, "
        f"first-line-indent: {indent})\n" + (CHINESE if language == "zh" else "")
    ]
    between = "" if language == "zh" else " "
    headings, sentences = [], []
    for section in range(1, 4):
        title = "".join(choose.choices(CHARACTERS, k=5))
        title = title if language == "zh" else " ".join(choose.sample(WORDS, 3)).title()
        headings.append(f"{section} {title}")
        parts.append(f"= {headings[-1]}")
        for _ in range(6):
            written = [sentence(choose, language) for _ in range(choose.randint(3, 8))]
            parts.append(between.join(source for source, _ in written))
            sentences += [text for _, text in written]
    return Paper("\n\n".join(parts), headings, sentences)


def sentence(choose: random.Random, language: str) -> tuple[str, str]:
    """Return a sentence as Typst has it, and as a reader should."""
    between, end = ("", "。") if language == "zh" else (" ", ".")
    words = choose.choices(CHARACTERS if language == "zh" else WORDS, k=choose.randint(8, 40))
    source = text = [words[0].title(), *words[1:]]
    if choose.random() < 0.6:
        at = choose.randrange(1, len(words))
        base, raised = choose.choice(RAISED)
        script = base + choose.choice(SCRIPTS).format(raised)
        source, text = ([*text[:at], new, *text[at:]] for new in (script, base + raised))
    return between.join(source) + end, between.join(text) + end


def squeezed(text: str) -> str:
    """Return a text without whitespace, hyphens, and the marks of superscripts."""
    return re.sub(r"[\s\u2212^\[\]-]", "", text)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("leading", "indented", "language"),
    [*((*way, "en") for way in product([0.65, 1.6], [False, True])), (0.65, True, "zh")],
)
def test_paragraphs_sentences_and_headings(
    tmp_path: Path, columns: int, leading: float, indented: bool, language: str
) -> None:
    if language == "zh" and not CJK_FONTS:
        pytest.skip("no Chinese font; apt-get install fonts-noto-cjk")
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    whole = total = unended = paragraphs = right = found = expected = 0
    for seed in range(3):
        made = paper(seed, columns, leading, indented, language)
        (tmp_path / "a.typ").write_text(made.source, encoding="utf-8")
        typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
        (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
        blocks = [block.strip() for block in node.text.split("\n\n") if block.strip()]
        headings = {squeezed(b.lstrip("# ")) for b in blocks if b.startswith("#")}
        body = [b for b in blocks if not b.startswith("#") and b != "Journal of Tea Research"]
        joined = [squeezed(block) for block in body]
        whole += sum(any(squeezed(s) in block for block in joined) for s in made.sentences)
        total += len(made.sentences)
        unended += sum(not block.endswith((".", "。")) for block in body)
        paragraphs += len(body)
        right += len(headings & set(map(squeezed, made.headings)))
        found += len(headings)
        expected += len(made.headings)
    assert whole / total >= 0.97
    assert unended / paragraphs <= 0.08
    assert 2 * right / (found + expected) >= 0.85


RUNNING_TITLE = """#set heading(bookmarked: false)
#show heading: set text(size: 11.5pt)
#set page(header: context {
  let titles = query(heading).filter(title => title.location().page() <= here().page())
  if titles.len() > 0 { upper(titles.last().body) }
})
"""


@pytest.mark.parametrize("columns", [1, 2])
def test_headings_without_outline_and_running_titles_are_found(
    tmp_path: Path, columns: int
) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    for seed in range(3):
        made = paper(seed, columns, 0.65, indented=True, language="en")
        setting, _, body = made.source.partition("\n\n")
        (tmp_path / "a.typ").write_text(f"{setting}\n{RUNNING_TITLE}\n{body}", encoding="utf-8")
        typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
        (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
        blocks = [block.strip() for block in node.text.split("\n\n") if block.strip()]
        headings = [block.lstrip("# ") for block in blocks if block.startswith("#")]
        assert headings == made.headings
        whole = [any(squeezed(s) in squeezed(block) for block in blocks) for s in made.sentences]
        assert sum(whole) >= 0.97 * len(whole)
        assert not any(title.upper() in node.text for title in made.headings)


def test_letters_of_arabic_ligatures_are_in_order(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    text = "خلال الأميركية لاعب الإسلام الآن"
    (tmp_path / "a.typ").write_text(
        f'#set text(lang: "ar", font: "DejaVu Sans Mono")\n{text}', encoding="utf-8"
    )
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    assert node.text == text


def test_superscripts_of_pdf_are_no_digits_of_numbers(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    (tmp_path / "a.typ").write_text(
        "That is 2#super[30], or 10#super[-9], CO#sub[2]. The tea.#super[12] For 5#super[1] euros, "
        "or $a^2 = 2^30$. Tea#footnote[A note.] at 25 m#super(typographic: false)[2], in 2030."
    )
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    assert " ".join(node.text.split()) == (
        "That is 2^30, or 10^-9, CO2. The tea.[12] For 5[1] euros, or a^2 = 2^30. Tea[1] at 25 "
        "m^2, in 2030. [1] A note."
    )


def test_unreadable_character_is_noted_and_lines_keep_their_places(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    setting = '#set text(font: "DejaVu Sans Mono", fallback: false)\n'
    (tmp_path / "a.typ").write_text(f"{setting}Green 茶 tea.", encoding="utf-8")
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text == "Green \ufffd tea."
    assert node.locations[0].rectangle
    assert "unreadable characters: 1 (first: page 1)" in "".join(graph.read_report.notes.values())
