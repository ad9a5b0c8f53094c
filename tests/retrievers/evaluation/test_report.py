"""Tables and files of an evaluation."""

import csv
import io
import json
import sys

import pytest
from support.fixed_retriever import fixed

from nodekin.nodegraph import Node
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question, evaluate


@pytest.fixture
def evaluation():
    right, wrong = (Node("Tea | 茶", id=id) for id in ("right", "wrong"))
    gold = (GoldDocument("right"),)
    data = Dataset([*(Question(str(n), f"{n}?", gold) for n in range(40)), Question("x", "x?")])
    return evaluate(
        {"词": fixed([wrong, right]), "better": fixed([right])}, data, ["mrr@2", "recall@2"]
    )


def test_table_aligns_wide_characters(evaluation):
    header, first, second = evaluation.table().splitlines()
    assert header.split()[:3] == ["set-up", "mrr@2", "recall@2"]
    assert header.index("recall@2") == second.index("1.0000", 20)
    assert first.index("1.0000") == second.index("1.0000", 20) - 1  # a wide character before it
    assert "0.5000 (0.425 to 0.575)" in first


def test_print_shows_differences_and_notes(evaluation):
    lines = str(evaluation).splitlines()
    assert lines[3] == "mrr@2: better is better than 词 by 0.500, 0.500 to 0.500"
    assert lines[4].startswith("recall@2: no difference between 词 and better that 40 questions")
    assert lines[5] == "词, mrr@2: 1 of 41 questions are not judged ('x'); the question has no gold"


def test_to_markdown_has_table_and_differences(evaluation):
    lines = evaluation.to_markdown().splitlines()
    assert lines[0].startswith("| set-up | mrr@2 | recall@2 |")
    assert lines[1] == "|" + " --- |" * 8
    assert lines[5] == "- mrr@2: better is better than 词 by 0.500, 0.500 to 0.500"


def test_to_csv_has_each_judgment(evaluation):
    rows = list(csv.DictReader(io.StringIO(evaluation.to_csv())))
    assert len(rows) == 2 * 41 * 2
    assert rows[0] == {
        "setup": "词", "question_id": "0", "question": "0?", "metric": "mrr@2", "value": "0.5",
        "judged": "True", "reason": "", "evidence": "gold at 2",
    }  # fmt: skip
    assert [r["value"] for r in rows if r["question_id"] == "x"] == [""] * 4


def test_as_dict_has_results_without_nan(evaluation):
    read = json.loads(json.dumps(evaluation.as_dict(), allow_nan=False))
    assert read["figures"]["better"]["mrr@2"]["value"] == 1
    assert read["differences"][0]["better"] == "better"
    result = read["results"]["词"][0]
    assert [item["id"] for item in result["items"]] == ["wrong", "right"]
    assert "fixed for" in result["items"][0]["explanation"]
    assert read["results"]["词"][40]["judgments"]["mrr@2"]["value"] is None


def test_costs_has_mean_tokens_per_question(evaluation):
    assert evaluation.costs("词")["tokens"] == 6  # two results of three tokens
    assert evaluation.costs("better")["tokens"] == 3
    assert evaluation.table().splitlines()[0].split()[-4:] == ["ms", "tokens", "model", "calls"]


@pytest.mark.parametrize(("name", "start"), [("f.svg", b"<?xml"), ("f.png", b"\x89PNG")])
def test_save_figure_writes_svg_and_png(tmp_path, name, start):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    data = Dataset([Question("1", "Tea?", (GoldDocument("tea"),))])
    systems = {"$one$": fixed([Node("Tea", id="tea")]), "failing": lambda query: 1 / 0}
    evaluate(systems, data, ["recall@1", "tokens"]).save_figure(tmp_path / name)
    image = (tmp_path / name).read_bytes()
    assert image.startswith(start)
    assert b"recall@1" in image or name == "f.png"


def test_figure_without_matplotlib_raises(evaluation, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "nodekin\[eval\]"'):
        evaluation.save_figure(tmp_path / "figure.png")
