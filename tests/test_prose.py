"""Docstrings, comments, pages and test names are plain prose."""

import pytest
from support.prose import check_prose, count_hits, pages_prose, programs_prose
from support.source_tree import REPO, files, short

PACKAGES = sorted({short(path).rpartition("/")[0] for path in files()})


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_plain_prose(package: str) -> None:
    check_prose(programs_prose((REPO / package).glob("*.py")), 60)


def test_pages_have_plain_prose() -> None:
    pages = [REPO / "README.md", REPO / "CONTRIBUTING.md", REPO / "AGENTS.md"]
    check_prose(pages_prose([*pages, *REPO.glob("docs/*.md"), *REPO.glob("docs/start/*.md")]), 60)


def test_tests_have_plain_prose() -> None:
    check_prose(programs_prose((REPO / "tests").rglob("*.py"), names=True), 80)


def test_check_lists_worst_passages_first() -> None:
    assert count_hits("Return what is there where there is no other.") > 3
    bad = ("b.py:3", "Return what is there where there is no other, too.")
    with pytest.raises(AssertionError, match=r"words, at most 60 in 10,000: .*\n +\d+ b\.py:3: R"):
        check_prose([("a.py:1", "Return the name."), bad], 60)
