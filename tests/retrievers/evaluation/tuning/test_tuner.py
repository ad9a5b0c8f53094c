import json
import random
from dataclasses import replace

import pytest

from nodekin.adapters.evaluation.setups import load_setup
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers.evaluation import Dataset, GoldDocument, GoldPassage, Matching, Question
from nodekin.retrievers.evaluation.metrics import get_metric
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile
from nodekin.retrievers.evaluation.tuning.setup_search import FEWEST_QUESTIONS
from nodekin.retrievers.evaluation.tuning.space import Space
from nodekin.retrievers.evaluation.tuning.tuner import tune

SMALL = Space(
    chunk_size=[320],
    part_size=[0],
    part_weight=[1 / 3, 1.0],
    k1=[1.5, 1.0],
    b=[0.75],
    lift=["max"],
    mode=["relative"],
    links=[False],
    fetch=[8],
    near_duplicates=[0.0],
)

COUNT = 60


def _documents():
    """Return pairs of documents of which the words of a question can't say which is right."""
    return [
        Document(f"Tea number {number} grows {where}.", id=f"{number} {where}")
        for number in range(COUNT)
        for where in ("here", "there")
    ]


def _questions(count=COUNT, gold=GoldDocument):
    right = [("here", "there")[number % 3 % 2] for number in range(count)]
    return [
        Question(str(number), f"Where does tea number {number} grow?", (gold(f"{number} {where}"),))
        for number, where in enumerate(right)
    ]


def _oracle(query, texts):
    """Score the right one of a pair higher."""
    number = int(query.split()[4])
    right = f"number {number} grows {('here', 'there')[number % 3 % 2]}."
    return [float(text.endswith(right)) for text in texts]


def _dice(query, texts):
    return [random.Random(query + text).random() for text in texts]


def _tune(count=COUNT, **options):
    options = {"space": SMALL, "progress": False, "seconds": 600, **options}
    return tune(_documents(), Dataset(_questions(count)), **options)


def test_a_better_set_up_is_chosen_and_said_to_be_better_on_questions_held_back():
    tuning = _tune(models={"oracle": _oracle, "dice": _dice})
    assert tuning.changed
    assert tuning.setups.default == "tuned"
    assert list(tuning.evaluation.records) == ["default", "tuned"]
    assert len(tuning.evaluation.dataset) == tuning.questions == COUNT // 2
    assert tuning.evaluation.figure("tuned", "ndcg@5").value == 1.0
    assert "ndcg@5: tuned is better than default by" in str(tuning)
    assert "30 questions, reported on 30 others" in str(tuning)
    assert tuning.model_calls > 0


def test_without_a_better_one_the_default_stays_and_nothing_is_said_to_be_better():
    tuning = _tune(models={"dice": _dice})
    assert not tuning.changed
    assert list(tuning.setups.setups) == ["default"]
    assert "better than default" not in str(tuning)
    assert "the default stays" in tuning.notes[0]


def test_what_is_written_is_what_was_reported(tmp_path):
    tuning = _tune(models={"oracle": _oracle})
    path = tmp_path / "tuned.toml"
    path.write_text(tuning.to_toml(), encoding="utf-8")
    assert SetupFile.read(path) == tuning.setups
    deployed = load_setup(path, documents=_documents(), models={"oracle": _oracle})
    for record in tuning.evaluation.records["tuned"].values():
        results = deployed.retrieve(record.question, top_k=record.top_k)
        assert [r.node.text for r in results] == [item.text for item in record.items]
        assert [r.score for r in results] == [item.score for item in record.items]


@pytest.mark.slow
def test_the_halves_share_no_question_and_are_the_same_every_time():
    one, other = (_tune(40, space=Space(**{**_fixed(), "k1": [1.5]})) for _ in range(2))
    reported = {question.id for question in one.evaluation.dataset.questions}
    assert len(reported) == 20
    assert reported == {question.id for question in other.evaluation.dataset.questions}


def _fixed():
    return {name: values[:1] for name, values in SMALL.axes().items()}


def test_too_few_questions_are_said_to_be():
    tuning = _tune(FEWEST_QUESTIONS - 1)
    assert f"{FEWEST_QUESTIONS - 1} questions are too few to choose by" in tuning.notes[-1]
    assert not any("too few" in note for note in _tune(FEWEST_QUESTIONS).notes)
    with pytest.raises(ValueError, match="has one question"):
        _tune(1)


