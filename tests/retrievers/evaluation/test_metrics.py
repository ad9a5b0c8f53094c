"""Metrics of small cases, and equal values of trec_eval."""

import random

import pytest

from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Judgment,
    Matching,
    Metric,
    Question,
    RetrievalCase,
    evaluate,
)
from nodekin.retrievers.evaluation.metrics import METRICS, RetrievedItem, get_metric

PASSAGES = [
    "非洲猴面包树是一种锦葵科猴面包树属的大型落叶乔木，原产于热带非洲，它的果实长约15至20厘米。",
    "钙含量比菠菜高50％以上，含较高的抗氧化成分。",
]


def item(text="", document="", start=None, end=None, id="n"):
    return RetrievedItem(id, text, 1.0, document, start, end)


def case(items, *gold, answers=(), matching=None):
    question = Question("1", "?", tuple(gold), tuple(answers))
    return RetrievalCase(question, tuple(items), matching or Matching())


def value(metric, *arguments, **options):
    judgment = get_metric(metric).judge(case(*arguments, **options))
    assert judgment.value is not None, judgment.reason
    return judgment.value


def documents(*ids):
    return [item(document=id) for id in ids]


TREC = {
    "recall@5": "R@5", "precision@5": "P@5", "hit_rate@5": "Success@5", "mrr": "RR",
    "ndcg@5": "nDCG@5", "ndcg": "nDCG", "map": "AP", "map@5": "AP@5", "mrr@5": "RR@5",
}  # fmt: skip


@pytest.mark.parametrize("name", TREC)
def test_document_metrics_equal_trec_eval(name):
    chance = random.Random(name)
    ir_measures = pytest.importorskip("ir_measures", reason="in the dependency group ci")
    measure = ir_measures.parse_measure(TREC[name])
    for _ in range(60):
        pool = [f"d{n}" for n in range(chance.randint(1, 12))]
        grades = {
            d: chance.randint(1, 3) for d in chance.sample(pool, chance.randint(1, len(pool)))
        }
        ranking = chance.sample(pool, chance.randint(1, len(pool)))
        run = {"1": {d: float(len(pool) - at) for at, d in enumerate(ranking)}}
        (theirs,) = ir_measures.iter_calc([measure], {"1": grades}, run)
        gold = [GoldDocument(d, grade) for d, grade in grades.items()]
        ours = value(name, documents(*ranking), *gold)
        assert ours == pytest.approx(theirs.value, abs=1e-9), (ranking, grades)


def test_gold_counts_once_at_first_result():
    ranking = documents("a", "a", "x", "b")
    gold = GoldDocument("a"), GoldDocument("b"), GoldDocument("c")
    assert value("recall@2", ranking, *gold) == pytest.approx(1 / 3)
    assert value("recall@4", ranking, *gold) == pytest.approx(2 / 3)
    assert value("precision@2", ranking, *gold) == 1
    assert value("all_gold@4", ranking, *gold) == 0
    assert value("all_gold@4", ranking, *gold[:2]) == 1
    assert value("map", ranking, *gold) == pytest.approx((1 + 2 / 4) / 3)


def test_result_matching_all_gold_scores_one():
    whole = item("Tea is green. It is from Anhui. It is cheap.")
    gold = GoldPassage("Tea is green."), GoldPassage("It is from Anhui.", grade=2)
    contains = Matching("contains")
    for name in ("recall@1", "all_gold@1", "ndcg@5", "map", "mrr", "precision@1"):
        assert value(name, [whole], *gold, matching=contains) == 1, name


def test_context_metrics_of_tutorial_example():
    items, gold = [item(text) for text in PASSAGES], GoldPassage(PASSAGES[0])
    assert value("context_recall", items, gold) == 1.0
    assert value("context_relevance", items, gold) == 0.5


def test_answer_in_context_matches_whole_words():
    assert value("answer_in_context", [item("A party in Paris")], answers=["art"]) == 0
    assert value("answer_in_context", [item("A party in PARIS.")], answers=["x", "paris"]) == 1
    assert value("answer_in_context", [item("生命数耗完即算为踢爆。")], answers=["踢爆"]) == 1
    assert value("answer_in_context", [item("长１５厘米")], answers=["15"]) == 1
    assert value("answer_in_context", [item("in 1915")], answers=["15"]) == 0
    assert value("answer_in_context", [item("in 1915, 15")], answers=["15"]) == 1
    assert value("answer_in_context", [item("art party")], answers=["art"]) == 1
    assert value("answer_in_context@1", [item("no"), item("yes")], answers=["yes"]) == 0


def test_span_matches_by_one_token_overlap():
    gold = GoldSpan("d", 10, 21, " green tea ")
    assert value("recall", [item("..", "d", 0, 11)], gold) == 0  # a space is no token
    assert value("recall", [item("..", "d", 0, 12)], gold) == 1
    assert value("recall", [item("..", "other", 0, 99)], gold) == 0


@pytest.mark.parametrize("name", METRICS)
def test_question_without_gold_is_not_judged(name):
    judgment = get_metric(f"{name}@3").judge(case([item("tea", "d")]))
    assert judgment.value is None
    assert judgment.reason


def test_result_without_position_is_not_judged():
    judgment = get_metric("recall").judge(case([item("tea", "d")], GoldSpan("d", 0, 3)))
    assert judgment.reason == "result 'n' has no position in document 'd'"
    judgment = get_metric("context_recall").judge(case([item("t", "d")], GoldSpan("d", 0, 3)))
    assert judgment.reason == "the question has gold without text"


def test_failing_measure_is_not_judged():
    def offline(case):
        raise ConnectionError("offline")

    assert Metric("judge", offline).judge(case([])).reason == "ConnectionError: offline"
    nan = Metric("judge", lambda case: Judgment(float("nan"))).judge(case([]))
    assert nan.value is None


def test_invalid_metric_raises():
    with pytest.raises(ValueError, match="a metric must be 'recall'"):
        get_metric("recal@5")
    with pytest.raises(ValueError, match="'recall@0' must have a number of results"):
        get_metric("recall@0")
    with pytest.raises(TypeError, match="a metric must be a name"):
        get_metric(5)
    with pytest.raises(ValueError, match="got 'x'"):
        evaluate({"a": object()}, Dataset([Question("1", "?")]), ["x"])


def test_token_budget_limits_results():
    items = [
        *(item("one two three", "a"), item("four five six seven", "b")),
        *(item("eight", "c"), item("nine ten", "d")),
    ]
    question = Question("1", "?", (GoldDocument("b"), GoldDocument("d")))
    case = RetrievalCase(question, tuple(items))
    expected = {
        **{"recall@6tokens": 0, "recall@7tokens": 0.5, "recall@9tokens": 0.5, "recall@10tokens": 1},
        **{"mrr@6tokens": 0, "mrr@100tokens": 0.5, "tokens@2": 7, "tokens@9tokens": 8},
    }
    values = {name: get_metric(name).judge(case).value for name in expected}
    assert values == expected
    with pytest.raises(ValueError, match="must have a number of results"):
        get_metric("recall@tokens")
