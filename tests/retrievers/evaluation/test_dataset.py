"""Questions of JSON lines, CSV, SQuAD and BEIR."""

import csv
import json

import pytest

from nodekin.nodegraph import Document
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Question,
    load_beir,
    load_csv,
    load_jsonl,
    load_squad,
)
from nodekin.retrievers.evaluation.dataset import load_dataset


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_load_jsonl_returns_gold(tmp_path):
    span = {"document_id": "d", "start": 3, "end": 5}
    graded = {**span, "text": "te", "grade": 3}
    rows = (
        {"question": "茶?", "passages": "绿茶\u2028。", "answers": ["绿"]},
        {"id": 7, "question": "b?", "document_ids": {"a": 2, "b": 1}, "spans": [span, graded]},
    )
    path = write(tmp_path / "q.jsonl", "\ufeff" + lines(*rows))
    assert load_dataset(path).questions == (
        Question("1", "茶?", (GoldPassage("绿茶\u2028。"),), ("绿",)),
        Question(
            *("7", "b?"),
            *[
                (
                    *map(GoldDocument, "ab", (2, 1)),
                    GoldSpan("d", 3, 5),
                    GoldSpan("d", 3, 5, "te", 3),
                )
            ],
        ),
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no questions"),
        ("{\n", "line 1 must be JSON"),
        ("[1]\n", "line 1 must be a JSON object"),
        ('{"query": "a?"}\n', "line 1 has no field 'question', only 'query'; rename it by fields="),
        ('{"question": "a", "id": 1}\n{"question": "b", "id": 1}\n', "must be unique, got '1'"),
        (
            '{"question": "a", "passages": [3]}\n',
            "passages, document_ids and answers must be a text or a list",
        ),
        ('{"question": "a", "spans": [{"start": 3}]}\n', "a span must have document_id"),
        ('{"question": "a", "answerable": "no"}\n', "answerable must be true or false"),
        ('{"question": "a", "document_ids": {"d": 0}}\n', "grades must be above 0"),
    ],
)
def test_load_jsonl_with_invalid_line_raises(tmp_path, text, error):
    with pytest.raises(ValueError, match=error):
        load_jsonl(write(tmp_path / "q.jsonl", text))


def test_load_csv_with_invalid_column_or_span_raises(tmp_path):
    with pytest.raises(ValueError, match="has no field 'question', only 'Question'"):
        load_csv(write(tmp_path / "q.csv", "Question\na\n"))
    with pytest.raises(ValueError, match="a span must have"):
        load_csv(write(tmp_path / "q.csv", "question,spans\na,d:3\n"))
    with pytest.raises(ValueError, match="no field 'question', only 'query', 'id'; rename"):
        load_csv(write(tmp_path / "q.csv", "query,id\na,1\n"))
    with pytest.raises(ValueError, match="got 'passage'"):
        load_csv(tmp_path / "q.csv", {"passage": "context"})


def test_load_csv_with_too_long_cell_raises(tmp_path):
    limit = csv.field_size_limit(100)
    try:
        with pytest.raises(ValueError, match=r"q\.csv, line 3: field larger than"):
            load_csv(write(tmp_path / "q.csv", f"question\nWho?\n{'a' * 101}\n"))
    finally:
        csv.field_size_limit(limit)


def test_load_csv_leaves_out_nul(tmp_path):
    data = load_csv(write(tmp_path / "q.csv", "question,answers\nWho\0 is it?,a|\0b\n"))
    assert data.questions == (Question("2", "Who is it?", answers=("a", "b")),)


def test_load_csv_returns_gold(tmp_path):
    text = (
        "id,question,document_ids,spans,Antwort,answerable\r\n"
        '1,"Which, then?",a|b,,x|y,TRUE\r\n2,When?,,http://d:3-5,,\r\n3,Who?,,,,false\r\n'
    )
    data = load_dataset(write(tmp_path / "q.CSV", "\ufeff" + text), {"answers": "Antwort"})
    gold = GoldDocument("a"), GoldDocument("b")
    assert data.questions == (
        Question("1", "Which, then?", gold, ("x", "y")),
        Question("2", "When?", (GoldSpan("http://d", 3, 5),)),
        Question("3", "Who?", answerable=False),
    )


def squad(*qas):
    paragraph = {"context": "Tea is green.", "qas": list(qas)}
    return json.dumps(
        {"data": [{"title": "Tea", "paragraphs": [paragraph, paragraph | {"qas": []}]}]}
    )


ANSWERED = {"id": "1", "question": "a?", "answers": [{"text": "green", "answer_start": 7}] * 2}


def test_load_squad_returns_gold(tmp_path):
    impossible = {"id": "2", "question": "b?", "answers": [], "is_impossible": True}
    path = write(tmp_path / "dev.json", squad(ANSWERED, impossible))
    data = load_dataset(path)
    document = Document("Tea is green.", {"title": "Tea"})
    assert data.documents == (document,)
    assert data.questions == (
        Question("1", "a?", (GoldPassage(document.text),), ("green",)),
        Question("2", "b?", answerable=False),
    )
    with pytest.raises(ValueError, match="must be unique, got '1'"):
        load_squad(write(path, squad(ANSWERED, ANSWERED)))
    with pytest.raises(ValueError, match="must have the form of SQuAD"):
        load_squad(write(path, "[]"))


def test_load_beir_returns_gold(tmp_path):
    write(tmp_path / "corpus.jsonl", lines({"_id": "d", "title": "Tea", "text": "Green."}))
    write(tmp_path / "queries.jsonl", lines({"_id": "1", "text": "a?"}, {"_id": "2", "text": "b"}))
    qrels = tmp_path / "qrels" / "test.tsv"
    write(qrels, "query-id\tcorpus-id\tscore\n1\td\t2\n1\te\t0\n")
    data = load_dataset(tmp_path)
    assert data.documents == (Document("Green.", {"title": "Tea"}, id="d"),)
    assert data.questions == (Question("1", "a?", (GoldDocument("d", 2),)),)
    with pytest.raises(ValueError, match="splits: 'test'"):
        load_beir(tmp_path, "dev")
    write(qrels, "9\td\t1\n")
    with pytest.raises(ValueError, match=r"must have the form of BEIR.*KeyError: '9'"):
        load_beir(tmp_path)
    write(qrels, "query-id\tcorpus-id\tscore\n1\td\n")
    with pytest.raises(ValueError, match="query id, document id and score, got ValueError"):
        load_beir(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "fields", "error"),
    [
        ("q.txt", "Tea?", None, "questions must be a BEIR folder"),
        ("q.json", "{", None, "must have the form of SQuAD"),
        ("q.json", "{}", {"question": "Frage"}, "only .jsonl and .csv files"),
    ],
)
def test_load_dataset_with_invalid_file_raises(tmp_path, name, text, fields, error):
    with pytest.raises(ValueError, match=error):
        load_dataset(write(tmp_path / name, text), fields)
    with pytest.raises(FileNotFoundError, match=r"questions\.jsonl"):
        load_dataset(tmp_path / "questions.jsonl")


def test_invalid_dataset_raises():
    with pytest.raises(ValueError, match="questions has no questions"):
        Dataset([])
    with pytest.raises(ValueError, match="must be unique, got 'a'"):
        Dataset([Question("a", "?"), Question("a", "!")])
    with pytest.raises(ValueError, match="grades must be above 0"):
        Dataset([Question("a", "?", (GoldDocument("d", float("nan")),))])
    with pytest.raises(ValueError, match="got 5 to 5 in document 'd'"):
        GoldSpan("d", 5, 5)
