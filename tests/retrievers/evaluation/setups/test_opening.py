import pytest

from nodekin.nodegraph import NodeGraph, PassageSplitter, split_sentences
from nodekin.retrievers import (
    Bm25,
    DefaultRetriever,
    FusionRetriever,
    LinkOptions,
    LinkRetriever,
    Reranker,
    RerankRetriever,
    Retriever,
    RetrieverSettings,
)
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile

TEXTS = [
    "Green tea is not fermented. The leaves are heated soon.",
    "Black tea is fermented. Much of it is from Fujian.",
    "The Rhine is a river. It runs past Cologne.",
]
QUERY = "Which tea is fermented?"


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return graph


def _open(graph, setups, name=None, models=None, **sections):
    return SetupOpener(SetupFile(setups, **sections), graph, models).open(name)


def _shown(results):
    return [(result.node.id, result.score, result.explain()) for result in results]


GROUPS = {
    "sentence": {"transform": "split_sentences", "parent": "passage"},
    "passage": {"transform": "PassageSplitter", "chunk_size": 64},
}


def test_it_is_what_one_would_have_written_in_python(graph):
    setups = {
        "words": {
            "type": "Retriever",
            "group_name": "passage",
            "similarity": {"name": "bm25", "k1": 1.2, "b": 0.4},
            "top_k": 50,
        },
        "fused": {
            "type": "FusionRetriever",
            "retrievers": [
                "words",
                {"type": "Retriever", "group_name": "sentence", "target": "passage", "lift": "sum"},
            ],
            "mode": "relative",
            "weights": [3, 1],
            "top_k": 2,
        },
    }
    declared = _open(graph, setups, "fused", groups=GROUPS)
    other = NodeGraph(progress=False)
    other.add(TEXTS)
    other.create_node_group("passage", PassageSplitter(64))
    other.create_node_group("sentence", split_sentences, parent="passage")
    written = FusionRetriever(
        [
            Retriever(other, "passage", Bm25(k1=1.2, b=0.4), top_k=50),
            Retriever(other, "sentence", target="passage", settings=RetrieverSettings(lift="sum")),
        ],
        "relative",
        [3, 1],
        2,
    )
    assert _shown(declared.retrieve(QUERY)) == _shown(written.retrieve(QUERY))
    assert len(declared.retrieve(QUERY)) == 2


def test_rerankers_links_and_cut_offs(graph):
    class Scorer:
        def __call__(self, query, texts):
            return [float("Fujian" in text) for text in texts]

    setups = {
        "default": {"type": "DefaultRetriever", "target": "ROOT"},
        "linked": {
            "type": "LinkRetriever",
            "inner": "default",
            "via": "entity",
            "options": {"seeds": 3},
        },
        "reranked": {
            "type": "RerankRetriever",
            "inner": {
                "type": "RerankRetriever",
                "inner": "linked",
                "reranker": {"name": "NearDuplicateFilter", "threshold": 0.7},
            },
            "reranker": {"name": "ModuleReranker", "model": "scorer", "cut_off": 0.5},
        },
        "short": {
            "type": "RerankRetriever",
            "inner": "default",
            "reranker": {"name": "TokenLimit", "max_tokens": 3},
        },
    }
    groups = {"entity": {"transform": "EntityExtractor"}}
    opener = SetupOpener(SetupFile(setups, groups), graph, {"scorer": Scorer()})
    opened = opener.open_all()
    assert isinstance(opened["default"], DefaultRetriever)
    linked = opened["linked"]
    assert isinstance(linked, LinkRetriever)
    assert linked.options == LinkOptions(seeds=3)
    reranked = opened["reranked"]
    assert isinstance(reranked, RerankRetriever)
    assert isinstance(reranked.reranker, Reranker)
    assert [result.node.text for result in reranked.retrieve(QUERY)] == [TEXTS[1]]
    assert len(opened["short"].retrieve(QUERY)) == 1


@pytest.mark.parametrize(
    ("setup", "error"),
    [
        ({"group_name": "sentnce"}, "set-up 'one', Retriever: no node group 'sentnce'"),
        ({"group_name": "ROOT", "similarity": {"name": "bm25", "k": 1}}, "no setting 'k'"),
        ({"group_name": "ROOT", "similarity": "bm52"}, "no similarity 'bm52'; there is 'bm25'"),
        ({"group_name": "ROOT", "top_k": 0}, "set-up 'one', Retriever: top_k must be 1 or more"),
    ],
)
def test_what_a_class_refuses_says_where(graph, setup, error):
    with pytest.raises(ValueError, match=error):
        _open(graph, {"one": {"type": "Retriever", **setup}}, groups=GROUPS)


def test_unknown_models_and_rerankers_name_the_nearest(graph):
    inner = {"type": "DefaultRetriever"}
    for reranker, error in [
        ({"name": "ModuleReranker", "model": "scorr"}, "no model 'scorr'; .* 'scorer'"),
        ("NearDuplicatesFilter", "no reranker 'NearDuplicatesFilter'; there is 'NearDuplicateFil"),
        ({"name": "TokenLimit", "tokens": 3}, "no setting 'tokens'"),
    ]:
        setup = {"type": "RerankRetriever", "inner": inner, "reranker": reranker}
        with pytest.raises(ValueError, match=error):
            _open(graph, {"one": setup}, models={"scorer": lambda query, texts: texts})
    strategy = {"type": "HyDERetriever", "inner": inner, "llm": "writer"}
    written = _open(graph, {"one": strategy}, models={"writer": lambda prompt: "Black tea."})
    assert written.retrieve(QUERY)[0].node.text == TEXTS[1]


def test_a_group_of_the_graph_is_not_replaced(graph):
    graph.create_node_group("passage", PassageSplitter(500))
    with pytest.raises(ValueError, match="passage"):
        _open(graph, {"one": {"type": "Retriever", "group_name": "passage"}}, groups=GROUPS)


def test_groups_that_are_their_own_ancestors(graph):
    groups = {
        "a": {"transform": "split_sentences", "parent": "b"},
        "b": {"transform": "split_sentences", "parent": "a"},
    }
    with pytest.raises(ValueError, match="a, b are their own ancestors"):
        _open(graph, {"one": {"type": "Retriever", "group_name": "a"}}, groups=groups)


def test_a_query_engine_answers_and_its_retriever_searches(graph):
    setups = {
        "words": {"type": "Retriever", "group_name": "ROOT", "top_k": 1},
        "answers": {
            **{"type": "QueryEngine", "retriever": "words", "llm": "small"},
            **{"mode": "map_rerank", "context_window": 1000, "max_calls": 2},
        },
    }
    opener = SetupOpener(SetupFile(setups), graph, {"small": lambda prompt: "Black tea [1]."})
    engine = opener.open("answers")
    assert (engine.mode, engine.settings.context_window, engine.settings.max_calls) == (
        *("map_rerank", 1000, 2),
    )
    assert opener.open_retriever("answers").retrieve(QUERY) == engine.retriever.retrieve(QUERY)
    assert set(opener.open_all()) == {"words", "answers"}
    with pytest.raises(ValueError, match="there is no model 'small'"):
        SetupOpener(SetupFile(setups), graph).open("answers")
