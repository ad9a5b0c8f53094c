"""The READMEs: install lines, measured figures, and the README of the package index."""

import re
import runpy
import sys
from typing import Any

import pytest
from support.source_tree import REPO

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

READMES = ("README.md", "README.zh.md")

# For each row of a table: the row of benchmarks/README.md, and the figure of its cells.
FIRST = 0
FIVE = 1
OTHER_WORDS = ("Help center, English, among 1,500 passages", FIRST)
HOTPOT = [("HotpotQA", FIRST), ("HotpotQA", FIVE)]
GERMAN = ("XQuAD, de", FIRST)
JAPANESE = ("JSQuAD", FIRST)
CHINESE = ("Help center, Chinese", FIRST)
ROWS = {
    "README.md": [OTHER_WORDS, *HOTPOT, GERMAN, JAPANESE],
    "README.zh.md": [OTHER_WORDS, *HOTPOT, CHINESE, GERMAN, JAPANESE],
}
# For each column of a table: the columns of benchmarks/README.md whose best figure it has.
COLUMNS = [
    ["**nodekin**, default"],
    ["vectors of passages"],
    ["LangChain, parents"],
    ["LangChain, Ensemble"],
    ["LlamaIndex, ranks", "LlamaIndex, relative", "LlamaIndex, distribution"],
    ["haystack, ranks", "haystack, distribution"],
]
MEASURED = ("benchmarks/README.md", "docs/quickstart.md", "docs/stores.md")


@pytest.fixture(scope="module")
def index_readme() -> dict[str, Any]:
    """Return the names of packaging/index_readme.py."""
    return runpy.run_path(str(REPO / "packaging" / "index_readme.py"))


def _read(name: str) -> str:
    return (REPO / name).read_text(encoding="utf-8")


def _table(text: str, column: str) -> list[list[str]]:
    """Return the cells of the first table with a column, header first."""
    (table, *_) = [
        lines for lines in re.findall(r"(?:^\|.*\n)+", text, re.M) if f"| {column} |" in lines
    ]
    rows = [re.split(r"\s*\|\s*", line)[1:-1] for line in table.splitlines()]
    return [rows[0], *rows[2:]]


@pytest.mark.parametrize("name", READMES)
def test_comparison_has_the_measured_figures(name: str) -> None:
    header, *rows = _table(_read("benchmarks/README.md"), "LangChain, Ensemble")
    measured = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    _, *shown = _table(_read(name), "nodekin")
    for (row, place), (question, *cells) in zip(ROWS[name], shown, strict=True):
        expected = [
            max(100 * float(measured[row][column].split(" / ")[place]) for column in columns)
            for columns in COLUMNS
        ]
        figures = [float(cell.strip("*")) for cell in cells]
        assert figures == pytest.approx(expected), question
        bold = [cell.startswith("**") for cell in cells]
        assert bold == [figure == max(figures) for figure in figures], question


@pytest.mark.parametrize("name", READMES)
def test_readme_figures_are_measured(name: str) -> None:
    measured = "\n".join(_read(page) for page in MEASURED)
    known = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", measured)}
    text = _read(name)
    start = text.index("\n## ", text.index("\n## ") + 1)
    end = text.index("\n## In LangChain" if name == "README.md" else "\n## LangChain")
    figures = [float(number) for number in re.findall(r"\d+\.\d+|\d+(?= MB)", text[start:end])]
    figures.remove(0.1)  # the version
    assert len(figures) > 30
    assert [n for n in figures if n not in known and round(n / 100, 4) not in known] == []


@pytest.mark.parametrize("name", READMES)
def test_readme_has_one_install_line(index_readme: dict[str, Any], name: str) -> None:
    written = index_readme["readme"]
    assert _read(name) == written(name), "python packaging/index_readme.py"
    lines = [written(name, published=published) for published in (False, True)]
    commands = [re.findall(r"pip install .*", text) for text in lines]
    assert commands == [['pip install ".[files]"'], ['pip install "nodekin[files]"']]
    extras = tomllib.loads(_read("pyproject.toml"))["project"]["optional-dependencies"]
    assert index_readme["EXTRA"] in extras


def test_pages_install_from_where_the_readme_installs(index_readme: dict[str, Any]) -> None:
    for path in index_readme["PAGES"]:
        text = path.read_text(encoding="utf-8")
        assert text == index_readme["page"](text), f"{path.name}: python packaging/index_readme.py"
    line = 'pip install ".[serve]" uvicorn'
    published = index_readme["page"](line, published=True)
    assert published == 'pip install "nodekin[serve]" uvicorn'
    assert index_readme["page"](published, published=False) == line


def test_package_index_readme_has_absolute_links_only(index_readme: dict[str, Any]) -> None:
    made = index_readme["index_readme"]()
    assert _read("packaging/README.md") == made, "python packaging/index_readme.py"
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]*)\)", made))
    assert 'pip install "nodekin[files]"' in made
    assert "nodekin search" in made


def test_package_index_readme_has_no_dead_references(index_readme: dict[str, Any]) -> None:
    references = (
        "中文",
        "All figures",
        "Speed]",
        "class by class",
        "tutorial",
        "Read on",
        "Project:",
    )
    alone = index_readme["index_readme"]()
    linked = index_readme["index_readme"]("https://example.org/files", "https://example.org/raw")
    for reference in references:
        assert reference not in alone
        assert reference in linked
    assert "not on PyPI" not in linked
    assert "Python 3.10+. MIT license." in alone


def test_package_index_readme_has_whole_sentences(index_readme: dict[str, Any]) -> None:
    text = re.sub(r"^```.*?^```$", "", index_readme["index_readme"](), flags=re.M | re.S)
    paragraphs = [part for part in re.split(r"\n+", text) if part and part[0] not in "#|"]
    assert len(paragraphs) > 10
    assert [part for part in paragraphs if not part.endswith((".", ":"))] == []
    assert not re.search(r"[.:]\s*[,.]|\(\s*\)| ,", text)
