"""The data sets that the benchmarks read: their sizes, and gold that can be retrieved."""

import sys
from pathlib import Path

import pytest

from nodekin.retrievers.evaluation import GoldSpan

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

pytestmark = pytest.mark.data


@pytest.fixture
def datasets(monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import datasets

    assert Path(datasets.__file__).parent == BENCHMARKS
    yield datasets
    del sys.modules["datasets"]


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
def test_gold_is_in_the_documents(data, datasets, name, documents, questions, missing):
    try:
        dataset = getattr(datasets, name)(data)
    except (FileNotFoundError, SystemExit) as error:
        pytest.skip(f"no data: {error}")
    assert (len(dataset.documents), len(dataset)) == (documents, questions)
    assert len(dataset.missing_gold(dataset.documents)) == missing


def test_places_of_answers_are_where_the_answers_are(data, datasets):
    dataset = datasets.cmrc_answers(data)
    texts = {document.id: document.text for document in dataset.documents}
    for question in dataset.questions:
        (gold,) = question.gold
        assert isinstance(gold, GoldSpan)
        assert texts[gold.document_id][gold.start : gold.end] == question.answers[0]
