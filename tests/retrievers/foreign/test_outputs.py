"""Conversion of external retrievers' outputs into results."""

from types import SimpleNamespace
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node
from nodekin.retrievers import Evidence, ScoredNode, as_retriever
from nodekin.retrievers.foreign.outputs import read_output


def document(text: str, score: Any = None, id: Any = None) -> Any:
    metadata = {} if score is None else {"relevance_score": score}
    return SimpleNamespace(page_content=text, metadata=metadata, id=id)


def scores(output: Any) -> list[Any]:
    results = read_output(output, "it", "q")
    return [(r.node.text, r.score, r.evidence[0].similarity) for r in results]


RANKS = [("a", 1.0, "it, by rank"), ("b", 0.5, "it, by rank")]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([document("a", 2), document("b", 1)], [("a", 2.0, "it"), ("b", 1.0, "it")]),
        ([document("a", 1), document("b", 2)], RANKS),
        ([document("a", 1), document("b")], RANKS),
        ([document("a", float("nan")), document("b", 0)], RANKS),
        ([(document("a"), 0.4), (document("b"), 0.0)], [("a", 0.4, "it"), ("b", 0.0, "it")]),
        ([("a", 0.1), ("b", 0.4)], RANKS),  # distances
        ([("a", 0.2)], [("a", 0.2, "it")]),
        (["a", "b", "a"], RANKS),
        ([{"text": "a", "score": 3}, {"content": "b", "score": 1}],
         [("a", 3.0, "it"), ("b", 1.0, "it")]),
        ([Document("a", {"relevance_score": 7})], [("a", 7.0, "it")]),
        (SimpleNamespace(content="Tea."), [("Tea.", 1.0, "answer of it")]),
        ("Tea.", [("Tea.", 1.0, "answer of it")]),
        ({"answer": "Tea.", "context": [document("a")]}, [("Tea.", 1.0, "answer of it")]),
        (None, []), ("", []), ("  ", []), ([], []), ({"answer": ""}, []),
    ],
)  # fmt: skip
def test_output_becomes_results_with_scores_or_ranks(output: Any, expected: Any) -> None:
    assert scores(output) == expected


def test_relevance_score_sets_score_but_not_id() -> None:
    one, other = (read_output([document("a", n)], "it", "q") for n in (1, 2))
    assert [result.score for result in (*one, *other)] == [1, 2]
    assert one[0].node.id == other[0].node.id
    assert len(scores([document("a", id="1"), document("a", id="2")])) == 2


def test_mapping_fields_and_result_evidence_are_kept() -> None:
    given = {"text": "Tea", "id": "t", "document_id": "d", "start": 4, "metadata": {"page": 3}}
    (result,) = read_output([given], "it", "q")
    node = result.node
    assert (node.id, node.document_id, node.start, node.metadata) == ("t", "d", 4, {"page": 3})
    match = Evidence(Node("tea", id="t"), 0.7, "bm25", "q")
    (result,) = read_output([ScoredNode(match.node, 0.7, (match,))], "it", "q")
    assert result.evidence == (match,)


def test_answer_has_evidence_of_its_sources() -> None:
    chain = {"answer": "Green tea.", "context": [document("Green tea is steamed.", id="green")]}
    source = as_retriever(lambda query: chain, name="ask tea")
    (result,) = source.retrieve("Which tea is steamed?")
    assert [m.similarity for m in result.evidence] == ["answer of ask tea", "ask tea, by rank"]
    assert [match.node.id for match in result.evidence][1:] == ["green"]
    answer, sources = source.retrieve_sources("Which tea?")  # as evaluation reads it
    assert (answer, [s.node.id for s in sources]) == ("Green tea.", ["green"])


@pytest.mark.parametrize("output", [3, [3], object(), {"a": 1}, [("a", "b", "c")]])
def test_output_without_documents_raises(output: Any) -> None:
    with pytest.raises(TypeError, match=r"must return a list|each item must"):
        as_retriever(lambda query: output).retrieve("tea")
