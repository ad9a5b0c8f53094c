"""The gate reports losses, ignores chance, and reports too few questions."""

from random import Random

import numpy as np
import pytest
from support.fixed_retriever import fixed

from nodekin.nodegraph import Document, Node
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    Question,
    compare_with_baseline,
    evaluate,
)
from nodekin.retrievers.evaluation.gate import MetricCheck
from nodekin.retrievers.evaluation.metrics import get_metric
from nodekin.retrievers.evaluation.report import Difference

TEXTS = [f"Tea number {n} is from the hill of {'abcdefghij'[n % 10] * 3}{n}." for n in range(60)]


def dataset(count=60):
    gold = [(GoldDocument(f"d{n}"),) for n in range(count)]
    questions = [Question(str(n), f"Which tea is number {n}?", g) for n, g in enumerate(gold)]
    return Dataset(questions, [Document(text, id=f"d{n}") for n, text in enumerate(TEXTS)])


def found(missing=(), failing=(), count=60):
    """Return a retriever that finds the document of each question except some."""

    class Known:
        def retrieve(self, query, *, top_k=None, filters=None):
            number = int(query.split()[-1][:-1])
            if number in failing:
                raise ConnectionError("the server is gone")
            other = (number + 1) % 60
            place = other if number in missing else number
            return fixed([Node(TEXTS[place], id=f"d{place}")]).retrieve(query, top_k=top_k)

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return self.retrieve(query, top_k=top_k)

    return Known()


@pytest.fixture
def baseline(tmp_path):
    """Save a baseline with three misses. Return a function that compares a retriever with it."""
    path = tmp_path / "baseline.jsonl"
    evaluate({"search": found({50, 51, 52})}, dataset(), ["recall@1"]).save(path)

    def compare(retriever, limit=0.02, data=None):
        evaluation = evaluate({"search": retriever}, data or dataset(), ["recall@1"])
        limits = None if limit is None else {"recall@1": limit}
        return compare_with_baseline(evaluation, path, limits)

    return compare


@pytest.mark.parametrize(
    ("retriever", "passed", "sentence"),
    [
        (found({50, 51, 52}, failing={3}), False, "search failed on 1 question"),
        (
            found({50, 51, 52}),
            True,
            "recall@1 of search: +0.000 (+0.000 to +0.000) on 60 questions: no loss above 0.02",
        ),
        (found({50, *range(12)}), False, "on 60 questions: worse by more than the 0.02 allowed"),
        (found({50, 51, 52, 1, 2, 3}), True, "60 questions can't tell whether the loss is above"),
        (found(), True, "no loss above 0.02"),
    ],
)
def test_gate_fails_for_certain_loss(baseline, retriever, passed, sentence):
    gate = baseline(retriever)
    assert gate.passed is passed
    assert sentence in str(gate)
    assert str(gate).endswith("the gate passed" if passed else "the gate failed")


def test_gate_lists_lost_questions(baseline):
    gate = baseline(found({1, 2, 50}))
    (check,) = gate.checks
    assert [lost["question_id"] for lost in check.lost] == ["1", "2"]
    assert "  lost 1: Which tea is number 1? (1.000 -> 0.000)" in str(gate)
    assert list(gate.evaluation.records) == ["search (baseline)", "search"]
    assert "search (baseline)" in gate.evaluation.table()
    assert gate.as_dict()["checks"][0]["lost"][0]["question_id"] == "1"


def test_gate_notes_other_differences(baseline):
    questions = [
        *dataset(8).questions,
        Question("8", "Which tea is number 8?", (GoldDocument("d7"),)),
        Question("8b", "Which tea is number 8?"),
        Question("9", "Which tea is called number 9?"),
    ]
    gate = baseline(found({1}), data=Dataset(questions, dataset().documents))
    assert gate.checks[0].difference.questions == 8
    assert gate.notes == ["1 question not in the baseline, and not compared"]
    assert gate.lost_questions == [str(n) for n in range(8, 60)]
    assert "52 questions have been removed or changed since the baseline: '8', '9'" in str(gate)
    assert not gate.passed


def test_gate_names_systems_of_one_evaluation_only(tmp_path):
    path = tmp_path / "b.jsonl"
    evaluate({"old": found(), "both": found()}, dataset(), ["recall@1"]).save(path)
    after = evaluate({"both": found(), "new": found()}, dataset(), ["recall@1"])
    gate = compare_with_baseline(after, path)
    assert gate.notes == [
        f"{name} the baseline, and not compared" for name in ("old is only in", "new is not in")
    ]
    assert [check.setup for check in gate.checks] == ["both"]


def test_gate_without_limit_passes(baseline):
    gate = baseline(found(set(range(60))), limit=None)
    assert gate.passed
    assert str(gate).endswith("sets one")
    assert [check.metric.name for check in gate.checks] == ["recall@1"]


def test_incomparable_baseline_raises(baseline, tmp_path):
    with pytest.raises(ValueError, match="on the same questions, or save a new baseline"):
        baseline(found(), data=Dataset([Question("x", "Which tea is number 4?")]))
    with pytest.raises(ValueError, match="'recall@1' must be 0 or more, and finite, got -1"):
        baseline(found(), limit=-1)
    evaluation = evaluate({"other": found()}, dataset(), ["recall@5"])
    path = tmp_path / "baseline.jsonl"
    with pytest.raises(ValueError, match="has the set-ups 'search', and the evaluation 'other'"):
        compare_with_baseline(evaluation, path)
    with pytest.raises(ValueError, match="'recall@1', which is not measured; measured: 'recall@5'"):
        compare_with_baseline(evaluation, path, {"recall@1": 0.1})
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="must be a baseline of an evaluation"):
        compare_with_baseline(evaluation, tmp_path / "empty.jsonl")
    with pytest.raises(FileNotFoundError, match=r"nothing\.jsonl"):
        compare_with_baseline(evaluation, tmp_path / "nothing.jsonl")
    more = evaluate({"search": found()}, dataset(), ["recall@5"])
    with pytest.raises(ValueError, match="has the metrics 'recall@1', not 'recall@5'; save a new"):
        compare_with_baseline(more, path)


