"""The benchmarks: the data sets that they read, and the page that they make."""

import runpy
import sys
from pathlib import Path

import pytest

from nodekin.retrievers.evaluation import DocumentTexts, locate_gold

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def harness(monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")  # which the benchmarks set
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import harness

    assert Path(harness.__file__).parent == BENCHMARKS
    yield harness
    sys.modules.pop("harness", None)


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_benchmark_imports_existing_names(path: Path, harness) -> None:
    assert runpy.run_path(str(path))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "documents", "questions"),
    [
        ("cmrc", 256, 1002),
        ("cmrc_answers", 26, 1002),
        ("cmrc_dev", 848, 3219),
        ("hotpotqa", 994, 100),
        ("musique", 1890, 100),
    ],
)
def test_gold_passages_are_in_documents(data, harness, name, documents, questions):
    try:
        dataset = getattr(harness, name)(data)
    except (FileNotFoundError, SystemExit) as error:
        pytest.skip(f"no data: {error}")
    assert (len(dataset.documents), len(dataset)) == (documents, questions)
    assert not locate_gold(dataset, DocumentTexts(dataset.documents)).missing


@pytest.fixture
def printed(harness, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    import printed

    yield printed
    del sys.modules["printed"]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least_printed", "least_listed"),
    [
        ("de", 0.75, 0.90),
        ("vi", 0.75, 0.90),
        ("ru", 0.75, 0.90),
        ("ar", 0.75, 0.90),
        ("CMRC 2018", 0.90, 0.95),
    ],
)
def test_printed_lines_show_answers(data, harness, printed, name, least_printed, least_listed):
    try:
        sets = {each.name: each for each in [*harness.xquad(data), harness.cmrc(data)]}
        dataset = sets[name]
    except (FileNotFoundError, SystemExit, KeyError) as error:
        pytest.skip(f"no data: {error}")
    ((_, count, shown, listed),) = printed.rows(dataset)
    assert int(count) > 250
    assert float(shown) >= least_printed
    assert float(listed) >= least_listed


@pytest.fixture
def dumps(harness):
    import dumps

    yield dumps
    del sys.modules["dumps"]


@pytest.mark.parametrize("kind", ["default", "budget"])
def test_dumps_of_pages_are_unchanged(dumps, kind):
    """Compare with ``python benchmarks/dumps.py --save tests/support/dumps --only pages.words``."""
    file = BENCHMARKS.parent / "tests" / "support" / "dumps" / f"pages.words.{kind}.json.gz"
    corpus = dumps.pages(BENCHMARKS)
    with dumps.graph_of(corpus, {}) as graph:
        made = dict(dumps.SEARCHES[kind](graph, corpus))
    assert [*dumps.changed_questions(dumps.read(file), made)] == []


@pytest.mark.parametrize(
    ("new", "difference"),
    [
        ([["a", 0.5000001, [["a", "bm25", None, 2.0]]], ["b", 0.25, []]], None),
        ([["a", 0.50001, [["a", "bm25", None, 2.0]]], ["b", 0.25, []]], "0: 1: 0.5 -> 0.50001"),
        ([["a", 0.5, [["a", "cosine", None, 2.0]]], ["b", 0.25, []]], '"bm25" -> "cosine"'),
        ([["a", 0.5, []], ["b", 0.25, []]], '-> "missing"'),
        ([["b", 0.25, []], ["a", 0.5, [["a", "bm25", None, 2.0]]]], '"a" -> "b"'),
        ([["a", 0.5, [["a", "bm25", None, 2.0]]]], '-> "missing"'),
    ],
)
def test_dumps_differ_by_order_scores_and_evidence(dumps, new, difference):
    old = [["a", 0.5, [["a", "bm25", None, 2.0]]], ["b", 0.25, []]]
    (found,) = [*dumps.changed_questions({"plain": [old]}, {"plain": [new]})] or [None]
    assert (difference is None) == (found is None)
    assert difference is None or difference in found


def test_benchmark_page_matches_results(harness):
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert page == harness.page(), "run python benchmarks/harness.py"
    assert len(page.encode()) <= 24_000
