import random

import pytest

from nodekin.adapters.evaluation.setup_session import load_setup
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    Matching,
    Question,
    SetupFile,
)
from nodekin.retrievers.evaluation.metrics import Judgement, get_metric
from nodekin.retrievers.evaluation.tuning import MIN_QUESTIONS, choose, tune

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
    options = {"progress": False, "seconds": 600, **options}
    return tune(_documents(), Dataset(_questions(count)), **options)


def _judged(values):
    return {str(at): Judgement(value) for at, value in enumerate(values)}


def _chosen(default, *others, metric="ndcg@5"):
    judgements = {"default": _judged(default)}
    judgements.update({str(at): _judged(values) for at, values in enumerate(others)})
    return choose(get_metric(metric), judgements)


@pytest.mark.parametrize(
    ("gains", "better"),
    [
        ([0.5] * 15 + [0.0] * 35, True),
        ([0.5] * 15 + [-0.5] * 12 + [0.0] * 23, False),
        ([1.0] + [0.0] * 49, False),
        ([1.0] * 2 + [0.0] * 18, False),
        ([1.0] * 5 + [0.0] * 15, False),
        ([1.0] * 6 + [0.0] * 14, True),
        ([0.0] * 50, False),
        ([-0.5] * 50, False),
    ],
)
def test_a_gain_counts_where_chance_would_not_have_it(gains, better):
    default = [0.5] * len(gains)
    assert _chosen(default, [0.5 + gain for gain in gains]) == ("0" if better else "default")


def test_equal_ones_are_seldom_chosen_and_those_that_answer_alike_count_as_one():
    dice = random.Random(0)
    draws = [[[dice.gauss(0, 1) for _ in range(50)] for _ in range(8)] for _ in range(200)]
    wrong = sum(_chosen([0.0] * 50, *others) != "default" for others in draws)
    assert wrong <= 20  # 5 % are 10
    gains = [0.3 + row for row in draws[0][0]]
    assert _chosen([0.0] * 50, gains) == "0"
    assert _chosen([0.0] * 50, *[gains] * 100) == "0"


def test_of_several_that_are_better_the_best_is_chosen():
    good, best = ([0.5 + gain] * 20 + [0.5] * 30 for gain in (0.3, 0.4))
    assert _chosen([0.5] * 50, good, best) == "1"


def test_less_is_better_where_the_metric_says_so():
    default = [100.0 + at for at in range(20)]
    more, less = ([by + at * 1.1 for at in range(20)] for by in (150.0, 50.0))
    assert _chosen(default, more, metric="tokens_per_gold@5") == "default"
    assert _chosen(default, more, less, metric="tokens_per_gold@5") == "1"


def test_of_a_ratio_each_question_has_its_weight():
    """One question without gold would hide what all others show if it weighed as they do."""
    default = {str(at): Judgement(100.0, 1.0) for at in range(20)} | {"x": Judgement(10.0, 0.0)}
    less = {str(at): Judgement(50.0 + at % 3, 1.0) for at in range(20)} | {"x": Judgement(40.0, 0)}
    metric = get_metric("tokens_per_gold@5")
    assert choose(metric, {"default": default, "less": less}) == "less"


def test_what_is_not_judged_chooses_nothing():
    assert _chosen([0.5] * 10, [None] * 10) == "default"
    assert _chosen([None] * 10, [0.5] * 10) == "default"
    assert _chosen([0.5], [1.0]) == "default"


def test_a_better_set_up_is_chosen_and_said_to_be_better_on_questions_held_back():
    tuning = _tune(models={"oracle": _oracle, "dice": _dice})
    name = "reranked by oracle"
    assert tuning.changed
    assert tuning.setups.default == name
    assert list(tuning.evaluation.records) == ["default", name]
    assert len(tuning.evaluation.dataset) == len(tuning.trials.dataset) == COUNT // 2
    assert tuning.evaluation.figure(name, "ndcg@5").value == 1.0
    assert f"ndcg@5: {name} is better than default by" in str(tuning)
    assert "30 questions, reported on 30 others" in str(tuning)
    reported = {question.id for question in tuning.evaluation.dataset.questions}
    assert reported.isdisjoint(question.id for question in tuning.trials.dataset.questions)


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
    for record in tuning.evaluation.records[tuning.setups.default].values():
        results = deployed.retrieve(record.question, top_k=record.top_k)
        assert [r.node.text for r in results] == [item.text for item in record.items]
        assert [r.score for r in results] == [item.score for item in record.items]


def test_set_ups_that_need_embeddings_are_tried_where_there_are_some():
    embedded = []

    def letters(texts):
        embedded.extend(texts)
        return [[text.count(letter) + 0.1 for letter in "aeiou0123456789"] for text in texts]

    graph = NodeGraph(embed=letters, progress=False)
    graph.add(_documents())
    tried = tune(graph, Dataset(_questions(40)), progress=False).trials.records
    assert {"short passages", "whole documents", "links", "words only", "vectors only"} < {*tried}
    assert {"words only", "vectors only"}.isdisjoint(_tune(4).trials.records)
    assert len(embedded) == len(set(embedded))  # no set-up embeds what another did


