import random

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile
from nodekin.retrievers.evaluation.tuning.space import Space, compose, drawn, neighbours

TEXTS = [
    "Green tea is not fermented. The leaves are heated soon after they are picked.",
    "Black tea is fermented. Much of it is from Fujian, where it began.",
    "The Rhine is a river. It runs past Cologne and into the sea.",
    "The Nile is a river, too. Tea does not grow there.",
]


def _axes(**space):
    axes = Space(**space).axes()
    axes.setdefault("rerankers", [""])
    return axes


def _first(**changes):
    return {**{name: values[0] for name, values in _axes().items()}, **changes}


def _tables(choice, keys=()):
    file = compose(choice, keys, 6)
    return file.setups["tuned"], file.groups


def _graph():
    graph = NodeGraph(progress=False)
    graph.add(TEXTS)
    return graph


def test_it_begins_with_what_the_default_is_by_words():
    graph = _graph()
    begin = SetupOpener(compose(_first(), (), 6), graph).open()
    default = DefaultRetriever(graph, follow_links=False)
    for query in ("Which tea is fermented?", "a river past Cologne", "tea leaves"):
        expected = [(r.node.text, round(r.score, 3)) for r in default.retrieve(query)]
        assert [(r.node.text, round(r.score, 3)) for r in begin.retrieve(query)] == expected


@pytest.mark.parametrize(
    ("changes", "keys", "types"),
    [
        ({"part_weight": 0.0}, (), ["Retriever"]),
        ({"links": True}, (), ["LinkRetriever", "FusionRetriever"]),
        ({"near_duplicates": 0.8}, (), ["RerankRetriever", "FusionRetriever"]),
        (
            {"rerankers": "scorer", "max_tokens": 99, "links": True},
            (),
            ["RerankRetriever", "RerankRetriever", "LinkRetriever", "FusionRetriever"],
        ),
    ],
)
def test_what_a_choice_is_made_of(changes, keys, types):
    table, groups = _tables(_first(**changes), keys)
    assert table["top_k"] == 6
    nested = []
    while isinstance(table, dict):
        nested.append(table["type"])
        table = table.get("inner")
    assert nested == types
    assert "passage 320" in groups


def test_vectors_are_of_each_embedding_and_words_may_be_left_out():
    choice = _first(word_weight=0.0, vector_weight=2.0, vector_group="passages")
    table, groups = _tables(choice, ["e5"])
    assert (table["similarity"], table["embed_keys"]) == ("cosine", ["e5"])
    assert list(groups) == ["passage 320"]
    table, _ = _tables({**choice, "word_weight": 1.0}, ["e5", "other"])
    assert table["weights"] == [1.0, 0.3333, 2.0, 2.0]
    assert compose({**choice, "vector_weight": 0.0}, ["e5"], 6) is None


def test_choices_that_differ_in_nothing_that_counts_are_one_set_up():
    one = compose(_first(part_weight=0.0, part_size=64, lift="sum"), (), 6)
    other = compose(_first(part_weight=0.0), (), 6)
    assert one == other


def test_whole_documents_and_parts_of_tokens():
    table, groups = _tables(_first(chunk_size=0, part_size=64))
    assert table["retrievers"][0]["group_name"] == "ROOT"
    assert groups == {
        "ROOT part 64": {
            "transform": "SentenceSplitter",
            "chunk_size": 64,
            "chunk_overlap": 0,
            "parent": "ROOT",
        }
    }


def test_every_neighbour_and_every_draw_can_be_opened():
    graph = NodeGraph(embed=lambda texts: [[len(t), t.count("e") + 1] for t in texts])
    graph.add(TEXTS)
    models = {"scorer": lambda query, texts: [float(len(text)) for text in texts]}
    axes = _axes(rerankers=["", "scorer"], max_tokens=[0, 50], relative_cut=[0.0, 0.5])
    begin = {name: values[0] for name, values in axes.items()}
    dice = random.Random(1)
    choices = [*neighbours(begin, axes), *(drawn(begin, axes, dice) for _ in range(20))]
    opened = 0
    for choice in choices:
        file = compose(choice, ["default"], 3)
        if file is None:
            assert (choice["word_weight"], choice["vector_weight"]) == (0.0, 0.0)
            continue
        opened += 1
        assert SetupFile.parse(file.to_toml()) == file
        results = SetupOpener(file, graph, models).open().retrieve("Which tea is fermented?")
        assert 1 <= len(results) <= 3
    assert opened > 40


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"chunksize": [1]}, r"\[space\] has no 'chunksize'; there is 'chunk_size'"),
        ({"k1": 1.5}, "k1 is a list of alternatives, not 1.5"),
        ({"k1": []}, "k1 is a list of alternatives"),
        ({"k1": ["1"]}, "k1 is a number, 0 or more, not '1'"),
        ({"b": [-1]}, "b is a number, 0 or more, not -1"),
        ({"mode": ["rff"]}, "mode is one of 'relative', 'rrf'"),
        ({"rerankers": [1]}, "rerankers are names of models"),
    ],
)
def test_what_is_no_space_says_why(table, error):
    with pytest.raises(ValueError, match=error):
        Space.of(table)


def test_a_space_is_declared_in_a_file():
    file = SetupFile.parse("[space]\nchunk_size = [0, 160]\nlinks = [true]\n")
    space = Space.of(file.space)
    assert (space.chunk_size, space.links) == ((0, 160), (True,))
    assert SetupFile.parse(file.to_toml()) == file
