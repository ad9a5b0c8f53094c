"""Questions that people asked, with their clicks."""

import json

import pytest

from nodekin.retrievers.evaluation import GoldDocument, Question, load_log

ROWS = [
    {"question": "Which tea is green?", "clicked": ["tea", "shop"], "count": 2},
    {"question": " which TEA is green? ", "clicked": "tea"},
    {"question": "How wide is the Rhine?", "clicked": ["rhine"], "count": 9},
    {"question": "Who is there?", "clicked": []},
    {"question": "   ", "clicked": ["x"]},
]

QUESTIONS = (
    Question("1", "How wide is the Rhine?", (GoldDocument("rhine", 9),)),
    Question("2", "Which tea is green?", (GoldDocument("tea", 3), GoldDocument("shop", 2))),
    Question("3", "Who is there?"),
)


def test_equal_questions_are_one_and_clicks_are_grades(tmp_path, caplog):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert load_log(path).questions == QUESTIONS
    assert "1 of 3 questions of" in caplog.text
    assert load_log(path, limit=1).questions == QUESTIONS[:1]
    assert load_log(path, min_clicks=3).questions[1].gold == (GoldDocument("tea", 3),)


def test_a_csv_file_with_names_of_its_own(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query,docs,n\nWhich tea is green?,tea|shop,2\nWhich tea is green?,tea,\n")
    names = {"question": "query", "clicked": "docs", "count": "n"}
    (question,) = load_log(path, names).questions
    assert question.gold == (GoldDocument("tea", 3), GoldDocument("shop", 2))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no questions"),
        ("{", "line 1 is no JSON"),
        ("[]", "line 1 is no JSON object"),
        ('{"query": "a"}', "has no text 'question', but 'query'; say by fields="),
        ('{"question": "a", "count": 0}', "a count is a whole number of 1 or more, not 0"),
        ('{"question": "a", "clicked": {"a": 1}}', "what was clicked is a list of ids"),
    ],
)
def test_what_is_no_log(tmp_path, text, error):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=error):
        load_log(path)


def test_unknown_fields(tmp_path):
    with pytest.raises(ValueError, match="there is no field 'clicks'; there are 'clicked'"):
        load_log(tmp_path / "log.jsonl", {"clicks": "x"})
