"""What the page's script reads: every question, result and explanation, each text once."""

import base64
import gzip
import json

import pytest
from fixed_retriever import fixed

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset, Question, evaluate
from nodekin.retrievers.evaluation.page.page_data import (
    LIMITS,
    PackedQuestions,
    pack,
    pairs,
)


def unpack(packed: PackedQuestions) -> dict:
    assert len(packed.text) % 5 == 0  # the page's script reads five letters at a time
    binary = base64.b85decode(packed.text.replace(",", "<"))[: packed.size]
    return json.loads(gzip.decompress(binary).decode(packed.encoding))


def text(data: dict, place: int) -> str:
    row = data["rows"][place]
    return row[0] if isinstance(row[0], str) else text(data, row[0])


@pytest.fixture
def whole(evaluation):
    return unpack(pack(evaluation, pairs(evaluation), 10_000_000))


def test_questions_and_rankings_are_those_of_the_records(evaluation, whole):
    for question, row in zip(evaluation.dataset.questions, whole["questions"], strict=True):
        assert (row[0], text(whole, row[1])) == (question.id, question.text)
        for (items, *_), setup in zip(row[4], evaluation.records, strict=True):
            record = evaluation.records[setup][question.id]
            assert [text(whole, item[0]) for item in items] == [i.text for i in record.items]
            assert [item[1] for item in items] == [round(i.score, 4) for i in record.items]
            nodes = [whole["rows"][item[0]][2:5] for item in items]
            places = [[text(whole, d), start, end] for d, start, end in nodes]
            assert places == [[i.document_id or i.id, i.start, i.end] for i in record.items]


def test_gold_is_marked_where_the_metrics_see_it(evaluation, whole):
    marked = {
        (row[0], setup): [rank for rank, item in enumerate(record[0], 1) if item[2]]
        for row in whole["questions"]
        for record, setup in zip(row[4], whole["setups"], strict=True)
    }
    for question in evaluation.dataset.questions:
        for setup in whole["setups"]:
            value = evaluation.judgements["mrr@3"][setup][question.id].value
            if value is not None:
                ranks = marked[question.id, setup]
                assert value == (1 / ranks[0] if ranks else 0)


def test_explanations_come_back_to_the_letter(evaluation, whole):
    check_explanations(evaluation.records["words"]["1"], whole)


def test_explanations_with_several_numbers_in_a_line_come_back():
    graph = NodeGraph(progress=False)
    graph.add(["Green tea is not fermented.", "Black tea is fermented."])
    graph.create_node_group("line", str.splitlines)
    both = FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "line", target="ROOT")])
    question = Question("1", "Which tea is fermented?", answers=("Black tea",))
    evaluation = evaluate({"both": both}, Dataset([question]), ["answer_in_context@3"])
    record = evaluation.records["both"]["1"]
    assert ", which gave 0.0" in record.items[0].explanation
    check_explanations(record, unpack(pack(evaluation, pairs(evaluation), 10_000_000)))


def check_explanations(record, whole):
    """Check those of the first question and set-up."""
    question = whole["questions"][0]
    for item, (node, score, _, *lines) in zip(record.items, question[4][0][0], strict=True):
        read, rest = [], iter(lines)
        for place in rest:
            template = whole["rows"][node][5 + place].replace("\x03", f"{score:.4f}")
            pieces = template.replace("\x01", f'"{text(whole, question[1])}"').split("\x02")
            numbers = [next(rest) for _ in pieces[1:]]
            read.append("".join(p + n for p, n in zip(pieces, [*numbers, ""], strict=True)))
        first, *others = item.explanation.split("\n")
        assert read == [first.partition('  "')[0], *others]


def test_judgements_and_differences_are_those_of_the_evaluation(evaluation, whole):
    for row in whole["questions"]:
        for (_, judgements, *_), setup in zip(row[4], whole["setups"], strict=True):
            for (numerator, words, *weight), metric in zip(
                judgements, evaluation.metrics, strict=True
            ):
                own = evaluation.judgements[metric][setup][row[0]]
                assert (numerator, *(weight or [1])) == (own.numerator, own.denominator)
                assert text(whole, words) == (own.evidence if own.judged else own.reason)
    assert len(whole["differences"]) == 3 * 4  # of all pairs
    for metric, first, second, numbers, questions, _ in whole["differences"]:
        names = (list(evaluation.metrics)[metric], *(whole["setups"][s] for s in (first, second)))
        own = evaluation.difference(*names)
        assert questions == own.questions
        assert all(number in str(own) for number in numbers)


def test_a_text_is_there_once(whole):
    texts = [row[0] for row in whole["rows"] if isinstance(row[0], str)]
    assert len(texts) == len(set(texts))


def test_missing_gold_has_what_is_nearest(whole):
    (row,) = [row for row in whole["questions"] if row[0] == "7"]
    assert [gold[5] is None for gold in row[3]] == [True, False]


def test_to_be_small_texts_are_cut_and_say_by_how_much(evaluation):
    whole = pack(evaluation, pairs(evaluation), 10_000_000)
    small = pack(evaluation, pairs(evaluation), int(len(whole.text) * 0.9))
    assert whole.limits == LIMITS[0]
    assert len(small.text) < len(whole.text)
    full, cut = unpack(whole), unpack(small)
    for (before, *_), (after, omitted, *_) in zip(full["rows"], cut["rows"], strict=True):
        if isinstance(before, str):
            assert before.startswith(after)
            assert len(before) == len(after) + omitted
    assert any(row[1] for row in cut["rows"])


def test_where_nothing_is_small_enough_it_is_the_least(evaluation):
    least = pack(evaluation, pairs(evaluation), 1)
    assert least.limits == LIMITS[-1]
    data = unpack(least)
    assert len(data["questions"]) == len(evaluation.dataset)
    question = data["questions"][0]
    assert [line for line in question[4][2][0][0][3:] if isinstance(line, int) and line < 0]


def test_chinese_is_packed_as_gbk_and_comes_back_to_the_letter():
    text = "长江流入东海。𠮷野家、café、한국、\x00\ud800" + "中文" * 100
    data = Dataset([Question("1", text)])
    packed = pack(evaluate({"a": fixed([])}, data, ["mrr@2"]), [], 10_000_000)
    assert packed.encoding == "gbk"
    assert unpack(packed)["rows"][0][0] == text
    russian = Dataset([Question("1", "Волга впадает в Каспийское море. \ud800")])
    packed = pack(evaluate({"a": fixed([])}, russian, ["mrr@2"]), [], 10_000_000)
    assert packed.encoding == "utf-8"
    assert unpack(packed)["rows"][0][0] == russian.questions[0].text
