"""The benchmarks: the data sets that they read, and the page that they make."""

import runpy
import sys
from pathlib import Path

import pytest

from nodekin.retrievers.evaluation import DocumentTexts, GoldSpan, locate_gold

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
    ("name", "documents", "questions", "missing"),
    [
        ("cmrc", 256, 1002, 0),
        ("cmrc_answers", 26, 1002, 0),
        ("cmrc_dev", 848, 3219, 0),
        ("hotpotqa", 994, 100, 0),
        ("musique", 1890, 100, 0),
    ],
)
def test_gold_passages_are_in_documents(data, harness, name, documents, questions, missing):
    try:
        dataset = getattr(harness, name)(data)
    except (FileNotFoundError, SystemExit) as error:
        pytest.skip(f"no data: {error}")
    assert (len(dataset.documents), len(dataset)) == (documents, questions)
    assert len(locate_gold(dataset, DocumentTexts(dataset.documents)).missing) == missing


@pytest.mark.data
def test_answer_positions_point_to_answers(data, harness):
    dataset = harness.cmrc_answers(data)
    texts = {document.id: document.text for document in dataset.documents}
    for question in dataset.questions:
        (gold,) = question.gold
        assert isinstance(gold, GoldSpan)
        assert texts[gold.document_id][gold.start : gold.end] == question.answers[0]


@pytest.mark.data
def test_most_excerpts_are_within_one_passage(data, harness, monkeypatch):
    import passages

    monkeypatch.delitem(sys.modules, "passages")
    try:
        share = passages.whole_excerpts(data)
    except FileNotFoundError as error:
        pytest.skip(f"no data: {error}")
    assert share >= 0.92


def test_benchmark_page_matches_results(harness):
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert page == harness.page(), "run python benchmarks/harness.py"
    assert len(page.encode()) <= 15_000


def test_save_replaces_table_with_equal_title(harness, monkeypatch, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "head.md").write_text("# Page\n")
    (tmp_path / "speed.py").touch()
    monkeypatch.setattr(harness, "HERE", tmp_path)
    for value in ("1", "2"):
        harness.save("speed", "Times", ["system", "ms"], [["ours", value]])
    assert harness.page().endswith("| system | ms |\n| --- | --- |\n| ours | 2 |\n")
    assert "| 1 |" not in harness.page()