def test_model_calls_have_a_limit():
    tuning = _tune(models={"oracle": _oracle}, model_calls=0)
    assert (tuning.changed, tuning.model_calls) == (False, 0)
    assert any("left out: there were no model calls left" in note for note in tuning.notes)
    assert len(tuning.trials) > 2  # those without a model were tried


def test_seconds_have_a_limit():
    tuning = _tune(seconds=1e-6)
    assert len(tuning.trials) == 1
    assert any("the budget was spent" in note for note in tuning.notes)
    assert tuning.evaluation.figure("default", "ndcg@5").judged == COUNT // 2


def test_a_set_up_that_fails_is_left_out_and_reported():
    def failing(query, texts):
        raise OSError("no server")

    tuning = _tune(models={"scorer": failing})
    assert not tuning.changed
    assert any("set-ups failed and were left out" in n and "no server" in n for n in tuning.notes)


def test_nothing_is_embedded_twice():
    embedded = []

    def letters(texts):
        embedded.extend(texts)
        return [[text.count(letter) + 0.1 for letter in "aeiou0123456789"] for text in texts]

    graph = NodeGraph(embed=letters, progress=False)
    graph.add(_documents())
    space = Space(**{**_fixed(), "vector_weight": [1.0, 3.0], "mode": ["relative", "rrf"]})
    tuning = tune(graph, Dataset(_questions(40)), space=space, progress=False)
    assert len(tuning.trials) > 3
    assert len(embedded) == len(set(embedded))


def test_less_is_better_where_a_metric_says_so():
    tuning = _tune(
        models={"oracle": _oracle},
        space=Space(**{**_fixed(), "rerankers": ["", "oracle"], "max_tokens": [0, 8]}),
        metric="tokens_per_gold@5",
    )
    assert tuning.changed
    figures = tuning.evaluation.figures
    assert (
        figures["tuned"]["tokens_per_gold@5"].value < figures["default"]["tokens_per_gold@5"].value
    )


def test_a_metric_of_which_no_question_has_a_value_chooses_nothing():
    tuning = _tune(metric=get_metric("answer_in_context@5"))
    assert not tuning.changed
    assert any("no question for choosing has a value" in note for note in tuning.notes)


@pytest.mark.slow
def test_passages_of_the_gold_s_size_are_not_praised_unsaid():
    sentences = [" ".join(f"Tea {n} has leaf {n * 31 + at}." for at in range(8)) for n in range(40)]
    documents = [f"{sentences[n]}\n\n{sentences[n + 1]}" for n in range(0, 40, 2)]
    questions = [
        Question(str(n), f"Which leaf has tea {n}, {n * 31 + 3}?", (GoldPassage(text),))
        for n, text in enumerate(sentences)
    ]
    space = Space(**{**_fixed(), "chunk_size": [320, 60]})
    tuning = tune(documents, Dataset(questions), space=space, progress=False)
    assert tuning.changed
    assert any("by edit distance, which prefers passages" in note for note in tuning.notes)
    contained = tune(
        documents, Dataset(questions), space=space, matching=Matching("contains"), progress=False
    )
    assert not any("edit distance" in note for note in contained.notes)


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    plain, path = get_metric("ndcg@5"), tmp_path / "trials.jsonl"
    judged = []

    def measure(most):
        def counted(case):
            judged.append(case)
            if len(judged) > most:
                raise KeyboardInterrupt
            return plain.measure(case)

        return replace(plain, measure=counted)

    whole = _tune(metric=measure(10**9), models={"oracle": _oracle})
    number = len(judged)
    judged.clear()
    with pytest.raises(KeyboardInterrupt):
        _tune(metric=measure(100), models={"oracle": _oracle}, path=path)
    kept = sum(len(json.loads(line)["scores"]) for line in path.read_text().splitlines()[1:])
    assert 60 <= kept <= 100
    judged.clear()
    rest = _tune(metric=measure(10**9), models={"oracle": _oracle}, path=path)
    assert len(judged) == number - kept
    assert rest.setups == whole.setups
    assert [trial.scores for trial in rest.trials] == [trial.scores for trial in whole.trials]
    judged.clear()
    _tune(metric=measure(10**9), models={"oracle": _oracle}, path=path)
    assert judged == []  # all was kept
    with pytest.raises(ValueError, match="is no file of nodekin tune"):
        _tune(path=__file__)
