"""Docstrings, comments, pages and test names are plain prose."""

import ast
import re
from collections.abc import Iterator

import pytest
from support.prose import check_prose, count_hits, pages_prose, programs_prose
from support.source_tree import REPO, files, short

PACKAGES = sorted({short(path).rpartition("/")[0] for path in files()})


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_plain_prose(package: str) -> None:
    check_prose(programs_prose((REPO / package).glob("*.py")), 60)


def _pages() -> list[str]:
    """Return the English pages. Data of tests and benchmarks are not pages."""
    pages = [REPO / ".github" / "pull_request_template.md", *REPO.glob("*.md")]
    for folder in ("docs", "examples", "packaging"):
        pages += REPO.glob(f"{folder}/**/*.md")
    pages += [*REPO.glob("benchmarks/*.md"), *REPO.glob("benchmarks/results/*.md")]
    paths = sorted(path.relative_to(REPO).as_posix() for path in pages)
    return [path for path in paths if not re.search(r"(?:^|/)zh/|\.zh\.md$", path)]


@pytest.mark.parametrize("page", _pages())
def test_pages_have_plain_prose(page: str) -> None:
    check_prose(pages_prose([REPO / page]), 60)


NOTE = re.compile(r"(?:^|[.)] |\|)\s*(?:None|Empty|False|True|0): [a-z]", re.MULTILINE)
"""A note without a verb, such as "None: all."."""


@pytest.mark.parametrize("page", _pages())
def test_pages_explain_values_in_sentences(page: str) -> None:
    passages = [text for _, text in pages_prose([REPO / page])]
    assert [text for text in passages if NOTE.search(text)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_explain_values_in_sentences(package: str) -> None:
    passages = programs_prose((REPO / package).glob("*.py"))
    assert [place for place, text in passages if NOTE.search(text)] == []


def test_tests_have_plain_prose() -> None:
    check_prose(programs_prose((REPO / "tests").rglob("*.py"), names=True), 80)


def test_check_lists_worst_passages_first() -> None:
    assert count_hits("Return what is there where there is no other.") > 3
    bad = ("b.py:3", "Return what is there where there is no other, too.")
    with pytest.raises(AssertionError, match=r"words, at most 60 in 10,000: .*\n +\d+ b\.py:3: R"):
        check_prose([("a.py:1", "Return the name."), bad], 60)


# A class of nodekin.adapters, names of tools, an operator of filters, a kind of terms.
NOT_OBJECTS = {"OpenAIChat", "cite", "grep", "outline", "related", "contains", "identifiers"}


def _public_names() -> set[str]:
    """Return the names that can be imported from public packages."""
    stubs = [*REPO.glob("*.pyi"), *REPO.glob("nodegraph/*.pyi"), *REPO.glob("retrievers/**/*.pyi")]
    names: set[str] = set()
    for stub in stubs:
        tree = ast.parse(stub.read_text("utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names.update(alias.name for node in imports for alias in node.names)
    return names


def _documented() -> Iterator[tuple[str, str]]:
    """Yield the public objects, and their public methods, with their docstrings."""
    public = _public_names()
    for path in [*REPO.glob("nodegraph/**/*.py"), *REPO.glob("retrievers/**/*.py")]:
        for item in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(item, ast.ClassDef | ast.FunctionDef) or item.name not in public:
                continue
            yield item.name, ast.get_docstring(item) or ""
            for part in ast.walk(item) if isinstance(item, ast.ClassDef) else ():
                is_method = isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                if is_method and not part.name.startswith("_"):
                    yield f"{item.name}.{part.name}", ast.get_docstring(part) or ""


def test_names_in_public_docstrings_are_public() -> None:
    ours: set[str] = set()
    attributes: set[str] = set()
    for folder in ("nodegraph", "retrievers", "adapters"):
        for path in REPO.glob(f"{folder}/**/*.py"):
            for item in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    ours.add(item.name)
                if isinstance(item, ast.ClassDef):
                    attributes.update(part.name for part in item.body if hasattr(part, "name"))
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    attributes.add(item.target.id)
                if isinstance(item, ast.arg):
                    attributes.add(item.arg)
    known = _public_names() | attributes | NOT_OBJECTS
    missing = []
    for where, text in _documented():
        for name in re.findall(r"``([A-Za-z]\w*)(?:[.(][^`]*)?``", text):
            if name in ours and name not in known:
                missing.append(f"{where}: {name}")
    assert missing == []