def test_one_s_own_set_ups_are_tried_too():
    own = SetupFile.parse("""
        [groups.line]
        transform = "split_sentences"

        [setups.default]
        type = "Retriever"
        group_name = "ROOT"

        [setups.lines]
        type = "Retriever"
        group_name = "line"

        [setups.short]
        type = "RerankRetriever"
        inner = "lines"
        reranker = {name = "TokenLimit", max_tokens = 9}
    """)
    tuning = _tune(setups=own, metric="tokens_per_gold@5")
    assert tuning.changed
    assert tuning.setups.default == "short"
    chosen = tuning.setups.setups
    assert chosen["default"] == {"type": "Retriever", "group_name": "ROOT"}
    assert chosen["short"]["inner"] == {"type": "Retriever", "group_name": "line"}
    assert list(tuning.setups.groups) == ["line"]
    figures = tuning.evaluation.figures
    less, more = (figures[name]["tokens_per_gold@5"].value for name in ("short", "default"))
    assert less < more


def test_too_few_questions_are_said_to_be():
    tuning = _tune(MIN_QUESTIONS - 1)
    assert f"{MIN_QUESTIONS - 1} questions are too few to choose by" in tuning.notes[-1]
    assert not any("too few" in note for note in _tune(MIN_QUESTIONS).notes)
    with pytest.raises(ValueError, match="has one question"):
        _tune(1)


def test_what_is_worse_on_the_first_questions_is_not_tried_on_the_others(monkeypatch):
    monkeypatch.setattr("nodekin.retrievers.evaluation.tuning.EARLY_QUESTIONS", 10)
    calls = []

    def wrong(query, texts):
        calls.append(query)
        return [-score for score in _oracle(query, texts)]

    tuning = _tune(models={"wrong": wrong})
    assert len(calls) == 10
    assert any("reranked by wrong (worse than the default on" in note for note in tuning.notes)
    assert "reranked by wrong" not in tuning.trials.records


def test_seconds_have_a_limit():
    tuning = _tune(seconds=1e-6)
    assert list(tuning.trials.records) == ["default"]
    assert any(
        note.startswith("left out: short passages (no time was left), long")
        for note in tuning.notes
    )
    assert tuning.evaluation.figure("default", "ndcg@5").judged == COUNT // 2


def test_a_set_up_that_fails_is_left_out_and_reported():
    calls = []

    def failing(query, texts):
        calls.append(query)
        raise OSError("no server")

    tuning = _tune(models={"scorer": failing})
    assert not tuning.changed
    assert any("left out: reranked by scorer (failed: " in note for note in tuning.notes)
    assert any("no server" in note for note in tuning.notes)
    assert len(calls) == 1  # a server that is not there is not asked for every question


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
    own = SetupFile.parse("""
        [groups.short]
        transform = "PassageSplitter"
        chunk_size = 60

        [setups.short]
        type = "DefaultRetriever"
        target = "short"
    """)
    options = {"setups": own, "progress": False}
    tuning = tune(documents, Dataset(questions), **options)
    assert tuning.changed
    assert any("by edit distance, which prefers passages" in note for note in tuning.notes)
    contained = tune(documents, Dataset(questions), matching=Matching("contains"), **options)
    assert not any("edit distance" in note for note in contained.notes)


class _Scorer:
    """Rerank as ``_oracle``; stop the whole search at a call."""

    def __init__(self):
        self.calls, self.limit = 0, 10**9

    def __repr__(self):
        return "_Scorer"

    def __call__(self, query, texts):
        self.calls += 1
        if self.calls > self.limit:
            raise KeyboardInterrupt
        return _oracle(query, texts)


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    path, scorer = tmp_path / "trials.jsonl", _Scorer()
    options = {"models": {"scorer": scorer}, "path": path}
    expected = _tune(models={"scorer": _Scorer()})
    scorer.limit = 10
    with pytest.raises(KeyboardInterrupt):
        _tune(**options)
    scorer.calls, scorer.limit = 0, 10**9
    resumed = _tune(**options)
    assert scorer.calls == COUNT - 10  # the other half reports
    assert resumed.setups == expected.setups
    assert resumed.trials.figures == expected.trials.figures
    again = _tune(**options, metric="mrr@5", seconds=1e-6)
    assert scorer.calls == COUNT - 10 + COUNT // 2  # what chooses is in the file
    assert again.setups == expected.setups
    with pytest.raises(ValueError, match="results of other documents: 2 removed"):
        tune(_documents()[2:], Dataset(_questions()), progress=False, **options)


@pytest.mark.parametrize(
    "text", ['{"question": "my own"}\n', "a letter\n", '{"setup": "default", "is": "x"}\n']
)
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "trials.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"give another path|or another path"):
        _tune(4, path=path)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("progress", "is_shown"), [(True, True), (False, False), (None, False)])
def test_progress_is_shown_where_it_is_wanted(progress, is_shown, capsys):
    _tune(2, progress=progress, seconds=1e-9)  # None: in a terminal, which this is not
    assert ("set-up" in capsys.readouterr().err) == is_shown
