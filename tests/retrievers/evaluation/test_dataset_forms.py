import json

import pytest

from nodekin.retrievers.evaluation import GoldDocument, GoldPassage
from nodekin.retrievers.evaluation.dataset_forms import load_dataset


def test_load_dataset_selects_form_by_name(tmp_path):
    rows = [{"id": "1", "question": "Tea?", "document_ids": ["green"]}]
    jsonl = tmp_path / "q.jsonl"
    jsonl.write_text("\n".join(map(json.dumps, rows)))
    assert load_dataset(jsonl).questions[0].gold == (GoldDocument("green"),)
    csv = tmp_path / "q.CSV"
    csv.write_text("Frage,passages\nTee?,Grüner Tee.\n", encoding="utf-8")
    question = load_dataset(csv, {"question": "Frage"}).questions[0]
    assert (question.text, question.gold) == ("Tee?", (GoldPassage("Grüner Tee."),))
    squad = tmp_path / "dev.json"
    answers = [{"text": "green", "answer_start": 0}]
    paragraph = {"context": "green", "qas": [{"id": 1, "question": "Tea?", "answers": answers}]}
    squad.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    assert len(load_dataset(squad).documents) == 1
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    (beir / "corpus.jsonl").write_text('{"_id": "green", "text": "Green tea"}')
    (beir / "queries.jsonl").write_text('{"_id": "1", "text": "Tea?"}')
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tgreen\t1\n")
    assert load_dataset(beir).questions[0].gold == (GoldDocument("green"),)


@pytest.mark.parametrize(
    ("name", "text", "fields", "error"),
    [
        ("q.txt", "Tea?", None, "questions must be a BEIR folder"),
        ("q.json", "[1]", None, "must have the form of SQuAD"),
        ("q.json", "{", None, "must have the form of SQuAD"),
        ("q.json", "{}", {"question": "Frage"}, "only .jsonl and .csv files"),
    ],
)
def test_load_dataset_with_invalid_file_raises(tmp_path, name, text, fields, error):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        load_dataset(path, fields)


def test_load_dataset_with_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"questions\.jsonl"):
        load_dataset(tmp_path / "questions.jsonl")
