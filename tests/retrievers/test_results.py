import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Evidence, Retriever, ScoredNode


def test_scored_nodes_unless_asked_otherwise(library) -> None:
    results = Retriever(library, "sentence")("milk")
    assert [type(result) for result in results] == [ScoredNode]


def test_content(library) -> None:
    retriever = Retriever(library, "sentence", output_format="content", top_k=2)
    assert retriever("river") == ["river water", "river bank"]
    assert retriever("nothing at all") == []
    assert [type(result) for result in retriever.retrieve("milk")] == [ScoredNode]


@pytest.mark.parametrize(
    ("join", "text"),
    [
        (True, "river water\nriver bank"),
        (" | ", "river water | river bank"),
        ("", "river waterriver bank"),
    ],
)
def test_join(library, join, text: str) -> None:
    retriever = Retriever(library, "sentence", output_format="content", join=join, top_k=2)
    assert retriever("river") == text
    assert retriever("nothing at all") == ""


def test_contents_that_are_no_text() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("length", len)
    graph.add(["four", "sixsix"])
    assert Retriever(graph, "length", output_format="content")("6") == [6]
    assert Retriever(graph, "length", output_format="content", join=True)("6 4") == "4\n6"


def test_dict(library) -> None:
    (result,) = Retriever(library, "sentence", output_format="dict")("milk")
    (node,) = (n for n in library.nodes("sentence") if "milk" in n.text)
    score = Retriever(library, "sentence").retrieve("milk")[0].score
    assert result == {
        "id": node.id,
        "group": "sentence",
        "content": "black tea and milk",
        "score": score,
        "document_id": "tea",
        "start": 11,
        "end": 29,
        "metadata": {"topic": "tea", "year": 1999, "tags": ["drink", "leaf"]},
    }


@pytest.mark.parametrize("output_format", [None, "dict"])
def test_join_needs_contents(library, output_format) -> None:
    with pytest.raises(
        ValueError, match="join=True joins contents; it needs output_format='content'"
    ):
        Retriever(library, "sentence", output_format=output_format, join=True)


def test_an_unknown_form(library) -> None:
    with pytest.raises(ValueError, match=r"'content', 'dict' or None .*, not 'text'"):
        Retriever(library, "sentence", output_format="text")


def test_evidence_that_is_made_when_asked_for_is_like_any_other(library) -> None:
    retriever = Retriever(library, "sentence", top_k=2)
    filters = {"river": {"exists": False}}
    first, again = (retriever.retrieve("river", filters=filters) for _ in range(2))
    assert first == again == retriever.retrieve("river")
    assert [hash(result) for result in first] == [hash(result) for result in again]
    for result in first:
        (match,) = result.evidence
        assert match == Evidence(result.node, result.score, "bm25", "river", by_search_text=True)
        assert result.evidence[0] is match
        assert match.filters == filters
        assert ScoredNode(result.node, result.score, (match,)) == result
        assert ScoredNode(result.node, result.score) != result
    assert retriever.retrieve("river")[0].evidence[0].filters is None


def test_results_are_copied_pickled_and_replaced_with_their_evidence(library) -> None:
    result = Retriever(library, "sentence").retrieve("milk")[0]
    other = Retriever(library, "sentence").retrieve("milk")[0]
    assert pickle.loads(pickle.dumps(result)) == copy.copy(other) == result
    assert replace(other, score=1.0).evidence == result.evidence
    assert repr(other) == repr(result)
    with pytest.raises(FrozenInstanceError):
        result.score = 1.0
    with pytest.raises(FrozenInstanceError):
        result.evidence = ()
