import json
import pickle

from nodekin.adapters.llama_index import NodeWithEvidence, to_node_with_score
from nodekin.nodegraph import Node
from nodekin.retrievers import Evidence, ScoredNode

CHILD = Node("Tea.", id="n2", group="word", start=0, end=4)
RESULT = ScoredNode(Node("Tea. 茶。", id="n1"), 0.0, (Evidence(CHILD, 1.5, "bm25", "tea"),))
SHOWN = {
    **{"id": "n2", "group": "word", "text": "Tea.", "start": 0, "end": 4},
    **{"score": 1.5, "similarity": "bm25", "query": "tea"},
}


def test_score_and_evidence() -> None:
    made = to_node_with_score(RESULT)
    assert (made.score, made.get_score(raise_error=True)) == (0.0, 0.0)
    assert made.evidence == [SHOWN]
    assert "evidence" not in made.metadata


def test_evidence_survives() -> None:
    made = to_node_with_score(RESULT)
    assert made.to_dict()["evidence"] == [SHOWN]
    assert json.loads(made.to_json())["evidence"] == [SHOWN]
    for again in (pickle.loads(pickle.dumps(made)), made.model_copy(deep=True)):
        assert isinstance(again, NodeWithEvidence)
        assert (again.evidence, again.node.text, again.score) == ([SHOWN], "Tea. 茶。", 0.0)


def test_each_result_has_its_own_evidence() -> None:
    first, second = to_node_with_score(RESULT), to_node_with_score(RESULT)
    first.evidence[0]["score"] = 9
    assert second.evidence == [SHOWN]
