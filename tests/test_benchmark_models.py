"""The benchmark of the default search with embedding models."""

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODULES = ("harness", "passages", "model_sets", "model_systems", "model_quality")

TEXTS = (
    "Refunds reach the account after four days.",
    "The library opens every morning at nine.",
    "Bread needs flour, water and salt.",
    "Trains to the coast leave from platform two.",
)
QUESTIONS = (
    ("Is the library open every morning at nine?", 1),
    ("Which platform do trains to the coast leave from?", 3),
    ("How long until I have my money back?", 0),
)
SUBJECTS = {
    "money": ("refund", "money"),
    "books": ("library",),
    "baking": ("bread",),
    "travel": ("train",),
}


def vectors_by_subject(texts):
    """Return a vector with a dimension for each subject, as a good model would."""
    rows = [
        [float(any(word in text.lower() for word in words)) for words in SUBJECTS.values()]
        for text in texts
    ]
    vectors = np.array(rows, np.float32) + 0.01
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def quality(monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "1")  # which the benchmarks set
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    forget_benchmarks()
    import model_quality

    yield model_quality
    forget_benchmarks()


def forget_benchmarks():
    """Remove the modules, which other tests may have imported."""
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def sets(quality):
    return sys.modules["model_sets"]


@pytest.fixture
def systems(quality):
    return sys.modules["model_systems"]


@pytest.fixture
def model(quality):
    return sys.modules["harness"].EmbeddingModel("subjects", vectors_by_subject, vectors_by_subject)


@pytest.fixture
def dataset():
    documents = [Document(text, id=str(at)) for at, text in enumerate(TEXTS)]
    questions = [
        Question(str(at), text, (GoldDocument(str(gold)),))
        for at, (text, gold) in enumerate(QUESTIONS)
    ]
    return Dataset(questions, documents, "subjects")


def test_records_of_measures_nodekin_and_parts(quality, systems, dataset, model):
    families = {"nodekin": systems.nodekin_systems}
    records = [*quality.records_of("set", "fake", dataset, model, families)]
    first = {record.system: record.first for record in records}
    assert first["nodekin, words"] == round(2 / 3, 4)
    assert first["nodekin, vectors of sentences"] == 1
    assert first["nodekin, vectors of passages"] == 1
    assert [(record.passages, record.asked) for record in records] == [(4, 3)] * len(records)


@pytest.mark.parametrize(
    ("family", "package", "by_vectors"),
    [
        ("LangChain", "langchain_classic.retrievers", "LangChain, vectors"),
        ("LlamaIndex", "llama_index.retrievers.bm25", "LlamaIndex, vectors"),
        ("haystack", "haystack", "haystack, vectors"),
    ],
)
def test_records_of_measures_peers(quality, systems, dataset, model, family, package, by_vectors):
    pytest.importorskip(package)
    families = {family: systems.FAMILIES[family]}
    records = [*quality.records_of("set", "fake", dataset, model, families)]
    assert len(records) >= 3
    assert {record.system: record.first for record in records}[by_vectors] == 1
    assert all(record.all_gold > 0 for record in records)


def test_records_of_skips_missing_packages(quality, dataset, model, capsys):
    def absent(dataset, model):
        raise ModuleNotFoundError("No module named 'absent'", name="absent")
        yield

    assert [*quality.records_of("set", "fake", dataset, model, {"peer": absent})] == []
    assert "set: peer skipped, no absent" in capsys.readouterr().err


def test_merged_replaces_records_of_same_system(quality, tmp_path):
    old = quality.Record("a", "e5", 9, 3, "words", 0.5, 0.6, 1.0)
    other = old._replace(system="vectors")
    new = old._replace(first=0.9)
    path = tmp_path / "records.json"
    quality.write_records(path, quality.merged([old, other], [new]))
    assert quality.read_records(path) == [new, other]


