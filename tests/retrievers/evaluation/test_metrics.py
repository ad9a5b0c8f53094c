"""Metrics on cases that a person can check, and beside trec_eval's."""

import random

import pytest

from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    GoldSpan,
    Judgement,
    Matching,
    Metric,
    Question,
    RetrievalCase,
    evaluate,
)
from nodekin.retrievers.evaluation.matching import RetrievedItem, edit_similarity, is_similar
from nodekin.retrievers.evaluation.metrics import METRICS, get_metric

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
    judgement = get_metric(metric).judge(case(*arguments, **options))
    assert judgement.judged, judgement.reason
    return judgement.value


def documents(*ids):
    return [item(document=id) for id in ids]


TREC = {
    "recall@5": "R@5", "precision@5": "P@5", "hit_rate@5": "Success@5", "mrr": "RR",
    "ndcg@5": "nDCG@5", "ndcg": "nDCG", "map": "AP", "map@5": "AP@5", "mrr@5": "RR@5",
}  # fmt: skip


@pytest.mark.parametrize("name", TREC)
def test_documents_are_measured_as_trec_eval_does(name):
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


def test_gold_counts_at_its_first_result_and_once():
    ranking = documents("a", "a", "x", "b")
    gold = GoldDocument("a"), GoldDocument("b"), GoldDocument("c")
    assert value("recall@2", ranking, *gold) == pytest.approx(1 / 3)
    assert value("recall@4", ranking, *gold) == pytest.approx(2 / 3)
    assert value("precision@2", ranking, *gold) == 1
    assert value("all_gold@4", ranking, *gold) == 0
    assert value("all_gold@4", ranking, *gold[:2]) == 1
    assert value("map", ranking, *gold) == pytest.approx((1 + 2 / 4) / 3)


def test_a_result_that_is_all_gold_is_a_perfect_ranking():
    whole = item("Tea is green. It is from Anhui. It is cheap.")
    gold = GoldPassage("Tea is green."), GoldPassage("It is from Anhui.", grade=2)
    contains = Matching("contains")
    for name in ("recall@1", "all_gold@1", "ndcg@5", "map", "mrr", "precision@1"):
        assert value(name, [whole], *gold, matching=contains) == 1, name


def test_edit_similarity():
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("长江", "江") == 0.5
    assert edit_similarity("", "abc") == edit_similarity("abc", "") == 0
    assert edit_similarity("", "") == 1


def by_definition(one, other):
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for place, another in enumerate(other):
            row.append(min(row[-1] + 1, before[place + 1] + 1, before[place] + (letter != another)))
    return row[-1]


def test_the_edit_distance_is_that_of_the_definition():
    chance = random.Random(2)
    for size in [*range(12), 63, 64, 65, 130] * 5:
        one, other = ("".join(chance.choices("ab茶", k=n)) for n in (size, chance.randint(1, 90)))
        expected = 1 - by_definition(one, other) / max(len(one), len(other))
        assert edit_similarity(one, other) == edit_similarity(other, one) == expected


def test_what_is_not_computed_would_have_said_no():
    chance = random.Random(1)
    texts = ["".join(chance.choices("ab茶", k=chance.randint(0, 9))) for _ in range(60)]
    for one in texts:
        for other in texts:
            for threshold in (0.0, 0.3, 0.5, 0.8):
                expected = edit_similarity(one, other) > threshold
                assert is_similar(one, other, threshold) == expected, (one, other, threshold)


def test_context_recall_and_relevance_of_the_tutorials_example():
    items, gold = [item(text) for text in PASSAGES], GoldPassage(PASSAGES[0])
    assert value("context_recall", items, gold) == 1.0
    assert value("context_recall_binary", items, gold) == 1.0
    assert value("context_relevance", items, gold) == 0.5
    assert value("context_relevance_of_reference", items, gold) == 1.0


def test_context_recall_binary_needs_one_passage_only():
    items = [item("Green tea is not fermented")]
    gold = GoldPassage("Green tea is not fermented."), GoldPassage("The Nile runs north.")
    assert value("context_recall", items, *gold) == 0.5
    assert value("context_recall_binary", items, *gold) == 1
    strict = get_metric("context_recall", threshold=0.99)
    assert strict.judge(case(items, *gold)).value == 0


def test_a_chunk_longer_than_the_passage_is_no_hit_by_edit_distance():
    """What the published row of long chunks measures: the passage is in them all the same."""
    gold = GoldPassage("Green tea is not fermented.")
    long = item(f"{gold.text} {'The Nile runs north. ' * 5}")
    assert value("recall@1", [long], gold) == 0
    assert value("recall@1", [long], gold, matching=Matching("contains")) == 1


