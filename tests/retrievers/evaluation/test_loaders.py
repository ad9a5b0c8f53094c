"""Questions from the files that people have."""

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
    save_jsonl,
)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_json_lines(tmp_path):
    span = {"document_id": "d", "start": 3, "end": 5}
    rows = (
        {"question": "茶?", "passages": "绿茶\u2028。", "answers": ["绿"]},
        {"id": 7, "question": "b?", "document_ids": {"a": 2, "b": 1}, "spans": [span]},
    )
    path = write(tmp_path / "q.jsonl", "\ufeff" + lines(*rows))
    assert load_jsonl(path).questions == (
        Question("1", "茶?", (GoldPassage("绿茶\u2028。"),), ("绿",)),
        Question("7", "b?", (GoldDocument("a", 2), GoldDocument("b", 1), GoldSpan("d", 3, 5))),
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no questions"),
        ("{\n", "line 1 is no JSON"),
        ("[1]\n", "line 1 is no JSON object"),
        ('{"query": "a?"}\n', "line 1 has no text 'question', but 'query'; say by fields="),
        ('{"question": "a", "id": 1}\n{"question": "b", "id": 1}\n', "more than once: '1'"),
        ('{"question": "a", "passages": [3]}\n', "'passages' is a text or a list of texts"),
        ('{"question": "a", "spans": [{"start": 3}]}\n', "a span is an object with document_id"),
        ('{"question": "a", "answerable": "no"}\n', "'answerable' is true or false"),
        ('{"question": "a", "document_ids": {"d": 0}}\n', "a grade that is not above 0"),
    ],
)
def test_bad_json_lines(tmp_path, text, error):
    with pytest.raises(ValueError, match=error):
        load_jsonl(write(tmp_path / "q.jsonl", text))


def test_other_names(tmp_path):
    path = write(tmp_path / "q.jsonl", lines({"q": "a?", "context": "A."}))
    data = load_jsonl(path, {"question": "q", "passages": "context"})
    assert data.questions == (Question("1", "a?", (GoldPassage("A."),)),)
    with pytest.raises(ValueError, match="no field 'passage'; there are 'passages'"):
        load_jsonl(path, {"passage": "context"})


def test_csv(tmp_path):
    text = (
        "id,question,document_ids,spans,Antwort\r\n"
        '1,"Which, then?",a|b,,x\r\n1,"Which, then?",c,,y\r\n2,When?,,http://d:3-5,\r\n'
    )
    data = load_csv(write(tmp_path / "q.csv", "\ufeff" + text), {"answers": "Antwort"})
    gold = GoldDocument("a"), GoldDocument("b"), GoldDocument("c")
    assert data.questions == (
        Question("1", "Which, then?", gold, ("x", "y")),
        Question("2", "When?", (GoldSpan("http://d", 3, 5),)),
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no column 'question', but none"),
        ("question\n", "has no questions"),
        ("Question\na\n", "has no column 'question', but 'Question'"),
        ("id,question\n1,a\n1,b\n", "'1' is there with another question"),
        ("question,spans\na,d:3\n", "a span is an object"),
    ],
)
def test_bad_csv(tmp_path, text, error):
    with pytest.raises(ValueError, match=error):
        load_csv(write(tmp_path / "q.csv", text))


def squad(*qas):
    paragraph = {"context": "Tea is green.", "qas": list(qas)}
    return json.dumps(
        {"data": [{"title": "Tea", "paragraphs": [paragraph, paragraph | {"qas": []}]}]}
    )


ANSWERED = {"id": "1", "question": "a?", "answers": [{"text": "green", "answer_start": 7}] * 2}


def test_squad(tmp_path):
    impossible = {"id": "2", "question": "b?", "answers": [], "is_impossible": True}
    path = write(tmp_path / "dev.json", squad(ANSWERED, impossible))
    data = load_squad(path)
    document = Document("Tea is green.", {"title": "Tea"})
    assert data.documents == (document,)
    assert data.questions == (
        Question("1", "a?", (GoldPassage(document.text),), ("green",)),
        Question("2", "b?", answerable=False),
    )
    spans = load_squad(path, "spans").questions[0].gold
    assert spans == (GoldSpan(document.id, 7, 12, "green"),)
    assert load_squad(path, "documents").questions[0].gold == (GoldDocument(document.id),)
    with pytest.raises(ValueError, match="more than once: '1'"):
        load_squad(write(path, squad(ANSWERED, ANSWERED)))
    with pytest.raises(ValueError, match="has not the form of SQuAD"):
        load_squad(write(path, "[]"))


def test_answers_whose_place_is_wrong_or_missing(tmp_path, caplog):
    """CMRC's development set says -1 of some."""
    wrong = {"id": "1", "question": "a?", "answers": [{"text": "green", "answer_start": -1}]}
    absent = {"id": "2", "question": "b?", "answers": [{"text": "blue", "answer_start": 3}]}
    first, second = load_squad(write(tmp_path / "d.json", squad(wrong, absent)), "spans").questions
    assert [(gold.start, gold.end) for gold in first.gold] == [(7, 12)]
    assert (second.gold, second.answers) == ((), ("blue",))
    assert "1 questions of" in caplog.text


def test_beir(tmp_path):
    write(tmp_path / "corpus.jsonl", lines({"_id": "d", "title": "Tea", "text": "Green."}))
    write(tmp_path / "queries.jsonl", lines({"_id": "1", "text": "a?"}, {"_id": "2", "text": "b"}))
    qrels = tmp_path / "qrels" / "test.tsv"
    write(qrels, "query-id\tcorpus-id\tscore\n1\td\t2\n1\te\t0\n")
    data = load_beir(tmp_path)
    assert data.documents == (Document("Green.", {"title": "Tea"}, id="d"),)
    assert data.questions == (Question("1", "a?", (GoldDocument("d", 2),)),)
    with pytest.raises(ValueError, match="where there are 'test'"):
        load_beir(tmp_path, "dev")
    write(qrels, "9\td\t1\n")
    with pytest.raises(ValueError, match=r"1 query ids that queries\.jsonl lacks: '9'"):
        load_beir(tmp_path)
    write(qrels, "query-id\tcorpus-id\tscore\n1\td\n")
    with pytest.raises(ValueError, match="line 2 is no query id, document id and score"):
        load_beir(tmp_path)


def test_what_is_saved_is_loaded(tmp_path):
    gold = (GoldPassage("茶\n\u2028"), GoldDocument("a", 2.0), GoldSpan("d", 3, 5, "te", 3.0))
    questions = (
        Question("x", "绿茶?", gold, ("a", "b")),
        Question("y", "b?", answerable=False),
        Question("z", "", (GoldPassage("a", 2.0), GoldPassage("b"))),
    )
    save_jsonl(Dataset(questions), tmp_path / "q.jsonl")
    assert load_jsonl(tmp_path / "q.jsonl").questions == questions


def test_answerable_in_csv(tmp_path):
    path = write(tmp_path / "q.csv", "question,answerable\na?,false\nb?,\nc?,TRUE\n")
    assert [q.answerable for q in load_csv(path).questions] == [False, True, True]