def test_table_has_rows_of_sets(quality):
    words = quality.Record("a", "e5", 1_500, 3, "words", 0.5, 0.6, 1.0)
    vectors = words._replace(questions="b", system="vectors", first=0.25)
    header, rows = quality.table([words, vectors])
    assert header == ["set", "model", "passages", "questions", "words", "vectors"]
    assert rows == [
        ["a", "e5", "1,500", "3", "0.500 / 0.60", ""],
        ["b", "e5", "1,500", "3", "", "0.250 / 0.60"],
    ]


def test_summary_averages_complete_rows_only(quality):
    pairs = [each.name for each in quality.selected(["??-??"])]
    one = quality.Record("de-ru", "e5", 240, 300, "nodekin, default", 0.5, 0.6, 1.0)
    of_default = [one._replace(questions=name, first=at / 20) for at, name in enumerate(pairs)]
    of_words = [record._replace(system="nodekin, words") for record in of_default[:-1]]
    header, rows = quality.summary([*of_default, *of_words, one._replace(questions="unlisted")])
    assert header[:3] == ["questions", "**nodekin**, default", "words"]
    assert [row[:3] for row in rows] == [
        ["XQuAD, German about Russian passages", "0.000 / 0.60", "0.000 / 0.60"],
        ["XQuAD, about another language (12 pairs)", "0.275 / 0.60", ""],
    ]


def test_summary_rows_match_sets(quality):
    for pattern in quality.ROWS.values():
        assert quality.selected([pattern]), pattern


def test_cached_model_continues_after_restart(quality, tmp_path):
    embedded = []

    def call(texts):
        embedded.extend(texts)
        return vectors_by_subject(texts)

    cached_model = sys.modules["harness"].CachedModel
    before = cached_model(tmp_path, "fake", call)(["library", "bread"])
    after = cached_model(tmp_path, "fake", call)(["bread", "train", "library"])
    assert embedded == ["library", "bread", "train"]
    assert after[[2, 0]].tolist() == before.tolist()


@pytest.mark.parametrize(
    ("select", "name"), [("selected", "faqs"), ("selected_families", "nodkin")]
)
def test_unknown_names_raise(quality, select, name):
    with pytest.raises(ValueError, match=f"must be some of .*; got '{name}'"):
        getattr(quality, select)([name])


def test_selected_returns_sets_by_pattern(quality):
    names = [each.name for each in quality.selected(["de-*", "cmrc"])]
    assert names == ["de-ru", "de-ar", "de-vi", "cmrc"]


def test_question_sets_have_distinct_names(sets):
    names = [each.name for each in sets.question_sets()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["xquad.de", "cmrc", "jsquad", "musique", "chroma", "faqzh+300"])
def test_read_set_prints_missing_files(quality, sets, tmp_path, capsys, name):
    options = Namespace(data=tmp_path, questions=5)
    (question_set,) = sets.selected([name])
    assert quality.read_set(question_set, options) is None
    assert f"{name}: skipped" in capsys.readouterr().err


def test_xquad_pairs_ask_in_other_language(sets, tmp_path):
    folder = tmp_path / "xquad"
    folder.mkdir()
    for language in ("de", "ru"):
        paragraphs = [
            {
                "context": f"{language} text {at}",
                "qas": [
                    {"id": str(at), "question": f"{language}? {at}", "answers": [{"text": "text"}]}
                ],
            }
            for at in range(3)
        ]
        content = {"data": [{"title": "", "paragraphs": paragraphs}]}
        (folder / f"xquad.{language}.json").write_text(json.dumps(content), encoding="utf-8")
    dataset = sets.xquad("de", "ru", tmp_path, 2)
    texts = {document.id: document.text for document in dataset.documents}
    asked = [(each.text, texts[each.gold[0].document_id]) for each in dataset.questions]
    assert asked == [("de? 0", "ru text 0"), ("de? 1", "ru text 1")]


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("other_words/*")))
def test_other_words_have_distinct_questions_with_gold(sets, tmp_path, name):
    dataset = sets.other_words(name, 0, "en", tmp_path, 1_000)
    ids = {document.id for document in dataset.documents}
    assert {gold.document_id for each in dataset.questions for gold in each.gold} <= ids
    assert len({each.text for each in dataset.questions}) == len(dataset) >= 20
