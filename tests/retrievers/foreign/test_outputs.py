"""Conversion of external retrievers' outputs into results."""

from types import SimpleNamespace

import pytest

from nodekin.nodegraph import Node
from nodekin.retrievers import Evidence, ScoredNode
from nodekin.retrievers.foreign.outputs import read_output


def document(text, score=None, id=None):
    metadata = {} if score is None else {"relevance_score": score}
    return SimpleNamespace(page_content=text, metadata=metadata, id=id)


def scores(output, **options):
    results = read_output(output, "it", "q", **options)
    return [(r.node.text, r.score, r.evidence[0].similarity) for r in results]


def test_scores_are_kept_if_complete_and_descending():
    assert scores([document("a", 2), document("b", 1)]) == [("a", 2.0, "it"), ("b", 1.0, "it")]
    ranks = [("a", 1.0, "it, by rank"), ("b", 0.5, "it, by rank")]
    assert scores([document("a", 1), document("b", 2)]) == ranks
    assert scores([document("a", 1), document("b")]) == ranks
    assert scores([document("a", float("nan")), document("b", 0)]) == ranks
    assert scores([document("a", 2), document("b", 1)], score_key=None) == ranks


def test_distances_in_pairs_become_negative_scores():
    pairs = [(document("a"), 0.1), (document("b"), 0.4)]
    assert scores(pairs) == [("a", -0.1, "it"), ("b", -0.4, "it")]
    assert scores([(document("a"), 0.4), (document("b"), 0.1)])[0] == ("a", 0.4, "it")


def test_zero_score_is_kept():
    pairs = [(document("a"), 0.4), (document("b"), 0.0)]
    assert scores(pairs) == [("a", 0.4, "it"), ("b", 0.0, "it")]


def test_equal_scores_in_pairs_become_ranks():
    assert scores([(document("a"), 0.2)]) == [("a", 1.0, "it, by rank")]
    pairs = [(document("a"), 0.2), (document("b"), 0.2)]
    assert scores(pairs) == [("a", 1.0, "it, by rank"), ("b", 0.5, "it, by rank")]


def test_repeated_document_is_one_result_at_first_position():
    output = [document("a"), document("b"), document("a")]
    assert [text for text, _, _ in scores(output)] == ["a", "b"]
    other_ids = [document("a", id="1"), document("a", id="2")]
    assert len(scores(other_ids)) == 2


def test_results_keep_their_evidence():
    node = Node("tea", id="t")
    match = Evidence(node, 0.7, "bm25", "q")
    assert read_output([ScoredNode(node, 0.7, (match,))], "it", "q")[0].evidence == (match,)


@pytest.mark.parametrize("empty", [None, "", "  ", [], {"answer": ""}, {"context": []}])
def test_empty_output_returns_no_results(empty):
    assert read_output(empty, "it", "q") == []


def test_message_becomes_one_answer():
    assert scores(SimpleNamespace(content="Tea.")) == [("Tea.", 1.0, "answer of it")]


def test_mapping_without_answer_returns_its_documents():
    assert scores({"context": [document("a")]}) == [("a", 1.0, "it, by rank")]