def test_gate_without_judged_questions_fails(tmp_path):
    data = Dataset([Question("1", "Which tea is number 1?")])
    evaluation = evaluate({"search": found()}, data, ["recall@1"])
    evaluation.save(tmp_path / "b.jsonl")
    gate = compare_with_baseline(evaluation, tmp_path / "b.jsonl", {"recall@1": 0.5})
    assert not gate.passed
    assert "no question is judged both now and in the baseline" in str(gate)


def test_to_markdown_escapes_questions(tmp_path):
    text = "Which <img src=x> | `tea` @someone is number 1?"
    data = Dataset([Question("1", text, (GoldDocument("d1"),))], dataset().documents)
    evaluate({"a|茶": found()}, data, ["recall@1"]).save(tmp_path / "b.jsonl")
    assert "a|茶" in (tmp_path / "b.jsonl").read_text(encoding="utf-8")
    lost = evaluate({"a|茶": found({1})}, data, ["recall@1"])
    summary = compare_with_baseline(lost, tmp_path / "b.jsonl", {"recall@1": 0}).to_markdown()
    assert summary.startswith("### Retrieval: the gate passed\n")
    assert "| a\\|茶 | 0.0000 (0.000 to 1.000) | 1 |" in summary
    assert "Which &lt;img src=x> \\| &#96;tea&#96; &#64;someone is number 1? (1.000 -> 0" in summary


# Of nDCG with one gold: at the first, second and third rank, and at none
NDCG = np.array([1.0, 0.6309, 0.5, 0.0])
SHARES = [0.75, 0.1, 0.05, 0.1]


def share_of_losses(change, limit=0.0, draws=1000, count=200):
    """Return the share of draws in which the gate says that nDCG was lost.

    ``change`` returns the current values for the earlier values and a random generator. All
    draws are resampled together.
    """
    chance, metric = np.random.default_rng(7), get_metric("ndcg@5")
    before = chance.choice(NDCG, (count, draws), p=SHARES)
    now = change(before, chance)
    gains = now - before
    resamples = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), 2000)
    means = resamples @ gains / count
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    lost = 0
    for n, value in enumerate(gains.mean(0)):
        different = int(np.count_nonzero(gains[:, n]))
        difference = Difference("", "A", "B", value, low[n], high[n], count, different, None)
        verdict = MetricCheck("B", metric, limit, difference).verdict
        lost += verdict == "lost"
    return lost / draws


def worse(share, to):
    """Change a share of the questions that have the gold first to another value."""

    def change(before, chance):
        hit = (before == 1) & (chance.random(before.shape) < share / SHARES[0])
        return np.where(hit, to, before)

    return change


def noisy(change, share=0.04):
    """Return a change with equal numbers of random gains and losses."""

    def changed(before, chance):
        draw = chance.random(before.shape)
        swapped = np.where((before == 1) & (draw < share / SHARES[0]), 0.0, before)
        swapped = np.where((before == 0) & (draw < share / SHARES[3]), 1.0, swapped)
        return change(swapped, chance)

    return changed


def test_gate_catches_five_percent_and_passes_chance():
    """200 questions, 1,000 draws: a loss of .05 nDCG, and none."""
    missed = share_of_losses(worse(0.05, 0.0))  # five of a hundred questions lose their passage
    moved = share_of_losses(worse(0.05 / (1 - NDCG[1]), NDCG[1]))  # it comes second
    assert min(missed, moved) >= 0.95
    assert share_of_losses(noisy(worse(0.0, 0.0))) <= 0.05  # eight of a hundred change by chance
    assert share_of_losses(noisy(worse(0.02, 0.0)), limit=0.02) <= 0.05  # the allowed loss


def passages(count=12, gone=()):
    """Return questions with the text of a document as gold, and one with missing gold."""
    draw = Random(1)
    texts = [" ".join("".join(draw.choices("aeiklmnorst", k=7)) for _ in range(9)) for _ in TEXTS]
    questions = [
        Question(str(n), f"Which tea is number {n}?", (GoldPassage(texts[n]),))
        for n in range(count)
    ]
    questions.append(Question("milk", "Milk is number 1?", (GoldPassage("Milk of goats " * 9),)))
    documents = [Document(text, id=f"d{n}") for n, text in enumerate(texts) if n not in gone]
    return Dataset(questions, documents)


def test_gate_fails_if_gold_is_gone(tmp_path):
    path, gone = tmp_path / "b.jsonl", range(10)
    evaluate({"search": found()}, passages(), ["recall@1"]).save(path)
    after = evaluate({"search": found()}, passages(gone=gone), ["recall@1"])
    gate = compare_with_baseline(after, path, {"recall@1": 0.05})
    assert not gate.passed
    assert gate.lost_gold == [str(n) for n in gone]  # "milk" never had gold
    sentence = "10 questions have no gold in any document any more: '0', '1'"
    assert sentence in str(gate)
    assert sentence in gate.to_markdown()
    assert "2 questions can't tell whether the loss is above 0.05" in str(gate)
