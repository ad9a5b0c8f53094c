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
    del sys.modules["harness"]


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


def test_benchmark_page_matches_results(harness):
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert page == harness.page(), "run python benchmarks/harness.py"
    assert len(page.encode()) <= 15_000