def test_answers_are_words_where_words_have_spaces():
    assert value("answer_in_context", [item("A party in Paris")], answers=["art"]) == 0
    assert value("answer_in_context", [item("A party in PARIS.")], answers=["x", "paris"]) == 1
    assert value("answer_in_context", [item("生命数耗完即算为踢爆。")], answers=["踢爆"]) == 1
    assert value("answer_in_context", [item("长１５厘米")], answers=["15"]) == 1
    assert value("answer_in_context", [item("in 1915")], answers=["15"]) == 0
    assert value("answer_in_context", [item("in 1915, 15")], answers=["15"]) == 1
    assert value("answer_in_context", [item("art party")], answers=["art"]) == 1
    assert value("answer_in_context@1", [item("no"), item("yes")], answers=["yes"]) == 0


def test_spans_match_by_a_token_of_overlap():
    gold = GoldSpan("d", 10, 21, " green tea ")
    assert value("recall", [item("..", "d", 0, 11)], gold) == 0  # a space is no token
    assert value("recall", [item("..", "d", 0, 12)], gold) == 1
    assert value("recall", [item("..", "other", 0, 99)], gold) == 0
    first, second = item("aa green tea", "d", 8, 20), item("green", "d", 11, 16)
    assert value("token_recall", [second, second], gold) == 0.5
    assert value("token_recall", [second, first], gold) == 1
    assert value("token_precision", [first], gold) == pytest.approx(2 / 3)


def test_tokens_per_gold_is_a_ratio_over_all_questions():
    metric = get_metric("tokens_per_gold@2")
    hit = metric.judge(case([item("green tea", "a"), item("a b c", "x")], GoldDocument("a")))
    miss = metric.judge(case([item("one two", "x")], GoldDocument("a")))
    assert (hit.numerator, hit.denominator) == (5, 1)
    assert (miss.numerator, miss.denominator, miss.value) == (2, 0, None)
    assert miss.judged


@pytest.mark.parametrize("name", METRICS)
def test_without_gold_or_answers_nothing_is_judged(name):
    judgement = get_metric(f"{name}@3").judge(case([item("tea", "d")]))
    assert not judgement.judged
    assert judgement.value is None
    assert judgement.reason


def test_a_result_without_a_place_is_not_judged_by_spans():
    judgement = get_metric("recall").judge(case([item("tea", "d")], GoldSpan("d", 0, 3)))
    assert "does not say where it is" in judgement.reason
    judgement = get_metric("token_recall").judge(case([item("t", "d", 0, 1)], GoldSpan("d", 0, 3)))
    assert "has no text" in judgement.reason


def test_a_judge_that_fails_is_neither_nan_nor_zero():
    def offline(case):
        raise ConnectionError("offline")

    assert Metric("judge", offline).judge(case([])).reason == "ConnectionError: offline"
    nan = Metric("judge", lambda case: Judgement(float("nan"))).judge(case([]))
    assert not nan.judged


def test_names_that_are_none():
    with pytest.raises(ValueError, match="no metric 'recal'; there are 'recall'"):
        get_metric("recal@5")
    with pytest.raises(ValueError, match="'recall@0' lets no number of results count"):
        get_metric("recall@0")
    with pytest.raises(TypeError, match="a metric is a name"):
        get_metric(5)
    with pytest.raises(ValueError, match="threshold is a number from 0 to below 1, not 50"):
        get_metric("context_recall", threshold=50)
    with pytest.raises(ValueError, match="no metric 'x'"):
        evaluate({"a": object()}, Dataset([Question("1", "?")]), ["x"])


def test_metrics_within_a_number_of_tokens():
    items = [
        *(item("one two three", "a"), item("four five six seven", "b")),
        *(item("eight", "c"), item("nine ten", "d")),
    ]
    question = Question("1", "?", (GoldDocument("b"), GoldDocument("d")))
    case = RetrievalCase(question, tuple(items))
    expected = {
        **{"recall@6tokens": 0, "recall@7tokens": 0.5, "recall@9tokens": 0.5, "recall@10tokens": 1},
        **{"mrr@6tokens": 0, "mrr@100tokens": 0.5, "tokens@2": 7, "tokens@9tokens": 8},
        **{"tokens_to_first_hit": 7, "tokens_to_first_hit@1": None},
    }
    values = {name: get_metric(name).judge(case).value for name in expected}
    assert values == expected
    missed = get_metric("tokens_to_first_hit@1").judge(case)
    assert (missed.numerator, missed.denominator) == (3, 0)
    answered = RetrievalCase(Question("1", "?", answers=("eight",)), tuple(items))
    assert get_metric("tokens_to_first_hit").judge(answered).value == 8
    with pytest.raises(ValueError, match="lets no number of results count"):
        get_metric("recall@tokens")


def test_enough_results_are_requested_for_a_number_of_tokens():
    requested = []

    def search(query, top_k=None):
        requested.append(top_k)
        return []

    data = Dataset([Question("1", "?", (GoldDocument("b"),))])
    for name in ("recall@100tokens", "recall@500tokens", "recall@9000tokens"):
        evaluate({"search": search}, data, [name])
    assert requested == [10, 25, 200]
