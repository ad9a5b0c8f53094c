import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.tuning.sharing import SharingOpener
from nodekin.retrievers.evaluation.tuning.space import Space, compose

TEXTS = [
    "Green tea is not fermented. The leaves are heated soon.",
    "Black tea is fermented. Much of it is from Fujian.",
    "The Rhine is a river. It runs past Cologne.",
]
QUERIES = ["Which tea is fermented?", "a river past Cologne"]


class Scorer:
    def __init__(self):
        self.calls = []

    def __call__(self, query, texts):
        self.calls.append((query, tuple(texts)))
        return [float(len(text)) for text in texts]


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return graph


def _file(**changes):
    axes = Space(rerankers=[""]).axes()
    return compose({**{name: values[0] for name, values in axes.items()}, **changes}, (), 3)


CHANGES = [
    {},
    {"mode": "rrf"},
    {"part_weight": 3.0},
    {"links": True},
    {"rerankers": "scorer"},
    {"rerankers": "scorer", "mode": "rrf", "fetch": 2, "near_duplicates": 0.8, "max_tokens": 20},
]


@pytest.mark.parametrize("changes", CHANGES)
def test_what_is_shared_returns_what_is_deployed(graph, changes):
    models = {"scorer": Scorer()}
    sharing = SharingOpener(graph, models)
    for earlier in CHANGES:
        sharing.open_file(_file(**earlier)).batch(QUERIES)
    shared = sharing.open_file(_file(**changes)).batch(QUERIES)
    deployed = SetupOpener(_file(**changes), graph, models).open().batch(QUERIES)
    assert [[(r.node.id, r.score) for r in results] for results in shared] == [
        [(r.node.id, r.score) for r in results] for results in deployed
    ]


def test_inner_retrievers_search_for_a_question_once(graph, monkeypatch):
    searched = []
    batch = Retriever.batch

    def counting(retriever, queries, **options):
        searched.extend((repr(retriever), query) for query in queries)
        return batch(retriever, queries, **options)

    monkeypatch.setattr(Retriever, "batch", counting)
    sharing = SharingOpener(graph)
    for mode in ("relative", "rrf", "distribution"):
        for weight in (1.0, 3.0):
            retriever = sharing.open_file(_file(mode=mode, part_weight=weight))
            retriever.batch(QUERIES[:1])
            retriever.batch(QUERIES)
    assert len(searched) == len(set(searched)) == 2 * len(QUERIES)


def test_a_model_scores_a_passage_of_a_question_once(graph):
    scorer = Scorer()
    sharing = SharingOpener(graph, {"scorer": scorer})
    for changes in CHANGES[4:]:
        sharing.open_file(_file(**changes)).batch(QUERIES)
    pairs = [(query, text) for query, texts in scorer.calls for text in texts]
    assert len(pairs) == len(set(pairs))
    assert sharing.model_calls == len(scorer.calls)


def test_a_model_that_fails_is_not_taken_for_one_that_keeps_the_order(graph):
    def failing(query, texts):
        raise OSError("no server")

    sharing = SharingOpener(graph, {"scorer": failing})
    sharing.open_file(_file(rerankers="scorer")).batch(QUERIES)
    assert "no server" in str(sharing.failure)
