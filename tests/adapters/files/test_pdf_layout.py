"""Paragraphs of mathematics stay whole; authors are no headings; hyphens follow the document."""

import re
from pathlib import Path

import pytest
from support.sample_files import pdf_of
from support.small_files import text_of

from nodekin.nodegraph import NodeGraph

typst = pytest.importorskip("typst", reason="no typst: pip install typst")

MATHEMATICS = r"""#set page(width: 380pt, height: 500pt, columns: COLUMNS)
#set text(size: 10pt)
#set par(justify: true, spacing: 1.4em)
Let $f$ be a function of bounded variation and let $f'$ be its derivative, which exists almost
everywhere, so that $F^(-1)_s (x)$ is well defined for all numbers in the closed interval.

Let $mu^((i))_k$ be the restriction of the measure. Then the map from $L^2$ to $L^(p')$ is bounded
with norm at most $C^(1\/2)_p$, where $p'$ is the conjugate exponent of $p$, and the constant
depends on the dimension $d_(n_k)$ only, which we call $|a_n|^2$ in the following
sections of the paper.

The ion $"SO"^(2-)_4$ has a charge of two, and $m^2_nu << m^2_e$ holds near the end point of the
spectrum, so that the correction $sigma^((2))_"tot"$ may be neglected in the whole discussion.
"""


@pytest.mark.parametrize("columns", [1, 2])
def test_paragraphs_with_raised_and_lowered_signs_stay_whole(tmp_path: Path, columns: int) -> None:
    source = MATHEMATICS.replace("COLUMNS", str(columns))
    text = text_of(tmp_path / "a.pdf", typst.compile(source.encode()))
    paragraphs = text.split("\n\n")
    ends = ["closed interval.", "of the paper.", "whole discussion."]
    assert [re.sub(r".* (\S+ \S+)$", r"\1", paragraph, flags=re.S) for paragraph in paragraphs] == [
        " ".join(end.split()[-2:]) for end in ends
    ]


TITLE = """#set page(width: 380pt, height: 500pt)
#set text(size: 10pt)
#align(center)[#text(size: 17pt)[On bounded functions]]
#align(center)[#text(size: 12pt)[Ann Author]]
#align(center)[#text(size: 12pt)[University of Tea]]
#text(size: 14pt)[1 Introduction]

The functions of this paper are bounded, and each of them has a limit at the end of its interval,
as every reader of the earlier papers knows. We repeat the proofs that are needed in the text,
since some of them were published only in a report that is not easy to find in most libraries.

#text(size: 14pt)[2 Results]

The results are the same as in the earlier papers, with better constants in the last theorem.
"""


def test_authors_below_title_are_no_headings(tmp_path: Path) -> None:
    text = text_of(tmp_path / "a.pdf", typst.compile(TITLE.encode()))
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# On bounded functions", "## 1 Introduction", "## 2 Results"]
    assert "Ann Author" in text


def test_digits_of_turned_text_are_not_raised(tmp_path: Path) -> None:
    page = b"BT /F 12 Tf 60 250 Td (Tea is a drink.) Tj ET "
    page += b"BT /F 12 Tf 0 1 -1 0 20 50 Tm (22 Dec 2023) Tj ET"
    (tmp_path / "a.pdf").write_bytes(pdf_of(page))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (note,) = graph.read_report.notes.values()
    assert "turned lines left out: 1 (first: page 1: 22 Dec 2023)" in note


HYPHENS = {
    "A low-cost plan. A high-dose plan. It is low-|dose.": "low-dose.",
    "A low plan of one dose. It is low-|dose.": "low-dose.",
    "A low-dose plan. It is low-|dose.": "low-dose.",
    "A plan of re-entry. It is a pas-|sage.": "passage.",
    "A plan of re-entry. It is a re-|striction.": "restriction.",
}


@pytest.mark.parametrize("lines", HYPHENS)
def test_hyphen_at_line_end_follows_compounds_of_document(tmp_path: Path, lines: str) -> None:
    first, _, second = lines.partition("|")
    page = f"BT /F 10 Tf 10 250 Td ({first}) Tj 0 -12 Td ({second}) Tj ET"
    text = text_of(tmp_path / "a.pdf", pdf_of(page.encode()))
    assert text.endswith(f" {HYPHENS[lines]}")
